/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Somebody at the streams of a command that lasts: `atoll attach`, and `atoll exec --keep` from its start. What is
 * typed and piped goes in, what the command writes comes out, signals are passed on, and the command goes on when
 * whoever is attached leaves. Also what every verb that follows a command needs.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "prog/atoll/run/detach-keys.h"
#include "prog/atoll/verb/library.h"

struct attached_request {
	atoll_sandbox *sandbox;  /* its handle hears of EXIT of this command, from before the streams were got */
	atoll_record *streams;   /* the result of atoll_exec() with "keep", or of atoll_attach() */
	uint64_t command;
	const char *name;        /* of its program, for errors; borrowed */
	struct detach_keys keys; /* where it has a terminal and we have one */
	bool has_no_input;       /* nothing goes in */
	bool keeps_signals;      /* they are for us: whoever is attached leaves by them */
	bool has_ended;          /* it had before, with this status: no event tells */
	int status;
};

/*
 * Until the command ends: its exit status. Until whoever is attached leaves, by the keys or since the terminal is gone:
 * 0, which a note on stderr tells. The caller has no threads. Negative with *err.
 */
int attached_follow(const struct attached_request *request, struct err *err) MUST_USE;

/* The keys that are given, or those of old (ctrl-p, ctrl-q). Negative with *err. */
int attached_keys(const char *given, struct detach_keys *ret_keys, struct err *err) MUST_USE;

/* The option of both verbs. */
#define ATTACHED_KEYS_TEXT "leave the command by these keys; \"\": by none (ctrl-p,ctrl-q)"

/*
 * The exit status in an event EXIT. Negative with *err where the program of this name could not be
 * started.
 */
int attached_exit_status(const atoll_sandbox *sandbox, const atoll_record *exit, const char *name,
			 struct err *err) MUST_USE;

/* Blocks the signals that are passed on, with SIGTSTP only where the command's stop is ours. A signalfd, or -errno. */
int attached_block_signals(bool with_stop) MUST_USE;
