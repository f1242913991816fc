/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records of mediated file calls. What one process does again and again is counted, and written once in a while. It
 * judges nothing. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "audit/writer.h"
#include "base/cleanup.h"
#include "policy/policy.h"

struct watch_file;

/* What is written about one call, beside its paths. */
struct file_note {
	enum audit_type type;
	enum verdict verdict;
	pid_t pid;
	const char *call;            /* static */
	const char *rule;            /* borrowed */
	int flags, errnum;
};

/* All zero: nothing was counted yet. */
struct file_log {
	struct file_repeat *repeats; /* owned; NULL until the first */
	size_t waiting;              /* of these, how many have something to tell */
	uint64_t told_ns;            /* when all were told last; CLOCK_MONOTONIC */
};

/* Writes the call, or counts it. It may run with the sandbox's ids. Negative: the log failed. */
int file_log_add(struct file_log *log, struct audit_writer *audit, const struct file_note *fresh,
		 const struct watch_file *event) MUST_USE;

/* Writes what was counted; is_last: all of it, else what has waited for a second. Negative: the log failed. */
int file_log_flush(struct file_log *log, struct audit_writer *audit, bool is_last) MUST_USE;

/* Forgets it; unwritten counts are lost. */
void file_log_done(struct file_log *log);

/* Whether a system call of this name opens its file. */
bool file_log_is_open(const char *call);

/* The path of a process's program, as the sandbox sees it, cut to size; "": it cannot be told. */
void file_log_program(pid_t pid, char *out, size_t size);
