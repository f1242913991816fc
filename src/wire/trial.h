/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages between atoll-box and the `atoll dry-run --held` that it starts, which tries a program that stands still
 * before its exec, tells what came of it, and later whether it came out the same for real. That is one process for one
 * program; it ends with its socket and takes the trial along.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

/* argv[0] of `atoll` as who tries it. */
#define TRIAL_PROGRAM_NAME "atoll-trial"

enum { TRIAL_FD = 3 };

/* The command of a trial is ended after this: what it left is removed by who tries it, and not left behind. */
enum { TRIAL_COMMAND_MS = 100000 };

enum {
	TRIAL_TEXT_SIZE = 256,   /* of what came of it, with the NUL; longer ones are cut */
};

enum trial_message {
	/* box -> atoll */
	TRIAL_BEGIN = 1,         /* struct trial_begin, once */
	TRIAL_ENDED,             /* it was done for real, and has ended: is it what was shown? -> TRIAL_COMPARED */
	/* atoll -> box */
	TRIAL_SHOWN = 64,        /* struct trial_shown */
	TRIAL_COMPARED,          /* u32 it came out otherwise; string: how */
};

struct trial_begin {
	const char *session, *cwd;
	uint32_t has_no_input;   /* its standard input is /dev/null: nothing that the trial could lack */
	char **argv, **env;      /* env: NAME=VALUE, all of them; when received, the arrays are owned */
};

enum trial_result {
	TRIAL_CLEAN,             /* nothing in it wants a person's look */
	TRIAL_TOLD,              /* a person should look */
	TRIAL_FAILED,            /* it could not be tried, or not wholly */
	TRIAL_RESULT_COUNT,
};

struct trial_shown {
	uint32_t result;         /* enum trial_result */
	const char *trial;       /* its session; "": there is none */
	const char *text;        /* for people; never NULL when received */
};

/*
 * put: the whole frame of its type into out, which is reset; 0, or the buffer's error. It cuts nothing: texts of
 * TRIAL_TEXT_SIZE bytes and more are refused by their reader. get: 0, with the strings borrowed from the frame and the
 * arrays the caller's (free()); -EBADMSG for what is malformed or beyond a limit, or has no program to try: then
 * nothing is owned, the fields of a struct are zero and single results untouched.
 */
int trial_begin_put(struct buf *out, const struct trial_begin *begin) MUST_USE;
int trial_begin_get(struct frame *frame, struct trial_begin *ret_begin) MUST_USE;
int trial_shown_put(struct buf *out, const struct trial_shown *shown) MUST_USE;
int trial_shown_get(struct frame *frame, struct trial_shown *ret_shown) MUST_USE;
int trial_compared_put(struct buf *out, bool differs, const char *text) MUST_USE;
int trial_compared_get(struct frame *frame, bool *ret_differs, const char **ret_text) MUST_USE;
