/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The event types of the action log (doc/format/audit.md) and the form in which they are handed in.
 * Says nothing about where a record goes: that is writer.h, in atoll-box alone.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"

enum audit_type {
	AUDIT_SESSION_START,
	AUDIT_SESSION_END,
	AUDIT_EXEC_START,
	AUDIT_EXEC_END,
	AUDIT_EXEC_VERIFY,     /* what a command would do was looked at, before it runs */
	AUDIT_EXEC_TRIAL,      /* it was tried first, and what came of it */
	AUDIT_FILE_OPEN,
	AUDIT_FILE_WRITE,
	AUDIT_FILE_REMOVE,
	AUDIT_FILE_RENAME,
	AUDIT_NET_DNS,
	AUDIT_NET_CONNECT,
	AUDIT_NET_CLOSE,       /* the end of a connection: what it moved */
	AUDIT_NET_HTTP,
	AUDIT_NET_LISTEN,
	AUDIT_SYSCALL,         /* a system call that the filter refused */
	AUDIT_LIMIT_HIT,
	AUDIT_ASK_OPEN,
	AUDIT_ASK_ANSWER,
	AUDIT_POLICY_CHANGE,
	AUDIT_STAGE_SNAPSHOT,
	AUDIT_STAGE_RESTORE,
	AUDIT_STAGE_APPLY,
	AUDIT_STAGE_DISCARD,
	AUDIT_STAGE_UNDO,
	AUDIT_STAGE_FORGET,
	AUDIT_STAGE_ACCEPT,
	AUDIT_FILTER_HIT,
	AUDIT_TRUST_CHANGE,
	AUDIT_ALERT,
	AUDIT_VERIFY_EXTERNAL, /* what the external verifier said */
	AUDIT_SERVICE_CALL,    /* a request to the service (doc/format/service.md): in its own log, in no session's */
	AUDIT_OWNER_FILE,      /* what the sandbox's owner does to a file inside */
	AUDIT_OWNER_CONNECT,   /* to which port inside its owner connects */
	AUDIT_TYPE_COUNT,
};

extern const char *const audit_type_names[AUDIT_TYPE_COUNT];

/* One event. Every string may hold hostile bytes; the writer escapes. NULL or 0 fields are left out. */
struct audit_event {
	enum audit_type type;
	const char *verdict;         /* "allow", "deny", … */
	const char *rule;            /* rule id */
	pid_t pid;                   /* as the host sees it */
	const char *exe;
	const void *subject;
	size_t subject_size;
	/* Writes the members of "detail" (an object is already open); NULL: no detail. */
	void (*write_detail)(struct json *json, const void *context);
	const void *context;
};
