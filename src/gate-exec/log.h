/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records of execs and of what was refused of them, for the log, the report and the agent. It judges nothing. Negative
 * throughout: the log failed. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "policy/decide.h"

struct exec_gate;
struct watch_exec;

struct exec_entry {
	pid_t pid;
	const char *subject;
	const char *const *argv;     /* NULL: not known */
	const struct watch_exec *exec; /* its caller waits, so that what its path leads to can be told; or NULL */
	size_t argv_left_out;
	bool is_verifier_refusal;    /* refused because a verifier found something: that counts against the agent */
};

/* What a verifier refused last. */
struct exec_refused {
	pid_t pid;                   /* 0: nothing yet */
	struct hash argv_hash;
};

/* It starts. Writes nothing where the policy wants no such records, and follows the process until its end. */
int exec_log_start(struct exec_gate *gate, const struct exec_entry *entry, const struct decision *decision) MUST_USE;

/* It does not: a record, a line for the agent, and one more refusal (supervise/rate.h). */
int exec_log_refusal(struct exec_gate *gate, const struct exec_entry *entry, const struct decision *decision) MUST_USE;
