/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A function of a client: code that runs for one event at a time, each time in a sandbox that nobody had before. An
 * instance is such a sandbox: it starts ahead, loads the code, serves one invocation, and ends. So nothing passes from
 * one invocation to the next. This is what is known of a function and of its last invocations. Runs in atolld.
 */

#include "service/launcher/call/call.h"

enum {
	FUNCTION_LOGS = 32,              /* of the last invocations */
	FUNCTION_TIMES = 256,
	FUNCTION_TIMEOUT_DEFAULT_MS = 30000,
	FUNCTION_TIMEOUT_MAX_MS = 900000,
	FUNCTION_CONCURRENCY_DEFAULT = 8,
};

/* What came of an invocation. */
struct function_end {
	uint64_t exit, signal, us;
	char ended[24];                  /* "exit", "signal", "time", "cancelled", … */
};

/* One invocation that is over. */
struct function_log {
	uint64_t number, time_ms, dropped;
	struct function_end end;
	bool is_cold;
	char *text;                      /* owned; NULL: none */
};

struct function_record {
	uint64_t invocations, errors, cold;
	uint32_t times_us[FUNCTION_TIMES];   /* a ring */
	struct function_log logs[FUNCTION_LOGS];
};

struct instance;

struct function {
	struct function *next;
	struct daemon *daemon;
	char id[CREDENTIAL_ID_SIZE], name[DATABASE_NAME_SIZE], owner[DATABASE_NAME_SIZE];
	int64_t key;
	uint64_t created_ms;
	struct kept made;                /* SERVICE_FUNCTION_DEPLOY */
	struct instance *instances;      /* owned */
	struct call *waiting;            /* for an instance, the oldest first: by their next */
	struct call *deployer;           /* of a trial: who is told what came of it */
	bool is_served;                  /* false: it is being deployed */
	size_t wanted;                   /* as many were wanted at once lately */
	uint64_t used_ns, back_off_ns;   /* when it was invoked last; no start ahead before */
	uint64_t began_ns, fill_ns;      /* fill: when those that wait are looked at again; 0: not */
	struct function_record *record;  /* owned */
};

/* NULL: out of memory. made is taken over in any case. */
struct function *function_new(struct daemon *daemon, struct kept *made);
/* Frees it. It has no instances, and nobody waits. */
void function_free(struct function *function);

/* How long one invocation may take, how many may run at once, and whether its results are JSON. */
uint64_t function_timeout_ms(const struct function *function);
uint64_t function_concurrency(const struct function *function);
bool function_is_json(const struct function *function);

/* Where what it begins with is: a directory. Negative errno. */
int function_directory(const struct daemon *daemon, const char *id, char out[PATH_MAX]) MUST_USE;

/* The policy of its key, narrowed to what it says that it needs. */
int function_policy(const struct function *function, struct policy_found *ret_found, struct err *err) MUST_USE;

/* Notes an invocation that is over. text: what it logged, or NULL. */
void function_note(struct function *function, const struct function_log *log, const char *text);

/* All that is known of it, as values of a reply or a row. running, warm: instances. */
void function_describe(const struct function *function, struct buf *out, size_t running, size_t warm);
