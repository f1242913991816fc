/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/merging.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll-stage/merger.h"
#include "prog/atoll-stage/text.h"

#define MERGED_DIRECTORY "merged"

enum { MERGES_MAX = 1000 };

void merging_done(struct merging *merging)
{
	close_fd(&merging->socket_fd);
	for (size_t i = 0; i < merging->count; i++) {
		/* A clean merge is in the project by now. */
		if (merging->names && merging->names[i])
			unlinkat(merging->dir_fd, merging->names[i], 0);
		if (merging->names)
			free(merging->names[i]);
		if (merging->files)
			free(merging->files[i]);
	}
	free(merging->names);
	free(merging->files);
	close_fd(&merging->dir_fd);
	*merging = MERGING_NONE;
}

int merging_start(struct merging *ret_merging, const struct opened *opened, struct err *err)
{
	int tree_fds[STAGE_TREES_MAX], r;

	for (size_t i = 0; i < opened->record.tree_count; i++)
		tree_fds[i] = opened->stacks[i].host_fd;
	r = path_remove_tree(opened->stage_fd, MERGED_DIRECTORY);
	if (r == 0 && mkdirat(opened->stage_fd, MERGED_DIRECTORY, 0700) < 0)
		r = -errno;
	if (r == 0)
		r = ret_merging->dir_fd = fd_open_at(opened->stage_fd, MERGED_DIRECTORY,
						     O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "apply", "a place for merges cannot be made: %s", strerror(-r));
	r = merger_start(tree_fds, opened->record.tree_count, err);
	if (r < 0)
		return r;
	ret_merging->socket_fd = r;
	return 0;
}

static bool is_mergeable(const struct apply_item *item)
{
	const struct stage_change *change = item->change;

	return item->verdict == APPLY_CONFLICT && change->staged_exists && change->host_exists &&
	       S_ISREG(change->staged.st_mode) && S_ISREG(change->host.st_mode);
}

/* The answer of the child; the merge is in *ret_fd, owned by the caller. -EPIPE when the child is gone. */
static int ask(struct merging *merging, const struct opened *opened, const struct stage_change *change,
	       const struct text sides[2], int *ret_fd)
{
	char message[sizeof(struct merger_request) + MERGER_PATH_MAX];
	struct merger_request request = { .start_ns = opened->start_ns };
	cleanup_fd int host_fd = fd_memfd_sealed("host", sides[0].bytes, sides[0].size);
	cleanup_fd int staged_fd = fd_memfd_sealed("staged", sides[1].bytes, sides[1].size);
	cleanup_fd int out_fd = memfd_create("merge", MFD_CLOEXEC);
	const char *tree = opened->record.trees[change->tree].path;
	uint8_t answer;
	size_t count;

	if (host_fd < 0 || staged_fd < 0 || out_fd < 0)
		return -EMFILE;
	memcpy(message, &request, sizeof request);
	/* A path that git could not be told. */
	if (str_format(message + sizeof request, MERGER_PATH_MAX, "%s/%s", str_equal(tree, "/") ? "" : tree,
		       change->path) < 0)
		return MERGER_NONE;
	if (fd_send_message(merging->socket_fd, message,
			    sizeof request + strlen(message + sizeof request) + 1,
			    (const int[]){ host_fd, staged_fd, out_fd }, MERGER_FDS) < 0 ||
	    fd_receive_message(merging->socket_fd, &answer, sizeof answer, NULL, 0, &count) != 1)
		return -EPIPE;
	*ret_fd = take_fd(&out_fd);
	return answer <= MERGER_NONE ? answer : MERGER_NONE;
}

static int read_merge(int fd, char **ret_bytes, size_t *ret_size)
{
	cleanup_free char *bytes = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	if (st.st_size > 2 * MERGER_TEXT_MAX)
		return -EFBIG;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	r = fd_read_full(fd, bytes, (size_t)st.st_size);
	if (r < 0)
		return r;
	*ret_bytes = take_ptr(bytes);
	*ret_size = (size_t)st.st_size;
	return 0;
}

/* Writes a merge to stage/merged/INDEX-NAME, with the mode that the staged file has. The name, or NULL. */
static char *store(struct merging *merging, size_t index, const struct stage_change *change, const char *bytes,
		   size_t size)
{
	const char *base = path_basename(change->path);
	cleanup_free char *name = str_printf("%zu-%.200s", index, base);
	cleanup_fd int fd = FD_NONE;

	if (!name)
		return NULL;
	fd = fd_open_at(merging->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0 || fd_write_full(fd, bytes, size) < 0 || fchmod(fd, change->staged.st_mode & 0777) < 0)
		return NULL;
	return take_ptr(name);
}

static int keep_clean(struct merging *merging, size_t index, struct apply_item *item, const char *bytes, size_t size,
		      bool dry_run)
{
	item->merged = "";
	if (!dry_run) {
		merging->names[index] = store(merging, index, item->change, bytes, size);
		item->merged = merging->names[index];
		if (!item->merged)
			return -EIO;
	}
	item->verdict = APPLY_TAKEN;
	return 0;
}

static int keep_marked(struct merging *merging, const struct opened *opened, size_t index,
		       const struct apply_item *item, const char *bytes, size_t size)
{
	cleanup_free char *name = store(merging, index, item->change, bytes, size);

	if (!name)
		return -EIO;
	merging->files[index] = str_printf("%s/sessions/%s/stage/" MERGED_DIRECTORY "/%s", opened->session->state,
					   opened->record.session, name);
	return merging->files[index] ? 0 : -ENOMEM;
}

static int merge_texts(struct merging *merging, const struct opened *opened, size_t index,
		       struct apply_item *item, const struct text sides[2], bool dry_run)
{
	cleanup_fd int fd = FD_NONE;
	cleanup_free char *bytes = NULL;
	size_t size = 0;
	int answer, r;

	if (sides[0].kind != TEXT_LINES || sides[1].kind != TEXT_LINES)
		return 0;
	answer = ask(merging, opened, item->change, sides, &fd);
	if (answer < 0 || answer == MERGER_NONE)
		return answer < 0 ? answer : 0;
	r = read_merge(fd, &bytes, &size);
	if (r < 0)
		return r == -EFBIG ? 0 : r;
	/* The host has all of it already. */
	if (answer == MERGER_CLEAN && size == sides[0].size && memcmp(bytes, sides[0].bytes, size) == 0) {
		item->verdict = APPLY_UNWANTED;
		return 0;
	}
	if (answer == MERGER_CLEAN)
		return keep_clean(merging, index, item, bytes, size, dry_run);
	return dry_run ? 0 : keep_marked(merging, opened, index, item, bytes, size);
}

static int merge_item(struct merging *merging, const struct opened *opened, size_t index, struct apply_item *item,
		      bool dry_run)
{
	struct text sides[2] = { { .kind = TEXT_ABSENT }, { .kind = TEXT_ABSENT } };
	int r = text_load(opened, item->change, SIDE_HOST, MERGER_TEXT_MAX, &sides[0]);

	if (r == 0)
		r = text_load(opened, item->change, SIDE_STAGED, MERGER_TEXT_MAX, &sides[1]);
	if (r == 0)
		r = merge_texts(merging, opened, index, item, sides, dry_run);
	text_done(&sides[0]);
	text_done(&sides[1]);
	return r;
}

int merging_run(struct merging *merging, const struct opened *opened, struct apply *apply, bool dry_run,
		struct err *err)
{
	size_t merges = 0;
	int r = 0;

	merging->count = apply->count;
	merging->files = calloc(apply->count + 1, sizeof *merging->files);
	merging->names = calloc(apply->count + 1, sizeof *merging->names);
	if (!merging->files || !merging->names)
		return err_set(err, ERR_INTERNAL, ENOMEM, "apply", "out of memory");
	apply->merged_fd = merging->dir_fd;
	for (size_t i = 0; i < apply->count && r == 0; i++)
		/* Beyond the bound they stay conflicts, which is what they are without --merge. */
		if (is_mergeable(&apply->items[i]) && merges++ < MERGES_MAX)
			r = merge_item(merging, opened, i, &apply->items[i], dry_run);
	return r < 0 ? err_set(err, ERR_STATE, -r, "apply", "the merge failed: %s", strerror(-r)) : 0;
}
