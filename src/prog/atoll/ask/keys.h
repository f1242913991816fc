/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers by a letter: which questions are open in `atoll ask` on a terminal, and what a person types about the first
 * of them. It answers as `atoll approve` and `atoll deny` do (answer.h), and reads whole lines: no mode of the terminal
 * is changed that would have to be changed back.
 */

#include <stdbool.h>
#include <stddef.h>

#include "prog/atoll/ask/questions.h"

enum { KEYS_OPEN_MAX = 64, KEYS_LINE_SIZE = 256 };

struct keys_question {
	char name[QUESTION_NAME_SIZE];
	char *text;                  /* how it was shown; owned */
};

struct keys {
	bool is_on;
	struct keys_question open[KEYS_OPEN_MAX]; /* in the order in which they came; more are listed alone */
	size_t count;
	char asked[QUESTION_NAME_SIZE]; /* whose line stands on the terminal; "": none does */
	char line[KEYS_LINE_SIZE];      /* what was typed of the next one */
	size_t size;
};

/* A question was shown (text, copied), or was answered by whoever it was. */
void keys_add(struct keys *keys, const char *name, const char *text);
void keys_remove(struct keys *keys, const char *name);

/* Asks about the first, where that line does not stand there already. Negative: stdout took nothing. */
int keys_prompt(struct keys *keys, struct err *err);

/* Something can be read from stdin. 1: the person is done; negative with *err. */
int keys_read(struct keys *keys, struct err *err);

/* Frees the texts. */
void keys_done(struct keys *keys);
