/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The external verifier of a policy: each case is one start of a command, or one request to a model. Whatever goes
 * wrong with it is an opinion that is not clear. Run by atoll-judge.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/judge.h"

/*
 * Serves until box_fd (borrowed, wire/judge.h) is closed. Confines itself, and with that all that it starts, before
 * it takes the first case. Negative: a wall of its own could not be put up (*err), or the box broke the protocol.
 */
int judge_run(int box_fd, struct err *err) MUST_USE;

/* ---- for command.c and model.c ---- */

struct judge {
	int box_fd;                  /* borrowed */
	struct judge_start start;
	int bundle_fd, secret_fd;    /* owned; FD_NONE: none */
	struct buf out, scratch;     /* frames */
	void *frame;                 /* owned: what start points into */
};

/* Negative: the box has gone. */
int judge_tell(struct judge *judge, uint32_t id, enum judge_verdict verdict, const char *reason) MUST_USE;

int judge_by_command(struct judge *judge, struct err *err) MUST_USE;
int judge_by_model(struct judge *judge, struct err *err) MUST_USE;
