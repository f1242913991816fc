/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which programs start. An exec that the supervisor reports becomes a case (case.h) that goes through stages: the
 * verifier says what the command would do (verifier.h), where that leads to it the command is tried (dry-run.h), the
 * policy judges program and arguments (decide.h), an external verifier gives its opinion, and people are asked. Each
 * may take its time; the caller stands still meanwhile. What is let through is held, and judged once more when the new
 * program is there and has not run (exec-stop.c). Records are written by log.h. Run by atoll-box.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct exec_gate;
struct processes;
struct queue;
struct reviewer;
struct run;
struct staging;
struct store;
struct verifier_noted;
struct watch_exec;
struct watch_exec_answer;

/* What the gate works with; all of it is borrowed for its life. */
struct exec_gate_input {
	struct run *run;
	struct queue *queue;         /* of questions */
	struct reviewer *reviewer;   /* who gives a second opinion */
	struct processes *processes; /* who is followed until its end */
	const struct store *store;
	const struct staging *staging; /* without which nothing can be tried */
};

/*
 * Before anything starts inside: looks up what need not wait for the sandbox. taken: the programs that the mounts take
 * away (plan_refused()). *ret_gate is owned by the caller, for exec_gate_free(). -ENOMEM or -E2BIG.
 */
int exec_gate_prepare(struct exec_gate **ret_gate, const struct exec_gate_input *in, const uint32_t *taken,
		      size_t taken_count) MUST_USE;

/* The same for what judges commands by what they would do, where the policy has it. -ENOMEM. */
int exec_gate_prepare_verifier(struct exec_gate *gate) MUST_USE;

/*
 * Once, as soon as atoll-init says that it is ready: the root is whole and nothing else has run inside, so what the
 * rules name is what it was. -ENOMEM, -E2BIG, or why the sandbox's root cannot be opened.
 */
int exec_gate_enter(struct exec_gate *gate) MUST_USE;

/* on_exec, on_image, on_over and on_unheld of watch/watch.h. Negative: the log failed, or memory is short. */
int exec_gate_judge(struct exec_gate *gate, const struct watch_exec *exec,
		    struct watch_exec_answer *ret_answer) MUST_USE;
int exec_gate_image(struct exec_gate *gate, uint64_t token, pid_t pid) MUST_USE;
void exec_gate_over(struct exec_gate *gate, uint64_t token);
int exec_gate_unheld(struct exec_gate *gate, uint64_t token, pid_t pid, int errnum) MUST_USE;

/*
 * Everything inside is told to freeze: callers that wait for an answer make their call again afterwards, and then wait
 * again. gate may be NULL. Negative: the watch broke.
 */
int exec_gate_release(struct exec_gate *gate) MUST_USE;

/* What ran though something bad was found in it; NULL: nothing is looked at. gate may be NULL. */
const struct verifier_noted *exec_gate_noted(const struct exec_gate *gate);

/* Ends the programs that judge and try. Nothing is judged afterwards. gate may be NULL. */
void exec_gate_close(struct exec_gate *gate);

/* Forgets everything; gate may be NULL. Before queue_done(). */
void exec_gate_free(struct exec_gate *gate);
