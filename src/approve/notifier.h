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
#include "supervise/module.h"

struct buf;
struct json;
struct notifier_state;
struct queue;
struct run;

struct notifier {
	struct run *run;                     /* both borrowed */
	struct queue *queue;
	struct notifier_state *state;        /* owned; NULL: none is wanted, or nothing happened yet */
};

/* Whether a person could hear of a question by one of them; of one that was not started yet, as far as can be known. */
bool notifier_is_heard(struct notifier *notifier);

/*
 * Tells of an alert, where ask.desktop or ask.webhook is wanted: once, and without waiting. what: escaped. Negative:
 * the log failed.
 */
int notifier_alert(struct notifier *notifier, const char *kind, const char *what) MUST_USE;

/* "asked.notices" of the report: an array. */
void notifier_to_json(const struct notifier *notifier, struct json *json);

/* The lines of the summary: what was wrong with one. */
void notifier_put_summary(const struct notifier *notifier, struct buf *out);

/* Nothing more is handed over; what stands in the report stays until it is freed. */
void notifier_close(struct notifier *notifier);

/* Its state is a struct notifier: hands over what is new, takes back what is over. */
extern const struct module notifier_module;
