/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A question as people read it. What came from inside is escaped, whole, and told apart from what atoll says: nothing
 * in it can end its line, move the cursor or look like another question. Pure. Run by atoll and atoll-box.
 */

#include "base/buf.h"
#include "base/json.h"
#include "wire/asking.h"

/* "connect to pastebin.com, port 443": one line without its end. */
void question_words_put(struct buf *out, const struct asking_shown *shown);

/*
 * The whole of it in lines: what, who and why. name is what it is called in a command ("3", "SESSION:3"); now_ns:
 * CLOCK_REALTIME.
 */
void question_words_put_question(struct buf *out, const struct asking_question *question, const char *name,
			       uint64_t now_ns);

/* "once", "3 times", "for 10m", "for this session", "for ever". */
void question_words_put_scope(struct buf *out, enum asking_scope scope, uint64_t amount);

/* The members "kind", "subject", …; an object is open. */
void question_words_to_json(struct json *json, const struct asking_shown *shown);

extern const char *const asking_state_names[ASKING_STATE_COUNT]; /* "waiting", "listed", "answered" */
extern const char *const asking_scope_names[ASKING_SCOPE_COUNT]; /* "once", "uses", "time", "session", "forever" */
