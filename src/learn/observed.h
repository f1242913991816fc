/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a session's log says that was done, as the actions that a policy decides about. Reads the records of
 * doc/format/audit.md; what a policy has no say in (ends, usage, what a person answered) is passed over. The log is
 * hostile. Run by atoll-learn.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/decide.h"

enum {
	OBSERVED_ARGV_MAX = 1024,      /* arguments of one exec; with more is_cut is set */
	OBSERVED_TEXT_MAX = 128 << 10, /* decoded bytes of one record */
};

/* Everything is borrowed until the visitor returns. */
struct observed {
	struct action action;
	const char *verdict, *rule;    /* as recorded; never NULL, may be "" */
	const char *exe;               /* who did it; "" where the record does not say */
	bool is_directory;             /* a file call that asks for a directory */
	bool is_relative;              /* a program by a path that the log does not resolve: no policy can decide */
	const char *called;            /* a program: the path that was asked for, where it leads elsewhere; else NULL */
	bool is_new;                   /* a program that was made or changed since the session began */
	bool is_missing;               /* a program that was not there, or none: nothing was started */
	uint64_t record;               /* its number in the log */
	uint64_t count;                /* how often this one record says that it happened */
	uint32_t climbs;               /* a request: of its query (http/target.h) */
};

/* What a policy says to it; to a request by every reading of its path, as the gate did. */
struct decision observed_decide(const struct policy *policy, const struct observed *observed);

struct observed_log {
	uint64_t records;              /* lines of the log */
	uint64_t actions;              /* that were visited */
	uint64_t unreadable;           /* lines, or actions in them, that cannot be decided about */
	bool is_policy_changed;        /* the network went by another policy later on (`atoll policy set`) */
	uint64_t failed;               /* commands that could not be started */
	bool has_end;                  /* a session.end: nothing is missing behind what was read */
};

/* Non-zero ends the reading and is what observed_read() returns. */
typedef int observed_visit(void *context, const struct observed *observed);

/* What verification found about a command, and what became of it ("note", "ask", …). Borrowed as above. */
struct observed_finding {
	const char *id, *severity, *reason, *action;
};

/* What was alarming (doc/format/audit.md): what about what, where it was to go, and by which program. */
struct observed_alert {
	const char *what, *subject, *host, *exe;     /* "" where it is not known */
};

/* What a reader wants to hear about; NULL: nothing of that. */
struct observed_visits {
	observed_visit *action;
	int (*finding)(void *context, const struct observed_finding *finding);
	int (*question)(void *context, const char *subject, const char *rule); /* a person would have been asked */
	int (*alert)(void *context, const struct observed_alert *alert);
};

/* Before confinement: what jansson would otherwise read from files later. */
void observed_init(void);

/* Reads a log from the fd's offset (borrowed) to its end. -errno; -ENOMEM. */
int observed_read_all(int log_fd, const struct observed_visits *visits, void *context,
		      struct observed_log *ret_log) MUST_USE;

/* The same for actions alone. */
int observed_read(int log_fd, observed_visit *visit, void *context, struct observed_log *ret_log) MUST_USE;
