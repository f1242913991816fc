/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/layer/remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/record/store.h"

/*
 * Everything lies in a pit, a directory of ours. Down to a few levels directories are emptied where they are; one that
 * lies deeper is moved up into the pit, under a number, and emptied there: whatever the depth, no more than so many are
 * open. A directory is opened by its name only to be read, and as it is our own (or we are root), one that may not be
 * entered is made so first. Nothing is allocated: a guardian does this in a memory that a box has left.
 */

enum { DEPTH_MAX = 3, BATCH_SIZE = 1024 };

struct pit {
	int fd;
	dev_t device;
	unsigned depth;   /* directories that are open above what is looked at */
	uint64_t next;    /* name of the next directory that is moved in */
	uint64_t bytes;
};

/* chmod by the fd and not by the name, which could be a link by then. */
static int open_for_removal(int dir_fd, const char *name)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & 0700) != 0700) {
		int r = path_chmod(fd, 0700);

		if (r < 0)
			return r;
	}
	return path_open2(fd, ".", O_RDONLY | O_DIRECTORY, 0, STAGE_RESOLVE_BENEATH);
}

/* The same of a directory on the pit's device: what is mounted in it is not ours to remove. */
static int open_of_pit(const struct pit *pit, int dir_fd, const char *name)
{
	int fd = open_for_removal(dir_fd, name), r = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (st.st_dev != pit->device)
		r = -EXDEV;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* A directory that is not empty goes into the pit. Moving one to another parent needs write access to itself. */
static int move_to_pit(struct pit *pit, int dir_fd, const char *name)
{
	char number[24];
	cleanup_fd int fd = open_of_pit(pit, dir_fd, name);
	int r;

	if (fd < 0)
		return fd;
	do {
		r = str_format(number, sizeof number, "%llu", (unsigned long long)pit->next++);
		if (r < 0)
			return r;
		/* A crash may have left directories with numbers. */
		r = renameat(dir_fd, name, pit->fd, number) < 0 ? -errno : 0;
	} while (r == -ENOTEMPTY || r == -EEXIST || r == -ENOTDIR);
	return r;
}

static int empty(struct pit *pit, int fd);

static int remove_full(struct pit *pit, int dir_fd, const char *name)
{
	cleanup_fd int fd = open_of_pit(pit, dir_fd, name);
	int r;

	if (fd < 0)
		return fd;
	pit->depth++;
	r = empty(pit, fd);
	pit->depth--;
	if (r < 0)
		return r;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

static int remove_one(struct pit *pit, int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (st.st_nlink <= 1 || S_ISDIR(st.st_mode))
		pit->bytes += (uint64_t)st.st_blocks * 512;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	return pit->depth < DEPTH_MAX ? remove_full(pit, dir_fd, name) : move_to_pit(pit, dir_fd, name);
}

/* Removes the entries of a directory that is read from its beginning, or moves them to the pit. 1: there were some. */
static int empty(struct pit *pit, int fd)
{
	char batch[BATCH_SIZE] __attribute__((aligned(8)));
	long size;
	int r = 0;

	while (r >= 0 && (size = syscall(SYS_getdents64, fd, batch, sizeof batch)) > 0) {
		for (long at = 0; r >= 0 && at < size;) {
			const struct dirent *entry = (const struct dirent *)(batch + at);

			at += entry->d_reclen;
			if (str_equal(entry->d_name, ".") || str_equal(entry->d_name, ".."))
				continue;
			r = remove_one(pit, fd, entry->d_name);
			r = r < 0 ? r : 1;
		}
	}
	return r >= 0 && size < 0 ? -errno : r;
}

/* Again and again: what lay deep came in meanwhile. */
static int empty_pit(struct pit *pit)
{
	int r;

	do {
		if (lseek(pit->fd, 0, SEEK_SET) < 0)
			return -errno;
		r = empty(pit, pit->fd);
	} while (r > 0);
	return r;
}

static int open_pit(int dir_fd, const char *name, struct pit *pit)
{
	struct stat st;

	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	pit->fd = open_for_removal(dir_fd, name);
	if (pit->fd < 0)
		return pit->fd;
	if (fstat(pit->fd, &st) < 0)
		return -errno;
	pit->device = st.st_dev;
	return 0;
}

/* name: what is still to be moved into the pit first; NULL: nothing. */
static int remove_through(int dir_fd, const char *pit_name, const char *name, uint64_t *ret_bytes)
{
	struct pit pit = { .fd = FD_NONE };
	int r = open_pit(dir_fd, pit_name, &pit);

	/* As a whole, so that no half of it is left under its own name. */
	pit.depth = DEPTH_MAX;
	if (r == 0 && name)
		r = remove_one(&pit, dir_fd, name);
	pit.depth = 0;
	if (r == 0)
		r = empty_pit(&pit);
	close_fd(&pit.fd);
	if (r == 0 && unlinkat(dir_fd, pit_name, AT_REMOVEDIR) < 0)
		r = -errno;
	if (ret_bytes)
		*ret_bytes += pit.bytes;
	return r;
}

int stage_remove_tree(int dir_fd, const char *name, uint64_t *ret_bytes)
{
	char pit_name[NAME_MAX + 1];
	int r = str_format(pit_name, sizeof pit_name, "%s.gone", name);

	return r < 0 ? r : remove_through(dir_fd, pit_name, name, ret_bytes);
}

int stage_remove_rest(int dir_fd, const char *name, uint64_t *ret_bytes)
{
	char pit_name[NAME_MAX + 1];
	int r = str_format(pit_name, sizeof pit_name, "%s.gone", name);

	return r < 0 ? r : remove_through(dir_fd, pit_name, NULL, ret_bytes);
}
