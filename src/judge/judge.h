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

/* What somebody wants to hear about a case. */
enum judge_question { QUESTION_ACTION, QUESTION_NARROW };

/* An answer as it came, which is read here; of a model (is_completion) it is the content of its one message. */
struct judge_answer {
	const void *bytes;
	size_t size;
	bool is_completion;
};

/* Both are negative where the box has gone. Of what failed the reason alone is told. */
int judge_tell_answer(struct judge *judge, uint32_t id, enum judge_question question,
		      const struct judge_answer *answer) MUST_USE;
int judge_tell_unclear(struct judge *judge, uint32_t id, enum judge_question question, const char *why) MUST_USE;

/*
 * Confine themselves, then serve the link until the box closes it: 0. Each case is a start of the command, or a request
 * to the model; what fails of one is told as unclear. Negative with *err: nothing can be served.
 */
int judge_by_command(struct judge *judge, struct err *err) MUST_USE;
int judge_by_model(struct judge *judge, struct err *err) MUST_USE;
