/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which programs start: each exec is judged by the policy before it is let through, and where rules for programs are
 * more than what mounts take away, once more when the new program is there. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "watch/watch.h"

struct box;
struct exec_gate;

/*
 * Before anything starts inside: looks up what need not wait for the sandbox. taken: the programs that the mounts take
 * away (plan_refused()). -ENOMEM or -E2BIG.
 */
int exec_gate_prepare(struct box *box, const uint32_t *taken, size_t taken_count) MUST_USE;
/*
 * Once, as soon as atoll-init says that it is ready: the root is whole and nothing else has run inside, so what the
 * rules name is what it was. As above, or why the sandbox's root cannot be opened.
 */
int exec_gate_enter(struct box *box) MUST_USE;

/* Handlers of the watch (watch/watch.h); context is the box. */
int exec_gate_judge(void *context, const struct watch_exec *exec, struct watch_exec_answer *ret_answer) MUST_USE;
int exec_gate_image(void *context, uint64_t token, pid_t pid) MUST_USE;
/* atoll-verify has answered about an exec (box/verify-gate.h). Negative: the log failed. */
struct verify_outcome;
int exec_gate_verified(struct box *box, uint64_t token, const struct verify_outcome *outcome) MUST_USE;

/* A trial has shown what it shows (box/exec-trial.h). As above. */
int exec_gate_tried(struct box *box, uint64_t token) MUST_USE;

void exec_gate_over(void *context, uint64_t token);
int exec_gate_unheld(void *context, uint64_t token, pid_t pid, int errnum) MUST_USE;

/*
 * Everything inside is told to freeze: callers that wait for a person's answer make their call again afterwards, and
 * then ask again. Negative: the watch broke.
 */
int exec_gate_release(struct box *box) MUST_USE;

/* Forgets everything. Before queue_done(). */
void exec_gate_done(struct box *box);
