/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/record/record.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/record/store.h"
#include "wire/frame.h"

/* By form: who does not know the second kind must not take its layers for those of the first. */
static const uint32_t frame_types[] = { [STAGE_FORM_OVERLAY] = 60, [STAGE_FORM_FUSE] = 61 };

void stage_record_done(struct stage_record *record)
{
	for (size_t i = 0; i < record->tree_count; i++)
		free(record->trees[i].path);
	free(record->trees);
	*record = (struct stage_record){ 0 };
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void read_boot_id(char out[STAGE_BOOT_ID_SIZE])
{
	cleanup_free char *text = NULL;
	size_t size;

	out[0] = 0;
	if (fd_read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 4096, &text, &size) < 0)
		return;
	text[strcspn(text, "\n")] = 0;
	if (str_copy(out, STAGE_BOOT_ID_SIZE, text) < 0)
		out[0] = 0;
}

/*
 * The ctime that a change gets now. Since Linux 6.13 an inode that was looked at gets a fine stamp for its next change,
 * and no inode gets an older one after that: what was written a moment before the start lies before this stamp, though
 * not before the coarse clock, and what comes later does not. Before 6.13 it is the coarse clock. 0: not known.
 */
static uint64_t stamp_ns(int stage_fd)
{
	struct stat st;

	if (fstat(stage_fd, &st) < 0)
		return 0;
	/* The first one may fall into a new tick, which is stamp enough for the kernel; the second cannot. */
	for (int i = 0; i < 2; i++)
		if (fchmod(stage_fd, st.st_mode & 07777) < 0 || fstat(stage_fd, &st) < 0)
			return 0;
	return (uint64_t)st.st_ctim.tv_sec * 1000000000ULL + (uint64_t)st.st_ctim.tv_nsec;
}

int stage_record_set_start(struct stage_record *record, int stage_fd)
{
	uint64_t stamp;

	read_boot_id(record->boot_id);
	/* The coarse clock is what the kernel stamps inodes with: the fine one may be ahead of a ctime to come. */
	record->started_realtime_ns = now_ns(CLOCK_REALTIME_COARSE);
	stamp = stamp_ns(stage_fd);
	/* A file system that has the time from elsewhere, or keeps whole seconds, says nothing. */
	if (stamp > record->started_realtime_ns && stamp <= now_ns(CLOCK_REALTIME))
		record->started_realtime_ns = stamp;
	/* What the fine clock is ahead of it is taken off again, so that both numbers mean the same moment. */
	record->started_boottime_ns =
		now_ns(CLOCK_BOOTTIME) - (now_ns(CLOCK_REALTIME) - record->started_realtime_ns);
	return record->started_realtime_ns ? 0 : -EIO;
}

static bool path_is_valid(const char *path)
{
	char normal[PATH_MAX];

	return path && path[0] == '/' && path_normalise(normal, sizeof normal, path) == 0 && str_equal(normal, path);
}

static int append(struct stage_record *record, const struct stage_tree *tree, const char *path)
{
	struct stage_tree *trees;

	if (record->tree_count >= STAGE_TREES_MAX)
		return -E2BIG;
	trees = reallocarray(record->trees, record->tree_count + 1, sizeof *trees);
	if (!trees)
		return -ENOMEM;
	record->trees = trees;
	trees[record->tree_count] = *tree;
	trees[record->tree_count].path = str_dup(path);
	if (!trees[record->tree_count].path)
		return -ENOMEM;
	return (int)record->tree_count++;
}

int stage_record_add_tree(struct stage_record *record, int host_fd, const char *path, const struct stage_tree *ids)
{
	struct stage_tree tree = *ids;
	struct stat st;
	int r;

	if (!path_is_valid(path))
		return -EINVAL;
	if (fstat(host_fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	r = stage_tree_identify(host_fd, &tree);
	return r < 0 ? r : append(record, &tree, path);
}

static int put_record(struct buf *out, const struct stage_record *record)
{
	frame_begin(out, frame_types[record->form]);
	frame_put_string(out, record->session);
	frame_put_string(out, record->origin);
	frame_put_u64(out, record->started_realtime_ns);
	frame_put_u64(out, record->started_boottime_ns);
	frame_put_string(out, record->boot_id);
	frame_put_u32(out, (uint32_t)record->tree_count);
	for (size_t i = 0; i < record->tree_count; i++) {
		const struct stage_tree *tree = &record->trees[i];

		frame_put_string(out, tree->path);
		frame_put_u64(out, tree->device);
		frame_put_u64(out, tree->inode);
		frame_put_u64(out, tree->birth_ns);
		frame_put_u64(out, tree->filesystem);
		frame_put_u32(out, tree->owner_uid);
		frame_put_u32(out, tree->owner_gid);
		frame_put_u32(out, tree->jail_uid);
		frame_put_u32(out, tree->jail_gid);
	}
	return frame_end(out);
}

int stage_record_store(int stage_fd, const struct stage_record *record)
{
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, STAGE_RECORD_MAX);
	r = put_record(&out, record);
	return r < 0 ? r : stage_store_file(stage_fd, STAGE_FILE_TREES, out.bytes, out.size);
}

int stage_record_prepare(int stage_fd)
{
	cleanup_fd int fd = fd_open_at(stage_fd, STAGE_FILE_TREES, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	return fd < 0 ? fd : 0;
}

int stage_record_create(int stage_fd, const struct stage_record *record)
{
	cleanup_fd int fd = FD_NONE;
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, STAGE_RECORD_MAX);
	r = put_record(&out, record);
	if (r == 0)
		r = fd = fd_open_at(stage_fd, STAGE_FILE_TREES, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
	return r < 0 ? r : fd_write_full(fd, out.bytes, out.size);
}

static int get_text(struct frame *frame, char *out, size_t size)
{
	const char *text = frame_get_string(frame);

	return text && str_copy(out, size, text) == 0 ? 0 : -EBADMSG;
}

static int parse_tree(struct frame *frame, struct stage_record *record)
{
	const char *path = frame_get_string(frame);
	struct stage_tree tree = { 0 };
	int r;

	tree.device = frame_get_u64(frame);
	tree.inode = frame_get_u64(frame);
	tree.birth_ns = frame_get_u64(frame);
	tree.filesystem = frame_get_u64(frame);
	tree.owner_uid = frame_get_u32(frame);
	tree.owner_gid = frame_get_u32(frame);
	tree.jail_uid = frame_get_u32(frame);
	tree.jail_gid = frame_get_u32(frame);
	if (frame->error || !path_is_valid(path))
		return -EBADMSG;
	r = append(record, &tree, path);
	return r < 0 ? r : 0;
}

static int parse(struct frame *frame, struct stage_record *record)
{
	uint32_t count;
	int r = 0;

	record->form = frame->type == frame_types[STAGE_FORM_FUSE] ? STAGE_FORM_FUSE : STAGE_FORM_OVERLAY;
	if (frame->type != frame_types[record->form])
		r = -EBADMSG;
	if (r == 0)
		r = get_text(frame, record->session, sizeof record->session);
	if (r == 0)
		r = get_text(frame, record->origin, sizeof record->origin);
	record->started_realtime_ns = frame_get_u64(frame);
	record->started_boottime_ns = frame_get_u64(frame);
	if (r == 0)
		r = get_text(frame, record->boot_id, sizeof record->boot_id);
	count = frame_get_u32(frame);
	if (r == 0 && (!stage_session_is_valid(record->session) || !stage_session_is_valid(record->origin) ||
		       !count || count > STAGE_TREES_MAX))
		r = -EBADMSG;
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = parse_tree(frame, record);
	return r < 0 ? r : frame_finish(frame);
}

int stage_record_parse(void *bytes, size_t size, struct stage_record *ret_record)
{
	struct stage_record record = { 0 };
	struct frame frame;
	int r = frame_open(&frame, bytes, size);

	if (r == 0)
		r = parse(&frame, &record);
	if (r < 0) {
		stage_record_done(&record);
		return r;
	}
	*ret_record = record;
	return 0;
}

int stage_record_load(int stage_fd, struct stage_record *ret_record)
{
	cleanup_free char *bytes = NULL;
	size_t size;
	int r = stage_load_file(stage_fd, STAGE_FILE_TREES, STAGE_RECORD_MAX, &bytes, &size);

	return r < 0 ? r : stage_record_parse(bytes, size, ret_record);
}

int stage_record_explain(const char *session, int r, struct err *err)
{
	if (r == -EBADMSG)
		err_set(err, ERR_STATE, EBADMSG, "stage",
			"the staged changes of session %s cannot be read: another version of atoll wrote them, or "
			"they are damaged",
			session);
	else
		err_set(err, ERR_STATE, -r, "stage", "the staged changes of session %s cannot be read: %s", session,
			err_errno_name(-r));
	err_hint(err, "atoll discard %s removes them", session);
	return r;
}

uint64_t stage_record_start_ns(const struct stage_record *record)
{
	uint64_t start = record->started_realtime_ns, realtime, since;

	if (stage_record_is_other_boot(record))
		return start;
	since = now_ns(CLOCK_BOOTTIME);
	if (since < record->started_boottime_ns)
		return start;
	since -= record->started_boottime_ns;
	realtime = now_ns(CLOCK_REALTIME);
	if (realtime < since)
		return 0;
	/* A clock that is slewed takes both along; only a step parts them. */
	return realtime - since < start ? realtime - since : start;
}

bool stage_record_is_other_boot(const struct stage_record *record)
{
	char now[STAGE_BOOT_ID_SIZE];

	read_boot_id(now);
	return !*now || !str_equal(now, record->boot_id);
}

int stage_tree_identify(int fd, struct stage_tree *tree)
{
	struct statfs filesystem;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	tree->device = st.st_dev;
	tree->inode = st.st_ino;
	tree->filesystem = 0;
	_Static_assert(sizeof filesystem.f_fsid == sizeof tree->filesystem, "an id of a file system is two words");
	if (fstatfs(fd, &filesystem) == 0)
		memcpy(&tree->filesystem, &filesystem.f_fsid, sizeof tree->filesystem);
	else
		filesystem.f_type = 0;
	/* Of a directory in an overlay it is another one once something in it was written, which an apply does. */
	if (filesystem.f_type == OVERLAYFS_SUPER_MAGIC || path_birth_ns(fd, ".", &tree->birth_ns) < 0)
		tree->birth_ns = 0;
	return 0;
}

bool stage_tree_is(const struct stage_tree *a, const struct stage_tree *b)
{
	if (a->inode != b->inode || a->birth_ns != b->birth_ns)
		return false;
	return a->device == b->device || (a->birth_ns && a->filesystem && a->filesystem == b->filesystem);
}

int stage_tree_open(const struct stage_tree *tree, struct err *err)
{
	/* The path was real at the start; a link in it now leads elsewhere. */
	cleanup_fd int fd = path_open2(AT_FDCWD, tree->path, O_RDONLY | O_DIRECTORY, 0,
				       STAGE_RESOLVE_NO_LINKS);
	struct stage_tree now;
	int r;

	if (fd < 0) {
		err_set(err, ERR_STATE, -fd, "stage", "the staged tree %s cannot be opened: %s", tree->path,
			err_errno_name(-fd));
		return fd;
	}
	r = stage_tree_identify(fd, &now);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "stage", "%s: %s", tree->path, err_errno_name(-r));
	if (!stage_tree_is(tree, &now)) {
		err_set(err, ERR_STATE, ESTALE, "stage", "%s is another directory than the one that was staged",
			tree->path);
		err_hint(err, "move the staged directory back to its place");
		return -ESTALE;
	}
	return take_fd(&fd);
}
