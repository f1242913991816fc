/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/git/git-change.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-stage/review/text.h"

const char *git_change_path(const struct git_change_context *context, const struct stage_change *change,
			    char full[PATH_MAX])
{
	const char *tree = context->opened->record.trees[change->tree].path, *root = context->root, *inner;
	size_t length = str_equal(root, "/") ? 0 : strlen(root);

	if (!*change->path || str_format(full, PATH_MAX, "%s/%s", str_equal(tree, "/") ? "" : tree, change->path) < 0 ||
	    strncmp(full, root, length) != 0 || full[length] != '/')
		return NULL;
	inner = full + length + 1;
	return git_ignored_is_own(context->ignored, inner) ? NULL : inner;
}

int git_change_open(const struct git_change_context *context, const struct apply_item *item)
{
	const struct stage_change *change = item->change;
	const struct stage_stack *stack = &context->opened->stacks[change->tree];
	struct text target = { 0 };
	int fd, r;

	if (item->merged)
		return fd_open_at(context->apply->merged_fd, item->merged, O_RDONLY | O_NOFOLLOW, 0);
	if (!S_ISLNK(change->staged.st_mode))
		return stage_change_open(stack, change);
	r = text_load(context->opened, change, SIDE_STAGED, PATH_MAX, &target);
	fd = r < 0 ? r : target.kind == TEXT_LINES || target.kind == TEXT_BINARY ? fd_memfd_new("link") : -ESTALE;
	if (fd >= 0 && (fd_write_full(fd, target.bytes, target.size) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		close_fd(&fd);
	text_done(&target);
	return fd;
}

bool git_change_is_still(const struct apply_item *item, int fd)
{
	const struct stat *judged = &item->change->staged;
	struct stat now;

	return item->merged || S_ISLNK(judged->st_mode) ||
	       (fstat(fd, &now) == 0 && now.st_size == judged->st_size &&
		memcmp(&now.st_mtim, &judged->st_mtim, sizeof now.st_mtim) == 0 &&
		memcmp(&now.st_ctim, &judged->st_ctim, sizeof now.st_ctim) == 0);
}

mode_t git_change_mode(const struct stat *st)
{
	return S_ISLNK(st->st_mode) ? 0120000 : st->st_mode & 0100 ? 0100755 : 0100644;
}

bool git_change_is_file(bool exists, const struct stat *st)
{
	return exists && (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode));
}
