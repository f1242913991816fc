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
#include "supervise/module.h"

struct queue;
struct relay;
struct run;

enum prompt_state { PROMPT_IDLE, PROMPT_SETTLING, PROMPT_SHOWN };

/* What of the box draws on the same terminal. */
struct prompt_owner {
	/* The relay of the main command's standard output or error (STDIO_OUT, STDIO_ERR); NULL: there is none. */
	struct relay *(*main_output)(void *context, unsigned stream);
	void *context;
};

struct prompt {
	struct run *run;             /* both borrowed */
	struct queue *queue;
	struct prompt_owner owner;
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

/* Nothing is opened yet. What it borrows must outlive it. */
void prompt_init(struct prompt *prompt, struct run *run, struct queue *queue, const struct prompt_owner *owner);

/* Takes the prompt away, and leaves the terminal. */
void prompt_done(struct prompt *prompt);

/* Whether a person could be asked on the terminal now. */
bool prompt_is_possible(struct prompt *prompt);

/* A question came: rings, where the policy says so. */
void prompt_ring(struct prompt *prompt);

/* Its state is a struct prompt: draws what is to be asked, takes away what was answered elsewhere. */
extern const struct module prompt_module;
