/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One request of a client, from its frame to its one reply, which is written into the audit log before it is sent. Who
 * has a call either answers it, which frees it, or hands it on. Runs in atolld.
 */

#include "service/launcher/call/daemon.h"

enum { CALL_ROWS_MAX = 112 << 10 }; /* bytes of the rows of one reply */

/* Whose request it is: of a key, or of somebody who has a sandbox's token. */
struct caller {
	bool has_key;
	struct key_row key;
};

/* The steps of a creation, for the log: CLOCK_MONOTONIC; 0: not reached. */
struct steps {
	const char *from;                  /* "pool", "warm" or "cold"; NULL: it is no creation */
	uint64_t started_ns;               /* the start of its sandbox was asked for */
	uint64_t ready_ns;                 /* it was heard to be ready */
};

struct call {
	struct daemon *daemon;
	uint64_t generation;               /* of the front */
	uint8_t *bytes;                    /* owned */
	struct service_message *message;   /* owned */
	struct caller caller;
	struct sandbox *sandbox;           /* that it is about; NULL: none, or not known yet */
	uint64_t asked_ns;                 /* by the front */
	uint64_t began_ns;                 /* when it was read */
	struct steps steps;
	uint32_t retry_after_s;            /* of an error: when to try again; 0: nothing is said */
	struct call *next;                 /* of those that wait for the same sandbox to wake */
	void (*then)(struct call *call);   /* what goes on with it then */
	/* Told of an error that the call is about to be answered with; NULL: nobody. */
	void (*failed)(struct call *call, const char *message);
	bool has_policy;                   /* what it needs was compiled for it */
	uint64_t count, done;              /* of the handler's */
	char text[CREDENTIAL_ID_SIZE];     /* of the handler's */
	struct buf rows;                   /* of the handler's: what the reply will have */
};

/* Takes bytes and message. NULL: no memory, and both are freed. */
struct call *call_new(struct daemon *daemon, uint8_t *bytes, struct service_message *message);

/* The operation's own values. */
static inline const char *call_string(const struct call *call, const char *key)
{
	return service_string(call->message, key);
}

static inline uint64_t call_number(const struct call *call, const char *key, uint64_t missing)
{
	return service_number(call->message, key, missing);
}

/* user_check() of the user that the request names, in its sandbox. */
int call_check_user(const struct call *call, struct err *err) MUST_USE;

/* Begins the reply in the daemon's buffer (borrowed until call_end_reply()): values by field_put_*(). */
struct buf *call_begin_reply(struct call *call, uint32_t status);

/* Sends it, with descriptors, which are closed; frees the call. */
void call_end_reply(struct call *call, int *fds, size_t fd_count);

/* A reply without values. Frees the call. */
void call_reply(struct call *call, uint32_t status);

/* An error: its status, the code of the Connect protocol (NULL: that of the status), and a sentence. Frees the call. */
void call_fail(struct call *call, uint32_t status, const char *connect, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The error that a code of libatoll stands for; what and hint may be "". Frees the call. */
void call_fail_atoll(struct call *call, int code, const char *what, const char *hint);

/* The status where something of the service's own cannot be written (-errno): 507 on a full disk, else 500. */
uint32_t call_unwritten_status(int r);

/* An error with this status, whose sentence is what the err says and advises. Frees the call. */
void call_fail_err(struct call *call, uint32_t status, const struct err *err);

/* The same 404 for an unknown sandbox and for somebody else's. Frees the call. */
void call_fail_unknown(struct call *call);

/* Writes a record about something that no client asked for: a sandbox that ended, a start. 0, or the log's error. */
int call_note(struct daemon *daemon, const char *what, const char *sandbox, const char *text) MUST_USE;
