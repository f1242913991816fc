/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

enum { DEPTH_MAX = 256, BLOCK_SIZE = 256 << 10 };

struct copy {
	struct image_target *target;
	dev_t device;
	unsigned depth;
	char *block;                 /* owned */
	char path[PATH_MAX];         /* of what is copied; "" is the root */
	struct err *err;
};

static int fail(struct copy *copy, int r)
{
	char shown[ERR_QUOTE_SIZE];

	if (copy->err->code == ERR_NONE)
		err_set(copy->err, ERR_STATE, -r, "import", "/%s cannot be copied: %s", err_quote(shown, copy->path),
			err_errno_name(-r));
	return r;
}

static int copy_file(struct copy *copy, int parent, const char *name, mode_t mode)
{
	cleanup_fd int from = fd_open_at(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0), to = FD_NONE;
	uint64_t end = 0;
	struct stat st;
	ssize_t n = 0;
	int r;

	if (from < 0)
		return from;
	/* Another file than a moment ago. */
	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return -ESTALE;
	to = image_put_file(copy->target, copy->path, mode);
	r = to < 0 ? to : 0;
	while (r == 0 && (n = read(from, copy->block, BLOCK_SIZE)) > 0)
		r = image_write(copy->target, to, copy->block, (size_t)n, end, &end);
	if (r == 0 && (n < 0 || futimens(to, (struct timespec[]){ { .tv_nsec = UTIME_OMIT }, st.st_mtim }) < 0))
		r = -errno;
	return r;
}

static int copy_link(struct copy *copy, int parent, const char *name)
{
	char text[PATH_MAX];
	ssize_t size = readlinkat(parent, name, text, sizeof text - 1);

	if (size <= 0)
		return size < 0 ? -errno : -EINVAL;
	text[size] = 0;
	return image_put_symlink(copy->target, copy->path, text);
}

static int copy_below(struct copy *copy, int fd);

static int copy_directory(struct copy *copy, int parent, const char *name, const struct stat *st)
{
	cleanup_fd int fd = FD_NONE;
	int r = image_put_directory(copy->target, copy->path, st->st_mode);

	/* What is mounted there is another system's affair: the directory stays empty. */
	if (r < 0 || st->st_dev != copy->device)
		return r;
	fd = fd_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd < 0 ? fd : copy_below(copy, fd);
}

static int copy_entry(struct copy *copy, int parent, const char *name)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return copy_directory(copy, parent, name, &st);
	if (S_ISREG(st.st_mode))
		return copy_file(copy, parent, name, st.st_mode);
	if (S_ISLNK(st.st_mode))
		return copy_link(copy, parent, name);
	copy->target->counts.left_out++;
	return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_entry(const struct dirent *entry)
{
	return !str_equal(entry->d_name, ".") && !str_equal(entry->d_name, "..");
}

static int copy_below(struct copy *copy, int fd)
{
	size_t length = strlen(copy->path);
	struct dirent **names = NULL;
	int count, r;

	if (++copy->depth > DEPTH_MAX)
		return fail(copy, -ELOOP);
	count = scandirat(fd, ".", &names, is_entry, by_name);
	r = count < 0 ? -errno : 0;
	for (int i = 0; i < count; i++) {
		if (r == 0)
			r = str_format(copy->path + length, sizeof copy->path - length, "%s%s", length ? "/" : "",
				       names[i]->d_name);
		if (r == 0)
			r = copy_entry(copy, fd, names[i]->d_name);
		if (r < 0)
			(void)!fail(copy, r);
		copy->path[length] = 0;
		free(names[i]);
	}
	free(names);
	copy->depth--;
	return r;
}

int tree_copy(struct image_target *target, int fd, struct err *err)
{
	struct copy copy = { .target = target, .block = malloc(BLOCK_SIZE), .err = err };
	struct stat st;
	int r = !copy.block ? -ENOMEM : fstat(fd, &st) < 0 ? -errno : 0;

	copy.device = r == 0 ? st.st_dev : 0;
	if (r == 0)
		r = copy_below(&copy, fd);
	free(copy.block);
	return r < 0 ? fail(&copy, r) : 0;
}
