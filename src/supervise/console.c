/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/console.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include "os/fd.h"

unsigned console_detect(void)
{
	unsigned which = 0;

	for (int fd = 0; fd <= 2; fd++)
		if (isatty(fd))
			which |= 1u << fd;
	return which;
}

static int find_tty(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (isatty(fd))
			return fd;
	return -ENOTTY;
}

void console_size(uint16_t *ret_rows, uint16_t *ret_columns)
{
	struct winsize size = { 0 };

	if (ioctl(find_tty(), TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	*ret_rows = size.ws_row;
	*ret_columns = size.ws_col;
}

/*
 * tcsetattr from the background stops us with SIGTTOU: after `bg` that would hang the session. The modes
 * are only ours to change while we are in the foreground.
 */
static bool is_foreground(int tty_fd)
{
	return tcgetpgrp(tty_fd) == getpgrp();
}

/* No error is the background: a terminal that is hung up or not our own is read, and says so. */
static bool is_in_background(int tty_fd)
{
	pid_t foreground = tcgetpgrp(tty_fd);

	return foreground > 0 && foreground != getpgrp();
}

static int make_raw(struct console *console)
{
	struct termios raw;

	if (console->is_raw || !is_foreground(console->tty_fd))
		return 0;
	if (tcgetattr(console->tty_fd, &console->modes) < 0)
		return -errno;
	raw = console->modes;
	cfmakeraw(&raw);
	if (tcsetattr(console->tty_fd, TCSADRAIN, &raw) < 0)
		return -errno;
	console->is_raw = true;
	return 0;
}

static void make_cooked(struct console *console)
{
	if (console->is_raw && is_foreground(console->tty_fd))
		tcsetattr(console->tty_fd, TCSADRAIN, &console->modes);
	console->is_raw = false;
}

/*
 * A read from the background stops us with SIGTTIN, and with us a command that wants nothing from the keyboard: what
 * is typed there is the shell's. The kernel has no event for a return to the foreground, so it is looked for.
 */
enum { BACKGROUND_LOOK_MS = 200 };

static void end_waiting(struct console *console)
{
	loop_remove(console->loop, &console->timer);
	close_fd(&console->timer_fd);
}

static int look_for_foreground(void *context, uint32_t events)
{
	struct console *console = context;
	uint64_t times;
	int r;

	if (read(console->timer_fd, &times, sizeof times) < 0 && errno == EAGAIN)
		return 0;
	if (!is_in_background(console->tty_fd)) {
		end_waiting(console);
		r = make_raw(console);
		return r < 0 ? r : relay_release(&console->input);
	}
	return 0;
}

/* False: the keyboard is not ours now, and the input waits. Where that cannot be arranged the kernel stops us. */
static bool may_read(void *context)
{
	const struct itimerspec often = { .it_value.tv_nsec = BACKGROUND_LOOK_MS * 1000000L,
					  .it_interval.tv_nsec = BACKGROUND_LOOK_MS * 1000000L };
	struct console *console = context;

	if (console->timer_fd >= 0 || !is_in_background(console->tty_fd))
		return console->timer_fd < 0;
	console->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	console->timer = (struct loop_source){ .fd = console->timer_fd, .events = EPOLLIN,
					       .ready = look_for_foreground, .context = console };
	if (console->timer_fd < 0 || timerfd_settime(console->timer_fd, 0, &often, NULL) < 0 ||
	    loop_add(console->loop, &console->timer) < 0) {
		close_fd(&console->timer_fd);
		return true;
	}
	relay_hold(&console->input);
	return false;
}

/* The keyboard is never spliced: its bytes stand in the relay, and pass when this is done. */
static int sift_typed(void *context, uint64_t n)
{
	struct console *console = context;
	size_t left = console->on_typed(console->typed_context, console->input.pending, (size_t)n, RELAY_CHUNK);

	console->input.pending_size = (uint32_t)left;
	return 0;
}

static int open_input(struct console *console)
{
	/* An own description of the terminal, so that non-blocking reads do not become the shell's. */
	int in = relay_reopen(console->tty_fd, O_RDONLY), out;

	/* After su the terminal belongs to another user: then a read waits for epoll's word instead. */
	if (in < 0) {
		in = fd_duplicate(console->tty_fd);
		console->input.in_is_shared = true;
	}
	out = in < 0 ? in : fd_duplicate(console->master_fd);

	if (out < 0) {
		if (in >= 0)
			close(in);
		return out;
	}
	console->input.out_is_own = true;
	console->input.may_read = may_read;
	console->input.on_bytes = console->on_typed ? sift_typed : NULL;
	console->input.context = console;
	return relay_open(&console->input, console->loop, in, out);
}

static int open_output(struct console *console)
{
	int in = fd_duplicate(console->master_fd);
	int out = in < 0 ? in : relay_reopen(console->tty_fd, O_WRONLY);

	console->output.out_is_own = out >= 0;
	if (in >= 0 && out < 0)
		out = fd_duplicate(console->tty_fd);

	if (out < 0) {
		if (in >= 0)
			close(in);
		return out;
	}
	return relay_open(&console->output, console->loop, in, out);
}

bool console_has_input(const struct console *console)
{
	return console->input.is_open;
}

bool console_has_output(const struct console *console)
{
	return console->output.is_open;
}

int console_take_input(struct console *console)
{
	int r = console_has_input(console) ? 0 : open_input(console);

	return r < 0 ? r : make_raw(console);
}

int console_open(struct console *console, struct loop *loop, int master_fd, bool reads_now,
		 int (*on_output)(void *context, uint64_t n), void *context)
{
	int r;

	*console = (struct console){ .loop = loop, .tty_fd = find_tty(), .master_fd = master_fd,
				     .timer_fd = FD_NONE };
	console->output.on_bytes = on_output;
	console->output.context = context;
	r = console->tty_fd < 0 ? console->tty_fd : open_output(console);
	if (r == 0 && reads_now)
		r = console_take_input(console);
	if (r == 0)
		console_resize(console);
	else
		console_close(console);
	return r;
}

void console_resize(struct console *console)
{
	struct winsize size;

	/* Only a change is passed on: setting the same size raises no SIGWINCH inside, and costs nothing. */
	if (ioctl(console->tty_fd, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		ioctl(console->master_fd, TIOCSWINSZ, &size);
}

void console_suspend(struct console *console)
{
	make_cooked(console);
}

int console_resume(struct console *console)
{
	console_resize(console);
	return console_has_input(console) ? make_raw(console) : 0;
}

void console_close(struct console *console)
{
	if (relay_drain(&console->output) < 0)
		relay_close(&console->output);
	end_waiting(console);
	relay_close(&console->input);
	relay_close(&console->output);
	make_cooked(console);
	close_fd(&console->master_fd);
}
