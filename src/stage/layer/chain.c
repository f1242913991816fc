/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/layer/chain.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/record/store.h"
#include "wire/frame.h"

enum { CHAIN_FRAME = 57, CHAIN_FILE_MAX = 16 << 10, NAME_SIZE = 64, LAYER_NUMBER_MAX = 1000000 };

static int parse(struct frame *frame, struct stage_chain *chain)
{
	const char *message;
	uint32_t count;

	if (frame->type != CHAIN_FRAME)
		return -EBADMSG;
	chain->taken_ns = frame_get_u64(frame);
	message = frame_get_string(frame);
	if (!message || str_copy(chain->message, sizeof chain->message, message) < 0)
		return -EBADMSG;
	count = frame_get_u32(frame);
	for (uint32_t i = 0; i < count; i++) {
		const char *session = frame_get_string(frame);
		uint32_t number = frame_get_u32(frame);
		int r = session ? stage_chain_push(chain, session, number) : -EBADMSG;

		if (r < 0)
			return r == -EINVAL ? -EBADMSG : r;
	}
	return frame_finish(frame);
}

int stage_chain_parse(void *bytes, size_t size, struct stage_chain *ret_chain)
{
	struct stage_chain chain = { 0 };
	struct frame frame;
	int r = frame_open(&frame, bytes, size);

	if (r == 0)
		r = parse(&frame, &chain);
	if (r == 0)
		*ret_chain = chain;
	return r;
}

int stage_chain_load(int dir_fd, const char *name, bool missing_is_empty, struct stage_chain *ret_chain)
{
	cleanup_free char *bytes = NULL;
	size_t size;
	int r = stage_load_file(dir_fd, name, CHAIN_FILE_MAX, &bytes, &size);

	if (r == -ENOENT && missing_is_empty) {
		*ret_chain = (struct stage_chain){ 0 };
		return 0;
	}
	if (r < 0)
		return r == -EFBIG ? -EBADMSG : r;
	return stage_chain_parse(bytes, size, ret_chain);
}

int stage_chain_store(int dir_fd, const char *name, const struct stage_chain *chain)
{
	struct buf out;
	int r;

	buf_init(&out, CHAIN_FILE_MAX);
	frame_begin(&out, CHAIN_FRAME);
	frame_put_u64(&out, chain->taken_ns);
	frame_put_string(&out, chain->message);
	frame_put_u32(&out, (uint32_t)chain->count);
	for (size_t i = 0; i < chain->count; i++) {
		frame_put_string(&out, chain->layers[i].session);
		frame_put_u32(&out, chain->layers[i].number);
	}
	r = frame_end(&out);
	if (r == 0)
		r = stage_store_file(dir_fd, name, out.bytes, out.size);
	buf_done(&out);
	return r;
}

int stage_chain_push(struct stage_chain *chain, const char *session, uint32_t number)
{
	struct stage_layer *layer;

	if (!stage_session_is_valid(session) || !number || number > LAYER_NUMBER_MAX)
		return -EINVAL;
	if (chain->count >= STAGE_CHAIN_MAX)
		return -E2BIG;
	layer = &chain->layers[chain->count];
	if (str_copy(layer->session, sizeof layer->session, session) < 0)
		return -EINVAL;
	layer->number = number;
	chain->count++;
	return 0;
}

bool stage_snapshot_name_is_valid(const char *text)
{
	size_t length = strlen(text);

	return length && length <= STAGE_SNAPSHOT_NAME_MAX && text[0] != '.' && text[0] != '-' &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}

static int make_directory(int dir_fd, const char *name)
{
	return mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_directory(int dir_fd, const char *name)
{
	return fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* The lowest free number: mkdir decides, so that two makers never share one. */
static int make_numbered(int layers_fd, uint32_t *ret_number)
{
	char name[NAME_SIZE];

	for (uint32_t number = 1; number <= LAYER_NUMBER_MAX; number++) {
		int r = str_format(name, sizeof name, "%u", number);

		if (r < 0)
			return r;
		if (mkdirat(layers_fd, name, 0700) == 0) {
			*ret_number = number;
			return open_directory(layers_fd, name);
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -ENOSPC;
}

static int live_path(char out[NAME_SIZE], size_t tree_index)
{
	return str_format(out, NAME_SIZE, STAGE_DIRECTORY_LIVE "/%zu/upper", tree_index);
}

int stage_live_open(int stage_fd, size_t tree_index)
{
	char path[NAME_SIZE];
	int r = live_path(path, tree_index);

	return r < 0 ? r : open_directory(stage_fd, path);
}

/* An empty directory that can take the place of the upper: the same mode, the jail's owner. */
static int make_twin(int stage_fd, const struct stage_tree *tree, size_t tree_index, int layer_fd)
{
	char live[NAME_SIZE], name[NAME_SIZE];
	cleanup_fd int fd = FD_NONE;
	struct timespec times[2];
	struct stat st;
	int r = live_path(live, tree_index);

	if (r == 0)
		r = str_format(name, sizeof name, "%zu", tree_index);
	if (r < 0)
		return r;
	if (fstatat(stage_fd, live, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (mkdirat(layer_fd, name, 0700) < 0)
		return -errno;
	fd = open_directory(layer_fd, name);
	if (fd < 0)
		return fd;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	if ((geteuid() == 0 && fchown(fd, tree->jail_uid, tree->jail_gid) < 0) ||
	    fchmod(fd, st.st_mode & 03777) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

int stage_layer_new(int stage_fd, const struct stage_record *record, struct err *err)
{
	cleanup_fd int layers_fd = FD_NONE, layer_fd = FD_NONE;
	uint32_t number = 0;
	int r = make_directory(stage_fd, STAGE_DIRECTORY_LAYERS);

	layers_fd = r < 0 ? r : open_directory(stage_fd, STAGE_DIRECTORY_LAYERS);
	layer_fd = layers_fd < 0 ? layers_fd : make_numbered(layers_fd, &number);
	r = layer_fd < 0 ? layer_fd : 0;
	for (size_t i = 0; r == 0 && i < record->tree_count; i++)
		r = make_twin(stage_fd, &record->trees[i], i, layer_fd);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "stage", "a layer cannot be made: %s", err_errno_name(-r));
	return (int)number;
}

/* Every file system that can hold an upper has RENAME_EXCHANGE: overlayfs itself needs it for directories. */
/* Where the sandbox closed the tree itself: who may not write a directory gives it no other parent. */
static int exchange_closed(int stage_fd, const char *live, const char *sealed)
{
	cleanup_fd int live_fd = fd_open_at(stage_fd, live, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	cleanup_fd int sealed_fd = fd_open_at(stage_fd, sealed, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	const int fds[] = { live_fd, sealed_fd };
	struct stat st[ARRAY_SIZE(fds)];
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (fds[i] < 0 || fstat(fds[i], &st[i]) < 0)
			return fds[i] < 0 ? fds[i] : -errno;
		if (path_chmod(fds[i], st[i].st_mode | 0700) < 0)
			return -EACCES;
	}
	if (syscall(SYS_renameat2, stage_fd, live, stage_fd, sealed, RENAME_EXCHANGE) < 0)
		r = -errno;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (path_chmod(fds[i], st[i].st_mode) < 0 && r == 0)
			r = -EACCES;
	return r;
}

static int exchange(int stage_fd, uint32_t number, size_t tree_index)
{
	char live[NAME_SIZE], sealed[NAME_SIZE];
	int r = live_path(live, tree_index);

	if (r == 0)
		r = str_format(sealed, sizeof sealed, STAGE_DIRECTORY_LAYERS "/%u/%zu", number, tree_index);
	if (r < 0)
		return r;
	if (syscall(SYS_renameat2, stage_fd, live, stage_fd, sealed, RENAME_EXCHANGE) == 0)
		return 0;
	return errno == EACCES ? exchange_closed(stage_fd, live, sealed) : -errno;
}

int stage_seal(int stage_fd, const struct stage_record *record, struct stage_chain *chain, struct err *err)
{
	struct stage_chain grown = *chain;
	int number = stage_layer_new(stage_fd, record, err), r;

	if (number < 0)
		return number;
	r = stage_chain_push(&grown, record->session, (uint32_t)number);
	if (r < 0) {
		err_set(err, ERR_STATE, -r, "stage", "the session has %zu layers already", chain->count);
		err_hint(err, "`atoll gc` joins them");
		return r;
	}
	/* From here on the empty layer is part of the state, and each exchange keeps that state as it is. */
	r = stage_chain_store(stage_fd, STAGE_FILE_CHAIN, &grown);
	for (size_t i = 0; r == 0 && i < record->tree_count; i++)
		r = exchange(stage_fd, (uint32_t)number, i);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "stage", "the written files cannot be sealed: %s",
			       err_errno_name(-r));
	*chain = grown;
	return number;
}

int stage_live_is_used(int stage_fd, const struct stage_record *record)
{
	char bytes[1024] __attribute__((aligned(8)));

	for (size_t i = 0; i < record->tree_count; i++) {
		cleanup_fd int fd = FD_NONE;
		long used = 0;
		int r = fd = stage_live_open(stage_fd, i);

		/* The sandbox closed the tree itself. */
		if (r < 0)
			return r == -EACCES ? 1 : r;
		/* "." and ".." are 24 bytes each; anything beyond them is an entry. */
		for (;;) {
			long n = syscall(SYS_getdents64, fd, bytes, sizeof bytes);

			if (n < 0)
				return -errno;
			if (n == 0)
				break;
			used += n;
		}
		if (used > 48)
			return 1;
	}
	return 0;
}
