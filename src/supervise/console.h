/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The user's terminal joined to the sandbox's own pty: raw mode, window size, suspend and resume, and the
 * terminal's modes put back whatever happens. Used by atoll-box for `atoll run` and by atoll for `atoll
 * exec`.
 */

#include <stdint.h>
#include <termios.h>

#include "supervise/relay.h"

struct console {
	struct loop *loop;
	struct relay input, output;
	int tty_fd;	      /* borrowed: the user's terminal, one of 0, 1, 2 */
	int master_fd;	      /* owned duplicate for sizes */
	struct termios modes; /* as the user had them */
	bool is_raw;
	int timer_fd;	      /* while we are in the background and something was typed; else FD_NONE */
	struct loop_source timer;
	/*
	 * What of n typed bytes goes in: their number afterwards, at most room. Set between console_open() without the
	 * keyboard and console_take_input(); NULL: all.
	 */
	size_t (*on_typed)(void *context, uint8_t *bytes, size_t n, size_t room);
	void *typed_context;
};

/* Which of 0, 1 and 2 are the user's terminal: bits 1 << fd; 0 when none is. */
unsigned console_detect(void);

/* The window size of the user's terminal; 24 x 80 where it has none. */
void console_size(uint16_t *ret_rows, uint16_t *ret_columns);

/*
 * Takes master_fd and starts to show what comes out of it; with reads_now the keyboard goes in as well (raw
 * mode). on_output as in stdio_open(). -ENOTTY when none of 0, 1, 2 is a terminal.
 */
int console_open(struct console *console, struct loop *loop, int master_fd, bool reads_now,
		 int (*on_output)(void *context, uint64_t n), void *context) MUST_USE;

/* Sets raw mode and starts to pass the keyboard on. Nothing happens when it does already. */
int console_take_input(struct console *console) MUST_USE;

/* Whether what is typed goes into the pty: since console_take_input(), until the terminal hangs up. */
bool console_has_input(const struct console *console);

/* SIGWINCH: the new size goes to the pty, whose foreground group the kernel tells. */
void console_resize(struct console *console);

/* Gives the terminal back, with the modes that the user had: before this process stops itself. */
void console_suspend(struct console *console);

/* Takes it again afterwards, raw where it was. Negative errno of the loop. */
int console_resume(struct console *console) MUST_USE;

/* Whether the pty may still have something to show. */
bool console_has_output(const struct console *console);

/* Delivers what the pty still holds, puts the modes back and closes. */
void console_close(struct console *console);
