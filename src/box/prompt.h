/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions on the terminal that a run was started from (ask.prompt, ask.bell). A prompt is drawn only where nothing of
 * the sandbox can draw: see prompt.c. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "supervise/loop.h"

struct box;

enum prompt_state { PROMPT_IDLE, PROMPT_SETTLING, PROMPT_SHOWN };

struct prompt {
	int tty_fd;                  /* owned; FD_NONE: not opened */
	bool is_tried;               /* there is no such terminal */
	enum prompt_state state;
	uint32_t number;             /* of the question, as it was drawn */
	struct hash hash;
	uint64_t since_ns;           /* PROMPT_SETTLING: when output was held */
	uint64_t rung_ns;            /* the last bell */
	uint64_t looked_ns;          /* when it was seen whether a prompt is possible */
	bool was_possible;
	struct loop_source source;
};

/* Holds nothing. */
void prompt_init(struct prompt *prompt);
void prompt_done(struct box *box);

/* Whether a person could be asked on the terminal now. */
bool prompt_is_possible(struct box *box);

/* A question came: rings, where the policy says so. */
void prompt_ring(struct box *box);

/* Draws what is to be asked, takes away what was answered elsewhere. Negative: the log failed. */
int prompt_check(struct box *box, uint64_t now_ns) MUST_USE;

/* How long nothing is due; -1: for ever. */
int prompt_timeout_ms(const struct box *box);
