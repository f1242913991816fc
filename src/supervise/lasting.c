/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/lasting.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/pty.h"
#include "supervise/lasting-stream.h"
#include "supervise/relay.h"
#include "supervise/stdio.h"

/*
 * Theory of operation. What a client has are ends of pipes (of a terminal: of a socket pair), never the command's own:
 * so it is seen when it leaves, its leaving ends nothing, and there can be several. From each input a relay leads to
 * the command's; lasting-stream.h is one output and all who read it.
 */

struct lasting {
	struct lasting_owner owner;
	bool is_terminal, is_closing;
	int input_fd;                                  /* owned: of the command; FD_NONE: closed */
	struct relay inputs[LASTING_CLIENTS_MAX];
	int waiting[LASTING_CLIENTS_MAX];              /* owned: inputs for a terminal that is not there yet */
	uint64_t until[LASTING_CLIENTS_MAX];           /* is_closing: the bytes that are moved before the end */
	struct lasting_stream streams[2];              /* stdout or the terminal, stderr */
};

static int new_pipe(struct lasting *lasting, int which, int inside[3])
{
	int ends[2], theirs = which != STDIO_IN;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	inside[which] = ends[theirs];
	if (which == STDIO_IN)
		lasting->input_fd = ends[!theirs];
	else
		lasting->streams[which - 1].in = ends[!theirs];
	return stdio_let_reopen(inside[which], which);
}

int lasting_new(struct lasting **ret, const struct lasting_owner *owner, unsigned which, int inside[3])
{
	struct lasting *lasting = calloc(1, sizeof *lasting);
	int r = lasting ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	lasting->owner = *owner;
	lasting->input_fd = FD_NONE;
	lasting->is_terminal = !which;
	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++)
		lasting->waiting[i] = FD_NONE;
	for (int i = 0; i < 2; i++)
		lasting_stream_init(&lasting->streams[i], &lasting->owner);
	for (int i = 0; r == 0 && i < STDIO_COUNT; i++)
		if (which & 1u << i)
			r = new_pipe(lasting, i, inside);
	for (int i = 0; r == 0 && i < 2; i++)
		if (lasting->streams[i].in >= 0)
			r = lasting_stream_listen(&lasting->streams[i]);
	if (r == 0)
		*ret = lasting;
	else
		lasting_free(lasting);
	return r;
}

static void close_input(struct lasting *lasting)
{
	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++) {
		relay_close(&lasting->inputs[i]);
		close_fd(&lasting->waiting[i]);
	}
	close_fd(&lasting->input_fd);
	lasting->is_closing = false;
}

void lasting_free(struct lasting *lasting)
{
	if (!lasting)
		return;
	close_input(lasting);
	for (int i = 0; i < 2; i++)
		lasting_stream_done(&lasting->streams[i]);
	free(lasting);
}

/* ---- clients ---- */

/* Takes fd. The oldest relay that has ended makes room. */
static int add_input(struct lasting *lasting, int fd)
{
	int out = fd_duplicate(lasting->input_fd);

	for (size_t i = 0; out >= 0 && i < LASTING_CLIENTS_MAX; i++) {
		struct relay *relay = &lasting->inputs[i];

		if (relay->is_open)
			continue;
		*relay = (struct relay){ .out_is_own = true, .moved_bytes = relay->moved_bytes };
		return relay_open(relay, lasting->owner.loop, fd, out);
	}
	close(fd);
	if (out >= 0)
		close(out);
	return out < 0 ? out : -EAGAIN;
}

static bool is_of_kind(int fd, mode_t kind)
{
	struct stat st;

	return fd < 0 || (fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind);
}

static int attach_terminal(struct lasting *lasting, int fd)
{
	int input = fd_duplicate(fd), r;

	r = lasting_stream_attach(&lasting->streams[0], fd, true);
	if (r < 0 || input < 0) {
		if (input >= 0)
			close(input);
		return r < 0 ? r : input;
	}
	if (lasting->input_fd >= 0)
		return add_input(lasting, input);
	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++) {
		if (lasting->waiting[i] >= 0)
			continue;
		lasting->waiting[i] = input;
		return 0;
	}
	close(input);
	return -EAGAIN;
}

static int attach_pipes(struct lasting *lasting, int fds[3])
{
	int r = 0;

	for (int i = 0; r == 0 && i < 2; i++)
		if (fds[i + 1] >= 0)
			r = lasting_stream_attach(&lasting->streams[i], take_fd(&fds[i + 1]), false);
	if (r == 0 && fds[STDIO_IN] >= 0 && lasting->input_fd >= 0 && !lasting->is_closing)
		r = add_input(lasting, take_fd(&fds[STDIO_IN]));
	return r;
}

int lasting_attach(struct lasting *lasting, int fds[3], bool is_fresh)
{
	int r = 0;

	for (int i = 0; r == 0 && i < STDIO_COUNT; i++)
		if (!is_of_kind(fds[i], lasting->is_terminal ? S_IFSOCK : S_IFIFO))
			r = -EINVAL;
	for (int i = 0; r == 0 && is_fresh && i < 2; i++)
		lasting_stream_forget(&lasting->streams[i]);
	if (r == 0)
		r = lasting->is_terminal ? attach_terminal(lasting, take_fd(&fds[0])) : attach_pipes(lasting, fds);
	for (int i = 0; i < STDIO_COUNT; i++)
		close_fd(&fds[i]);
	return r;
}

static int make_ends(const struct lasting *lasting, bool has_input, int ours[3], int theirs[3])
{
	int ends[2];

	if (lasting->is_terminal) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
			return -errno;
		ours[0] = ends[0];
		theirs[0] = ends[1];
		return 0;
	}
	for (int i = 0; i < STDIO_COUNT; i++) {
		bool is_input = i == STDIO_IN;

		if (is_input ? !has_input || lasting->input_fd < 0 : !lasting->streams[i - 1].is_there)
			continue;
		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		ours[i] = ends[!is_input];
		theirs[i] = ends[is_input];
	}
	return 0;
}

int lasting_attach_new(struct lasting *lasting, bool has_input, bool is_fresh, int ret_fds[3])
{
	int ours[3] = { FD_NONE, FD_NONE, FD_NONE }, theirs[3] = { FD_NONE, FD_NONE, FD_NONE };
	int r = make_ends(lasting, has_input, ours, theirs);

	if (r == 0)
		r = lasting_attach(lasting, ours, is_fresh);
	for (int i = 0; i < STDIO_COUNT; i++) {
		close_fd(&ours[i]);
		if (r == 0)
			ret_fds[i] = take_fd(&theirs[i]);
		close_fd(&theirs[i]);
	}
	return r;
}

/* ---- the terminal ---- */

int lasting_take_master(struct lasting *lasting, int master_fd)
{
	int r = fd_set_nonblocking(master_fd, true);

	lasting->input_fd = r < 0 ? r : fd_duplicate(master_fd);
	if (lasting->input_fd < 0) {
		r = lasting->input_fd;
		lasting->input_fd = FD_NONE;
		close(master_fd);
		return r;
	}
	lasting->streams[0].in = master_fd;
	r = lasting_stream_listen(&lasting->streams[0]);
	for (size_t i = 0; r == 0 && i < LASTING_CLIENTS_MAX; i++)
		if (lasting->waiting[i] >= 0)
			r = add_input(lasting, take_fd(&lasting->waiting[i]));
	return r;
}

int lasting_resize(struct lasting *lasting, uint16_t rows, uint16_t columns)
{
	struct pty_size size = { .rows = rows, .columns = columns };

	return lasting->is_terminal && lasting->input_fd >= 0 ? pty_set_size(lasting->input_fd, size) : -ENOTTY;
}

/* ---- the end of its input ---- */

int lasting_close_input(struct lasting *lasting)
{
	if (lasting->is_terminal)
		return -EINVAL;
	if (lasting->input_fd < 0 || lasting->is_closing)
		return 0;
	lasting->is_closing = true;
	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++) {
		const struct relay *relay = &lasting->inputs[i];
		int waiting = 0;

		if (relay->is_open && ioctl(relay->in, FIONREAD, &waiting) == 0)
			lasting->until[i] = relay->moved_bytes + (uint64_t)waiting;
	}
	lasting_check(lasting);
	return 0;
}

void lasting_check(struct lasting *lasting)
{
	bool is_done = true;

	for (size_t i = 0; lasting->is_closing && i < LASTING_CLIENTS_MAX; i++) {
		const struct relay *relay = &lasting->inputs[i];

		is_done = is_done && (!relay->is_open ||
				      (relay->moved_bytes >= lasting->until[i] && !relay->pending_size));
	}
	if (lasting->is_closing && is_done)
		close_input(lasting);
}

/* ---- its end ---- */

void lasting_end(struct lasting *lasting)
{
	close_input(lasting);
	for (int i = 0; i < 2; i++)
		lasting_stream_end(&lasting->streams[i]);
}

bool lasting_is_settled(struct lasting *lasting)
{
	return lasting_stream_is_settled(&lasting->streams[0]) && lasting_stream_is_settled(&lasting->streams[1]);
}

bool lasting_is_drained(const struct lasting *lasting)
{
	return lasting_stream_is_drained(&lasting->streams[0]) && lasting_stream_is_drained(&lasting->streams[1]);
}

void lasting_look(const struct lasting *lasting, struct lasting_state *ret_state)
{
	struct lasting_state state = { .is_terminal = lasting->is_terminal };

	for (int i = 0; i < 2; i++) {
		unsigned attached = lasting_stream_readers(&lasting->streams[i]);

		state.dropped += lasting->streams[i].dropped;
		state.has_ring = state.has_ring || lasting->streams[i].ring.bytes;
		state.attached = attached > state.attached ? attached : state.attached;
	}
	*ret_state = state;
}

uint64_t lasting_moved(const struct lasting *lasting)
{
	uint64_t moved = 0;

	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++)
		moved += lasting->inputs[i].moved_bytes;
	return moved;
}
