/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The three standard streams of one command: what the sandbox gets, and the relays that connect it with the
 * user's. The sandbox never holds a description of the user's files: a pipe stands between (through an
 * inherited fd it could chmod, truncate, re-read or, with a directory, open what no rule allows).
 */

#include "supervise/relay.h"

enum { STDIO_IN, STDIO_OUT, STDIO_ERR, STDIO_COUNT, STDIO_ALL = (1 << STDIO_COUNT) - 1 };

struct stdio {
	struct relay relays[STDIO_COUNT]; /* [STDIO_ERR] is unused when stderr is stdout */
	int inside[STDIO_COUNT]; /* the sandbox's ends; closed by stdio_close_inside() once they were sent */
	int input_fd;		 /* the user's own stdin when it is a seekable file, else FD_NONE; owned */
	int input_pipe_fd;	 /* our end of its pipe, to see what was not read */
};

/*
 * Makes pipes and relays between the user's streams and the sandbox's. fds (owned by the caller; duplicated
 * here) are the user's 0, 1, 2; only those in the mask `which` (bits 1 << STDIO_…) are connected, the others
 * are on a terminal. on_output is told of all bytes of both outputs before they pass.
 */
int stdio_open(struct stdio *stdio, struct loop *loop, const int fds[STDIO_COUNT], unsigned which,
	       int (*on_output)(void *context, uint64_t n), void *context) MUST_USE;

/* Lets the sandbox's end of a pipe (STDIO_…) be opened anew by its name below /dev. 0 or -errno. */
int stdio_let_reopen(int fd, int which) MUST_USE;

/* Closes the sandbox's ends in this process, so that the end of the last writer inside is the end of the
 * stream. */
void stdio_close_inside(struct stdio *stdio);

/* Whether an output still has bytes to come or to deliver. */
bool stdio_has_output(const struct stdio *stdio);

/* Stops reading the user's input and gives back, by lseek, what a seekable input had read ahead. */
void stdio_close_input(struct stdio *stdio);

/* Closes everything; what was not delivered yet is lost. */
void stdio_close(struct stdio *stdio);

/*
 * Whether an output's bytes were lost since the user's file took no more: its errno, with *ret_name what people call
 * the stream; else 0. Also after stdio_close().
 */
int stdio_lost(const struct stdio *stdio, const char **ret_name);
