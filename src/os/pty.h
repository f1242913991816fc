/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pseudo-terminals and the user's own terminal: opening a pair, window sizes, raw mode. It starts no
 * process and keeps no state. Used by atoll-init (the pair inside) and atoll-box (the relay outside).
 * Negative errno on failure throughout; see pty(7), ioctl_tty(2).
 */

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "base/cleanup.h"

struct pty_size {
	uint16_t rows, columns;   /* 0: unknown */
};

/*
 * A new pair from /dev/ptmx (of the caller's mount namespace). The slave comes from the master by
 * TIOCGPTPEER, so that a hostile /dev/pts cannot stand in for it. Both close-on-exec, neither becomes the
 * controlling terminal. Both are owned by the caller.
 */
int pty_open(int *ret_master, int *ret_slave) MUST_USE;

/* The slave of a master that was opened otherwise, unlocked; as above. -ENOTTY where it is none. */
int pty_open_slave(int master_fd, int *ret_slave) MUST_USE;

/* fd: either end, or the user's terminal. Setting the size of a master sends SIGWINCH to the foreground group. */
int pty_get_size(int fd, struct pty_size *ret_size) MUST_USE;
int pty_set_size(int fd, struct pty_size size) MUST_USE;

/* Makes slave the controlling terminal of the calling session leader. */
int pty_take_control(int slave_fd) MUST_USE;

/* Raw mode for relaying bytes; *ret_saved is what pty_restore() puts back. -ENOTTY when fd is no terminal. */
int pty_make_raw(int fd, struct termios *ret_saved) MUST_USE;

/* Waits for the output to drain first. In a background process group, block or ignore SIGTTOU around it. */
int pty_restore(int fd, const struct termios *saved) MUST_USE;

/* term ($TERM; NULL: not set) names a terminal that knows more than lines: not "dumb", and there is one. */
bool pty_is_able(const char *term);

/* fd is such a terminal, and the user did not ask for no colours (no_colour: $NO_COLOR, not empty). */
bool pty_has_colour(int fd, const char *term, const char *no_colour);
