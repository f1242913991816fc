/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/relay.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"

/*
 * O_NONBLOCK belongs to the open file description, which the user's shell shares: setting it there
 * breaks the shell. Pipes, FIFOs and terminals are therefore opened anew through /proc/self/fd, sockets are
 * written with MSG_DONTWAIT, regular files do not block, and for what is left a write of at most PIPE_BUF
 * after POLLOUT is the way.
 */

enum { SPLICE_MAX = 1 << 20, SPLICE_MIN = 16 << 10 };

int relay_reopen(int fd, int flags)
{
	char path[32];
	int r = str_format(path, sizeof path, "/proc/self/fd/%d", fd);

	return r < 0 ? r : fd_open_at(AT_FDCWD, path, flags | O_NONBLOCK, 0);
}

static int prepare_out(struct relay *relay)
{
	struct stat st;
	int reopened;

	if (fstat(relay->out, &st) < 0)
		return -errno;
	relay->out_is_file = S_ISREG(st.st_mode);
	relay->can_splice = S_ISFIFO(st.st_mode);
	/* Never reopen a pty's master: that would be another pty. */
	if (relay->out_is_own)
		return fd_set_nonblocking(relay->out, true);
	if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)) {
		relay->out_is_shared = !S_ISREG(st.st_mode);
		return 0;
	}
	reopened = relay_reopen(relay->out, O_WRONLY);
	if (reopened < 0) {
		relay->out_is_shared = true;
		relay->can_splice = false;
		return 0;
	}
	close_fd(&relay->out);
	relay->out = reopened;
	return 0;
}

/* The user's input is shared too: regular files are read when out has room, sockets with MSG_DONTWAIT. */
static int prepare_in(struct relay *relay)
{
	struct stat st;

	if (fstat(relay->in, &st) < 0)
		return -errno;
	relay->in_is_file = S_ISREG(st.st_mode);
	relay->in_is_socket = S_ISSOCK(st.st_mode);
	if (relay->in_is_socket)
		relay->can_splice = false;
	return relay->in_is_file || relay->in_is_socket || relay->in_is_shared
		       ? 0
		       : fd_set_nonblocking(relay->in, true);
}

/*
 * A reader that has left, or a terminal that was hung up, wants no more: that is no failure. All else (a full disk, a
 * limit on the size of files) loses what somebody asked for.
 */
static void note_loss(struct relay *relay, int errnum)
{
	if (errnum == EPIPE || errnum == ECONNRESET || (errnum == EIO && isatty(relay->out)))
		return;
	relay->lost_errno = errnum;
}

static void finish(struct relay *relay)
{
	void (*on_close)(void *) = relay->on_close;
	void *context = relay->context;

	relay_close(relay);
	if (on_close)
		on_close(context);
}

/* Waits for room in out instead of for input. */
static int wait_for_out(struct relay *relay)
{
	int r;

	if (relay->out_is_file)
		return 0;
	r = loop_change(relay->loop, &relay->in_source, 0);
	if (r == 0)
		r = loop_change(relay->loop, &relay->out_source, EPOLLOUT);
	/* /dev/null and its like are always writable and unknown to epoll. */
	if (r == 0)
		r = loop_add(relay->loop, &relay->out_source);
	if (r == -EPERM) {
		relay->out_is_file = true;
		r = loop_change(relay->loop, &relay->in_source, EPOLLIN);
	}
	return r;
}

static int wait_for_in(struct relay *relay)
{
	if (relay->in_is_file)
		return wait_for_out(relay);
	loop_remove(relay->loop, &relay->out_source);
	return loop_change(relay->loop, &relay->in_source, EPOLLIN);
}

static ssize_t write_some(struct relay *relay)
{
	const uint8_t *at = relay->pending + relay->pending_at;
	size_t size = relay->pending_size - relay->pending_at;
	struct pollfd pollfd = { .fd = relay->out, .events = POLLOUT };
	ssize_t n;

	if (relay->out_is_shared) {
		n = send(relay->out, at, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0 || errno != ENOTSOCK)
			return n < 0 ? -errno : n;
		if (poll(&pollfd, 1, 0) == 0)
			return -EAGAIN;
		size = size < PIPE_BUF ? size : PIPE_BUF;
	}
	n = write(relay->out, at, size);
	return n < 0 ? -errno : n;
}

/* 1: all pending bytes are out; 0: out is full or gone (then the relay is closed). */
static int flush(struct relay *relay)
{
	while (relay->pending_at < relay->pending_size) {
		ssize_t n = write_some(relay);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			return wait_for_out(relay);
		if (n < 0) {
			note_loss(relay, (int)-n);
			finish(relay);
			return 0;
		}
		relay->pending_at += (uint32_t)n;
	}
	relay->pending_at = relay->pending_size = 0;
	return 1;
}

static int account(struct relay *relay, size_t n)
{
	relay->moved_bytes += n;
	return relay->on_bytes ? relay->on_bytes(relay->context, n) : 0;
}

/* What follows once n bytes were accounted: 1 (go on), 0 (the relay has ended), negative. */
static int after_account(struct relay *relay, int r)
{
	if (r <= 0)
		return r < 0 ? r : 1;
	finish(relay);
	return 0;
}

/* 1: moved something; 0: nothing to do now, or the relay has ended. */
static int move_by_splice(struct relay *relay)
{
	struct pollfd out = { .fd = relay->out, .events = POLLOUT };
	ssize_t n = splice(relay->in, NULL, relay->out, NULL, SPLICE_MAX, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (n > 0)
		return after_account(relay, account(relay, (size_t)n));
	if (n < 0 && errno == EINVAL) {
		relay->can_splice = false;
		return 1;
	}
	if (n < 0 && errno == EAGAIN)
		return poll(&out, 1, 0) == 0 ? wait_for_out(relay) : 0;
	if (n < 0 && errno == EINTR)
		return 1;
	finish(relay);
	return 0;
}

static int move_by_copy(struct relay *relay)
{
	ssize_t n;
	int r;

	if (!relay->pending)
		relay->pending = malloc(RELAY_CHUNK);
	if (!relay->pending)
		return -ENOMEM;
	n = relay->in_is_socket ? recv(relay->in, relay->pending, RELAY_CHUNK, MSG_DONTWAIT)
				: read(relay->in, relay->pending, RELAY_CHUNK);
	if (n < 0 && errno == EINTR)
		return 1;
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0) { /* the end, or EIO of a terminal whose other side is gone */
		finish(relay);
		return 0;
	}
	relay->pending_at = 0;
	relay->pending_size = (uint32_t)n;
	r = after_account(relay, account(relay, (size_t)n));
	return r <= 0 ? r : flush(relay);
}

/*
 * What is spliced fills a whole slot of the pipe, however little it is, and there are sixteen of them, or two where the
 * user has many pipes: some short lines that nobody reads yet would fill it. What is written shares a page with what is
 * there. So only much is spliced.
 */
static bool is_worth_a_splice(const struct relay *relay)
{
	int waiting = 0;

	return ioctl(relay->in, FIONREAD, &waiting) < 0 || waiting >= SPLICE_MIN;
}

static int move(struct relay *relay)
{
	int r;

	if (!relay->can_splice)
		return move_by_copy(relay);
	if (is_worth_a_splice(relay))
		return move_by_splice(relay);
	r = move_by_copy(relay);
	/* The next time may be long in coming. */
	if (relay->is_open && !relay->pending_size) {
		free(relay->pending);
		relay->pending = NULL;
	}
	return r;
}

static int in_ready(void *context, uint32_t events)
{
	struct relay *relay = context;
	int r;

	/* With out full only a hang-up wakes us; what the pipe still holds is moved once there is room. */
	if (relay->pending_size || !relay->in_source.events) {
		loop_remove(relay->loop, &relay->in_source);
		return 0;
	}
	/* The last writer has gone and left nothing: no buffer is needed to learn that. */
	if ((events & (EPOLLIN | EPOLLHUP)) == EPOLLHUP) {
		finish(relay);
		return 0;
	}
	if (relay->may_read && !relay->may_read(relay->context))
		return 0;
	r = move(relay);
	return r < 0 ? r : 0;
}

static int out_ready(void *context, uint32_t events)
{
	struct relay *relay = context;
	int r;

	if (!relay->out_source.events) { /* EPOLLERR: the reader has gone before anything was written */
		finish(relay);
		return 0;
	}
	r = flush(relay);
	if (r <= 0)
		return r;
	if (events & EPOLLERR) {
		finish(relay);
		return 0;
	}
	if (relay->in_is_file) {
		r = move(relay);
		return r < 0 ? r : 0;
	}
	r = wait_for_in(relay);
	return r < 0 ? r : loop_add(relay->loop, &relay->in_source);
}

int relay_open(struct relay *relay, struct loop *loop, int in, int out)
{
	int r;

	relay->loop = loop;
	relay->in = in;
	relay->out = out;
	relay->is_open = true;
	relay->in_source =
		(struct loop_source){ .fd = in, .events = EPOLLIN, .ready = in_ready, .context = relay };
	r = prepare_out(relay);
	relay->out_source = (struct loop_source){ .fd = relay->out, .ready = out_ready, .context = relay };
	if (r == 0)
		r = prepare_in(relay);
	if (r == 0)
		r = relay->in_is_file ? wait_for_out(relay) : loop_add(loop, &relay->in_source);
	if (r < 0)
		relay_close(relay);
	return r;
}

void relay_hold(struct relay *relay)
{
	if (!relay->is_open || relay->is_held)
		return;
	relay->is_held = true;
	relay->out_was_added = relay->out_source.is_added;
	loop_remove(relay->loop, &relay->in_source);
	loop_remove(relay->loop, &relay->out_source);
}

int relay_release(struct relay *relay)
{
	int r = 0;

	if (!relay->is_open || !relay->is_held)
		return 0;
	relay->is_held = false;
	if (!relay->in_is_file)
		r = loop_add(relay->loop, &relay->in_source);
	if (r == 0 && relay->out_was_added)
		r = loop_add(relay->loop, &relay->out_source);
	return r;
}

bool relay_is_taken(const struct relay *relay)
{
	struct stat st;
	int waiting = 0;

	if (!relay->is_open || fstat(relay->out, &st) < 0 || !S_ISFIFO(st.st_mode))
		return true;
	return ioctl(relay->out, FIONREAD, &waiting) < 0 || waiting == 0;
}

void relay_close(struct relay *relay)
{
	if (!relay->is_open)
		return;
	loop_remove(relay->loop, &relay->in_source);
	loop_remove(relay->loop, &relay->out_source);
	close_fd(&relay->in);
	close_fd(&relay->out);
	free(relay->pending);
	relay->pending = NULL;
	relay->pending_at = relay->pending_size = 0;
	relay->is_open = false;
}

int relay_drain(struct relay *relay)
{
	while (relay->is_open && !relay->pending_size) {
		int r = move(relay);

		if (r <= 0)
			return r;
	}
	return 0;
}
