/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/stdio.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "os/fd.h"

/*
 * Opening /dev/stdin or /dev/stderr opens the pipe anew, by its mode, and where root starts a sandbox what is inside
 * has another uid than the pipe's owner. Anonymous pipes alone: they have no name, so that only who may look into a
 * process that holds one gets that far; a FIFO's mode is the user's.
 */
enum { CAN_READ = 0644, CAN_WRITE = 0622 };

static int let_reopen(int fd, mode_t mode)
{
	struct statfs fs;

	if (geteuid() != 0)
		return 0;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	return fs.f_type != PIPEFS_MAGIC || fchmod(fd, mode) == 0 ? 0 : -errno;
}

int stdio_let_reopen(int fd, int which)
{
	return let_reopen(fd, which == STDIO_IN ? CAN_READ : CAN_WRITE);
}

static int open_output(struct stdio *stdio, struct loop *loop, int which, int user_fd)
{
	struct relay *relay = &stdio->relays[which];
	int ends[2], copy, r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	stdio->inside[which] = ends[1];
	r = let_reopen(ends[1], CAN_WRITE);
	copy = r < 0 ? r : fd_duplicate(user_fd);
	if (copy < 0) {
		close(ends[0]);
		return copy;
	}
	return relay_open(relay, loop, ends[0], copy);
}

/* A pipe's description may be handed in as it is: it leads nowhere else. */
static bool can_pass(const struct stat *st, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return S_ISFIFO(st->st_mode) && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH);
}

static int open_empty_input(struct stdio *stdio)
{
	int fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);

	stdio->inside[STDIO_IN] = fd;
	return fd < 0 ? fd : 0;
}

static int relay_input(struct stdio *stdio, struct loop *loop, int user_fd, const struct stat *st)
{
	struct relay *relay = &stdio->relays[STDIO_IN];
	int ends[2], in, r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	stdio->inside[STDIO_IN] = ends[0];
	stdio->input_pipe_fd = fd_duplicate(ends[0]);
	r = let_reopen(ends[0], CAN_READ);
	in = r < 0 ? r : fd_duplicate(user_fd);
	if (in < 0) {
		close(ends[1]);
		return in;
	}
	if (S_ISREG(st->st_mode))
		stdio->input_fd = fd_duplicate(user_fd);
	relay->out_is_own = true;
	return relay_open(relay, loop, in, ends[1]);
}

static int open_input(struct stdio *stdio, struct loop *loop, int user_fd)
{
	struct stat st;

	if (fstat(user_fd, &st) < 0)
		return -errno;
	if (can_pass(&st, user_fd)) {
		stdio->inside[STDIO_IN] = fd_duplicate(user_fd);
		return stdio->inside[STDIO_IN] < 0 ? stdio->inside[STDIO_IN] : let_reopen(user_fd, CAN_READ);
	}
	if (S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode))
		return relay_input(stdio, loop, user_fd, &st);
	return open_empty_input(stdio); /* /dev/null, directories, a terminal that is not ours to read from */
}

static int open_error(struct stdio *stdio, struct loop *loop, const int fds[STDIO_COUNT], unsigned which)
{
	/* One pipe for both where the user has one file for both: two would lose the order of the lines. */
	if (!(which & 1 << STDIO_OUT) || !fd_is_same_file(fds[STDIO_OUT], fds[STDIO_ERR]))
		return open_output(stdio, loop, STDIO_ERR, fds[STDIO_ERR]);
	stdio->inside[STDIO_ERR] = fd_duplicate(stdio->inside[STDIO_OUT]);
	return stdio->inside[STDIO_ERR] < 0 ? stdio->inside[STDIO_ERR] : 0;
}

int stdio_open(struct stdio *stdio, struct loop *loop, const int fds[STDIO_COUNT], unsigned which,
	       int (*on_output)(void *context, uint64_t n), void *context)
{
	int r = 0;

	*stdio = (struct stdio){ .inside = { FD_NONE, FD_NONE, FD_NONE },
				 .input_fd = FD_NONE,
				 .input_pipe_fd = FD_NONE };
	for (int i = STDIO_OUT; i <= STDIO_ERR; i++) {
		stdio->relays[i].on_bytes = on_output;
		stdio->relays[i].context = context;
	}
	if (which & 1 << STDIO_IN)
		r = open_input(stdio, loop, fds[STDIO_IN]);
	if (r == 0 && which & 1 << STDIO_OUT)
		r = open_output(stdio, loop, STDIO_OUT, fds[STDIO_OUT]);
	if (r == 0 && which & 1 << STDIO_ERR)
		r = open_error(stdio, loop, fds, which);
	if (r < 0)
		stdio_close(stdio);
	return r;
}

void stdio_close_inside(struct stdio *stdio)
{
	for (int i = 0; i < STDIO_COUNT; i++)
		close_fd(&stdio->inside[i]);
}

bool stdio_has_output(const struct stdio *stdio)
{
	return stdio->relays[STDIO_OUT].is_open || stdio->relays[STDIO_ERR].is_open;
}

void stdio_close_input(struct stdio *stdio)
{
	struct relay *relay = &stdio->relays[STDIO_IN];
	int unread = 0;

	if (stdio->input_fd >= 0 && stdio->input_pipe_fd >= 0 &&
	    ioctl(stdio->input_pipe_fd, FIONREAD, &unread) == 0) {
		/* `while read line; do atoll run -- cmd; done <file`: what cmd left belongs to the loop. */
		unread += (int)(relay->pending_size - relay->pending_at);
		if (unread > 0)
			lseek(stdio->input_fd, -(off_t)unread, SEEK_CUR);
	}
	relay_close(relay);
	close_fd(&stdio->input_fd);
	close_fd(&stdio->input_pipe_fd);
}

void stdio_close(struct stdio *stdio)
{
	stdio_close_inside(stdio);
	stdio_close_input(stdio);
	for (int i = STDIO_OUT; i <= STDIO_ERR; i++)
		relay_close(&stdio->relays[i]);
}

int stdio_lost(const struct stdio *stdio, const char **ret_name)
{
	static const char *const names[STDIO_COUNT] = { [STDIO_OUT] = "stdout", [STDIO_ERR] = "stderr" };

	for (int i = STDIO_OUT; i <= STDIO_ERR; i++) {
		if (!stdio->relays[i].lost_errno)
			continue;
		*ret_name = names[i];
		return stdio->relays[i].lost_errno;
	}
	return 0;
}
