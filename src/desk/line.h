/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One line that something inside wrote to ask.sock, a JSON object: what is asked, or why it is none. The grammar is
 * doc/format/ask.md's, and strict: what is not known is refused. Runs in atoll-desk, confined.
 */

#include <stdbool.h>

#include "wire/desk.h"

enum { LINE_MAX_BYTES = 16 << 10, LINE_TAG_MAX = 64 };

enum line_kind { LINE_WANT, LINE_EXPLAIN, LINE_WAIT, LINE_STATUS, LINE_TOKEN, LINE_CHECKPOINT };

struct line {
	enum line_kind kind;
	struct desk_want want;       /* LINE_WANT, LINE_EXPLAIN; LINE_WAIT: wait_ms */
	uint32_t question;           /* LINE_WAIT */
	const char *token;           /* LINE_TOKEN: its text, not looked at */
	const char *checkpoint;      /* LINE_CHECKPOINT: what it is for; "": not said */
	const char *tag;             /* to be said with the answers; NULL: none */
	bool is_text;                /* answers as a line of words instead of JSON */
	/* What the above borrows from. */
	void *root;
	char *argv[DESK_ARGV_MAX + 1];
	char host[256];
};

/*
 * Reads size bytes, without the newline. 0, and line_done() follows; else -EINVAL with *ret_why, static text for who
 * wrote it.
 */
int line_parse(const char *bytes, size_t size, struct line *ret_line, const char **ret_why) MUST_USE;
void line_done(struct line *line);

/* For jansson's tables; before the program confines itself. */
void line_prepare(void);
