/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file gate: judges the file calls that the policy has mediated, asks people about some, and writes down what was
 * read, written, removed and refused. It is the hottest path of a box: what happens again and again is counted, and
 * written once in a while. directory-move.h renames directories that the kernel does not. Run by atoll-box, from the
 * supervisor's loop.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "gate-file/log.h"
#include "jail/spec.h"
#include "policy/decide.h"
#include "policy/policy.h"
#include "supervise/module.h"
#include "watch/watch.h"

struct disk_full;
struct queue;
struct run;
struct runtime_mounts;

/* A question about one path of one call, and its answer. */
struct file_question {
	uint64_t id;                 /* of the notification */
	char *path;                  /* owned: what was asked about */
	enum watch_file_access access;
	const char *call;            /* static: name of the system call */
	pid_t pid;
	bool is_answered, is_allowed;
	bool is_due;                 /* its caller has not heard of the answer yet */
	char rule[64];               /* of the grant */
};

enum { FILE_QUESTIONS_MAX = 2 * WATCH_FILES_WAITING_MAX };

struct file_gate {
	struct run *run;
	struct queue *queue;         /* of questions */
	struct runtime_mounts *mounts; /* what was granted and brought in */
	const struct disk_full *disk; /* for whose sake writes are refused */
	bool (*is_planted)(const void *planted, const char *path); /* shown in the place of what is hidden there */
	const void *planted;
	struct file_log log;
	struct file_question *questions; /* owned; made when first needed */
	size_t question_count;
	struct decision judged;      /* of the path of the call that was judged last */
	uint64_t judged_id;          /* its notification; 0: none */
};

/* on_file, on_file_asks, on_file_done and on_file_gone of watch/watch.h; what is borrowed above is set. */
int file_gate_judge(struct file_gate *gate, const struct watch_file *event);
int file_gate_ask(struct file_gate *gate, const struct watch_file *event);
int file_gate_record(struct file_gate *gate, const struct watch_file *event);
void file_gate_gone(struct file_gate *gate, uint64_t id);

/*
 * What the policy says of a path that the sandbox's owner is about to read, write or remove there, beyond what the
 * mounts say: 0, or the errno. What only a person may allow is refused. Nothing is counted or recorded.
 */
int file_gate_judge_owner(struct file_gate *gate, enum watch_file_access access, const char *path) MUST_USE;

/* Nothing runs inside any more: what is still asked about is refused, and written down. Before queue_end(). */
void file_gate_end(struct file_gate *gate);

/* Tells what was counted; is_last: all of it, else what has waited for a second. Negative: the log failed. */
int file_gate_flush(struct file_gate *gate, bool is_last) MUST_USE;

/* Whether something was counted that file_gate_flush() will write. */
static inline bool file_gate_is_pending(const struct file_gate *gate)
{
	return gate->log.waiting;
}

/*
 * Its state is a struct file_gate: callers who were answered make their call again. What was counted must have been
 * flushed when it is done.
 */
extern const struct module file_gate_module;
