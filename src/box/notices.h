/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions on the desktop and at a webhook (ask.desktop, ask.webhook): an atoll-notify for each, started with the
 * first question. The queue does not depend on them: what cannot be handed over now is handed over later, and one that
 * fails is missed by nobody but who looks there. Run by atoll-box.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"

struct box;
struct notices;

/* Whether a person could hear of a question by one of them; of one that was not started yet, as far as can be known. */
bool notices_are_heard(struct box *box);

/* Hands over what is new, takes back what is over. Negative: the log failed. */
int notices_check(struct box *box) MUST_USE;

/*
 * Tells of an alert, where ask.desktop or ask.webhook is wanted: once, and without waiting. what: escaped. Negative:
 * the log failed.
 */
int notices_alert(struct box *box, const char *kind, const char *what) MUST_USE;

/* "asked.notices" of the report: an array. */
void notices_to_json(const struct box *box, struct json *json);

/* The lines of the summary: what was wrong with one. */
void notices_put_summary(const struct box *box, struct buf *out);

/* Nothing more is handed over; what stands in the report stays until it is freed. */
void notices_close(struct box *box);
void notices_free(struct box *box);
