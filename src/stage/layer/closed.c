/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/layer/closed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/record/store.h"

#define LOCK_NAME "closed"

enum { LENT = S_IRUSR | S_IXUSR, LOCKS_MAX = 2 };

struct lent {
	dev_t device;
	ino_t inode;
	mode_t mode;              /* what it had */
	int fd;                   /* owned, O_PATH */
};

struct stage_closed {
	struct lent items[STAGE_CLOSED_MAX];
	size_t count;
	int locks[LOCKS_MAX];     /* owned */
	size_t lock_count;
	int keeper_fd, done_fd;   /* owned: closing the first one ends the keeper, the second one tells; FD_NONE */
	sigset_t mask;            /* while modes are lent and nobody keeps them yet, no signal may end us */
};

int stage_closed_new(struct stage_closed **ret_closed)
{
	*ret_closed = geteuid() != 0 ? calloc(1, sizeof **ret_closed) : NULL;
	if (!*ret_closed)
		return geteuid() != 0 ? -ENOMEM : 0;
	(*ret_closed)->keeper_fd = (*ret_closed)->done_fd = FD_NONE;
	return 0;
}

static bool is_closed(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && (st->st_mode & LENT) != LENT && st->st_uid == geteuid();
}

static int lend(struct stage_closed *closed, int path_fd)
{
	struct stat st;
	sigset_t all;
	int fd, r;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!is_closed(&st) || closed->count == STAGE_CLOSED_MAX)
		return -EACCES;
	fd = fd_duplicate(path_fd);
	if (fd < 0)
		return fd;
	sigfillset(&all);
	if (!closed->count)
		sigprocmask(SIG_SETMASK, &all, &closed->mask);
	closed->items[closed->count++] = (struct lent){ st.st_dev, st.st_ino, st.st_mode, fd };
	r = path_chmod(fd, st.st_mode | LENT);
	return r;
}

int stage_closed_open(struct stage_closed *closed, int path_fd)
{
	int r = closed ? lend(closed, path_fd) : -EACCES;

	return r < 0 ? r : fd_open_at(path_fd, ".", O_RDONLY | O_DIRECTORY, 0);
}

static int scan(struct stage_closed *closed, int dir_fd, unsigned depth);

static int scan_entry(struct stage_closed *closed, int dir_fd, const char *name, unsigned depth)
{
	cleanup_fd int path_fd = FD_NONE, fd = FD_NONE;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (is_closed(&st)) {
		path_fd = path_open2(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, STAGE_RESOLVE_BENEATH);
		if (path_fd < 0 || lend(closed, path_fd) < 0)
			return 0;
	}
	/* No directory is in it: most file systems say so, and others say 1. */
	if (st.st_nlink == 2 || depth == STAGE_CLOSED_DEPTH_MAX)
		return 0;
	fd = path_open2(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, STAGE_RESOLVE_BENEATH);
	return fd < 0 ? 0 : scan(closed, fd, depth + 1);
}

static int scan(struct stage_closed *closed, int dir_fd, unsigned depth)
{
	DIR *dir = path_list(fd_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0));
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return 0;
	while (r == 0 && (entry = readdir(dir)))
		if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && !str_equal(entry->d_name, ".") &&
		    !str_equal(entry->d_name, ".."))
			r = scan_entry(closed, dir_fd, entry->d_name, depth);
	closedir(dir);
	return r;
}

int stage_closed_scan(struct stage_closed *closed, int layer_fd)
{
	struct stat st;

	if (!closed || fstat(layer_fd, &st) < 0 || st.st_nlink == 2)
		return 0;
	return scan(closed, layer_fd, 0);
}

int stage_closed_lock(struct stage_closed *closed, int stage_fd)
{
	int flags = closed && closed->count ? O_RDWR | O_CREAT : O_RDWR, fd;

	if (!closed || closed->lock_count == LOCKS_MAX)
		return 0;
	fd = fd_open_at(stage_fd, LOCK_NAME, flags | O_NOFOLLOW, 0600);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	closed->locks[closed->lock_count++] = fd;
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -EBUSY : 0;
}

/* What somebody else has changed meanwhile stays. The last one first: it may lie in another one. */
static void give_back(const struct stage_closed *closed)
{
	for (size_t i = closed->count; i-- > 0;) {
		const struct lent *lent = &closed->items[i];
		struct stat st;

		if (fstat(lent->fd, &st) == 0 && st.st_mode == (lent->mode | LENT))
			(void)!path_chmod(lent->fd, lent->mode);
	}
}

/* All signals are blocked here. */
static _Noreturn void be_keeper(const struct stage_closed *closed, int keeper_fd)
{
	char byte;

	while (read(keeper_fd, &byte, 1) < 0 && errno == EINTR)
		;
	give_back(closed);
	_exit(0);
}

int stage_closed_keep(struct stage_closed *closed)
{
	int wait[2], done[2];
	pid_t pid;

	if (!closed || !closed->count || closed->keeper_fd >= 0)
		return 0;
	if (pipe2(wait, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(done, O_CLOEXEC) < 0) {
		close(wait[0]);
		close(wait[1]);
		return -errno;
	}
	pid = fork();
	if (pid == 0) {
		/* What our caller reads to its end must end with us. */
		for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
			close(fd);
		close(wait[1]);
		close(done[0]);
		be_keeper(closed, wait[0]);
	}
	close(wait[0]);
	close(done[1]);
	closed->keeper_fd = wait[1];
	closed->done_fd = done[0];
	if (pid < 0)
		return -EAGAIN;
	sigprocmask(SIG_SETMASK, &closed->mask, NULL);
	return 0;
}

mode_t stage_closed_mode(const struct stage_closed *closed, const struct stat *st)
{
	for (size_t i = 0; closed && i < closed->count; i++)
		if (closed->items[i].inode == st->st_ino && closed->items[i].device == st->st_dev &&
		    st->st_mode == (closed->items[i].mode | LENT))
			return closed->items[i].mode;
	return st->st_mode;
}

void stage_closed_free(struct stage_closed *closed)
{
	char byte;

	if (!closed)
		return;
	if (closed->keeper_fd >= 0) {
		close_fd(&closed->keeper_fd);
		while (read(closed->done_fd, &byte, 1) < 0 && errno == EINTR)
			;
		close_fd(&closed->done_fd);
	} else if (closed->count) {
		give_back(closed);
		sigprocmask(SIG_SETMASK, &closed->mask, NULL);
	}
	for (size_t i = 0; i < closed->count; i++)
		close_fd(&closed->items[i].fd);
	for (size_t i = 0; i < closed->lock_count; i++)
		close_fd(&closed->locks[i]);
	free(closed);
}
