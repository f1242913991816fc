/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Alerts of one sandbox: each is a record with its evidence, a line for the person, and what the policy has
 * the box do about it. Nothing inside hears of one. What raises them is detect/canaries.h, detect/anomaly.h
 * and the gates' events. Run by atoll-box.
 *
 * The folder detect/ listens to what the gates publish (supervise/hub.h) and judges nothing: canaries and
 * anomalies raise alerts, alerts and refusals strain the agent's record (agent-trust.h). What follows is done
 * when the loop checks them, and to the network by callbacks (reactions.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "policy/policy.h"
#include "supervise/hub.h"
#include "supervise/module.h"

struct box;
struct buf;
struct json;
struct reactions;
struct run;
struct agent_trust;

enum {
	ALERTS_KEPT = 85,            /* in the log, the report and for people; more are counted */
	ALERT_TEXT_MAX = 320,
	ALERT_EVIDENCE_MAX = 12,
	ALERT_EXAMPLES_MAX = 5,
	ALERT_EXAMPLE_SIZE = 96,
};

enum alert_kind {
	ALERT_TOUCHED,               /* a canary was opened */
	ALERT_SENT,                  /* its token was about to leave, or left */
	ALERT_UNUSUAL,               /* by the baseline */
	ALERT_OTHERWISE,             /* a program did for real what its trial had not shown; `where` says what */
	ALERT_DAMAGED,               /* the baseline is no file of ours, or not whole: it begins anew */
	ALERT_SECRET,                /* a secret of the vault was where it has no business to be */
	ALERT_PLACEHOLDER,           /* so was what stands for one */
	ALERT_KIND_COUNT,
};

extern const char *const alert_kind_names[ALERT_KIND_COUNT]; /* "canary.touched", … */

/* One number that is not as it was. */
struct alert_evidence {
	const char *name, *words;    /* static */
	bool is_bytes;
	uint64_t number, median, max, limit; /* limit: from which on it is told by itself */
	uint32_t sessions;           /* that it is compared with */
	double chance;               /* that a clean session reaches it */
	const char *examples[ALERT_EXAMPLES_MAX]; /* what was new; hostile; the rest is NULL */
};

/* All text is borrowed, and may be hostile. */
struct alert {
	enum alert_kind kind;
	const char *canary;          /* its path, or its name in the vault; NULL: none */
	const char *secret;          /* ALERT_SECRET, ALERT_PLACEHOLDER: its name */
	const char *where;           /* "a header", "the arguments of a program"; NULL */
	const char *spelling;        /* of the token: "plain"; NULL */
	const char *host;            /* NULL */
	uint16_t port;
	uint32_t connection;         /* of the gate; 0: none */
	bool is_linked;              /* of a touch: it got another name, and was not opened */
	bool is_refused;             /* it did not go out by this way */
	pid_t pid;                   /* 0: not known */
	const char *program;         /* NULL: not known */
	const struct alert_evidence *evidence;
	size_t evidence_count;
};

struct alert_kept {
	char text[ALERT_TEXT_MAX];
	struct hash thing;           /* that it is about */
	enum alert_kind kind;
};

struct alerts {
	struct run *run;
	struct queue *queue;
	struct notifier *notifier;
	struct prompt *prompt;
	struct agent_trust *agent;      /* whose record gets them */
	const struct reactions *reactions;
	struct alert_kept *kept;     /* owned, ALERTS_KEPT of them; NULL: there was none */
	size_t count;                /* kept */
	uint64_t total;
	const char *cause;           /* of what is wanted, among those kept; NULL: none */
	enum monitor_reaction wanted;
	bool is_tightened, is_asking, was_asked, has_canary;
	struct subscriber subscriber;
};

/* Listens to what the gates see; the pointers to others of *alerts are set. Before the jail is made. */
void alerts_prepare(struct alerts *alerts);

/* Writes it down and says it; what is to be done about it is done when the loop checks. Negative: the log failed. */
int alerts_raise(struct alerts *alerts, const struct alert *alert) MUST_USE;

/* Whether nothing of the run may be applied unasked. */
bool alerts_hold_apply(const struct alerts *alerts);

/* Adds "alerts" to the report: how many there were, what was done about them, and the text of those that were kept. */
void alerts_to_json(const struct alerts *alerts, struct json *json);

/* The lines of the summary: which there were, and what was done. */
void alerts_put_summary(const struct alerts *alerts, struct buf *out);

/* Its state is a struct alerts: does what the policy wants done, for freezing waits for those that wait for us. */
extern const struct module alerts_module;
