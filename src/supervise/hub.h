/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the gates see, for whoever counts, compares or watches (canaries, baseline, alerts, the agent's record): a gate
 * publishes an event and knows nobody who hears of it. The record of it is written before. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct gate_request;
struct watch_file;

enum event_type {
	EVENT_EXEC,                  /* struct event_exec: a program starts, or was refused */
	EVENT_FILE,                  /* struct event_file: a mediated file call. It may come with the sandbox's ids */
	EVENT_LOOKUP,                /* struct event_lookup: a name was asked for */
	EVENT_ADDRESS,               /* const char: an address without a name was connected to */
	EVENT_CLOSED,                /* uint64_t: a connection has ended that took so many bytes out */
	EVENT_SYSCALL,               /* const char: a system call was refused */
	EVENT_LEAK,                  /* struct gate_request: the gate found a secret, its stand-in or a token in it */
	EVENT_REFUSED,               /* NULL: a gate refused what the policy does not allow */
	EVENT_PAUSED,                /* NULL: nothing is let through for a while (rate.h) */
	EVENT_LIMIT,                 /* const char: a limit was hit for the first time */
	EVENT_VERIFIER_REFUSED,      /* const char: what a verifier found in a command that was refused for it */
	EVENT_TRIAL_DIFFERS,         /* struct event_trial: a command did what its trial had not shown */
	EVENT_TYPE_COUNT,
};

struct event_exec {
	pid_t pid;
	const char *program;
	const char *const *argv;     /* NULL: not known */
	bool is_refused;
};

struct event_file {
	const struct watch_file *call;
	bool is_opened;              /* it opened the file */
};

struct event_lookup {
	const char *name;
	bool is_refused;
	bool is_of_address;          /* an address was asked for, and no other type */
};

struct event_trial {
	const char *program, *text;
};

struct subscriber {
	uint32_t types;              /* 1 << EVENT_… */
	/*
	 * At once, with the event's detail (borrowed): counts, compares, and writes records of its own. It answers
	 * nobody, freezes and ends nothing: what follows from an event is done when the loop checks its modules.
	 * Negative: the log failed.
	 */
	int (*note)(void *context, enum event_type type, const void *detail);
	void *context;
	struct subscriber *next;     /* the hub's */
};

/* All zero: nobody listens. */
struct hub {
	struct subscriber *first;
	uint32_t types;              /* that anybody listens to */
	unsigned depth;
};

/* Before anything runs inside; they hear of an event in the order of these calls. Borrowed for the life of the hub. */
void hub_subscribe(struct hub *hub, struct subscriber *subscriber);

/* After the event's record was written; detail as its type says, borrowed during the call. Negative: the log failed. */
int hub_publish(struct hub *hub, enum event_type type, const void *detail) MUST_USE;
