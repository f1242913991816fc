/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers as the lines that go inside: JSON with the verdict as its first member, or words with the verdict as the
 * first. Runs in atoll-desk.
 */

#include "wire/desk.h"

/* How and for which request of the connection it is said. */
struct reply_form {
	const char *tag;             /* NULL: none */
	bool is_text;
};

/*
 * Appends one line with its newline: one JSON object (doc/format/ask.md), or words for people. What the desk was told
 * is escaped, so that nothing of it can end the line. Errors stick to the buffer.
 */
void reply_put_answer(struct buf *out, const struct reply_form *form, const struct desk_answer *answer);
void reply_put_status(struct buf *out, const struct reply_form *form, const struct desk_status *status);

/* Of a line that was none, for this reason. */
void reply_put_invalid(struct buf *out, const struct reply_form *form, const char *why);
