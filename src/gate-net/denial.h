/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What becomes of something on the network that is refused: the record with its reason and the way out, the list of
 * denials, and the pause after a burst of guesses. What is refused is decided elsewhere (log.h). Run by atoll-box.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "gate-net/record.h"
#include "wire/gate.h"

struct net_gate;

/* What is said of a refusal of the gate's own. */
struct gate_refusal_text {
	struct rule_origin rule;
	const char *reason, *hint;
};
extern const struct gate_refusal_text gate_refusal_texts[GATE_REFUSAL_COUNT];

/* What the policy does not allow; many of these are a burst of guesses. detail: borrowed. Negative: the log failed. */
int gate_deny_guess(struct net_gate *gate, enum audit_type type, const struct action *action, struct decision decision,
		    pid_t pid, const struct net_detail *detail) MUST_USE;

/* The same of whatever comes while nothing new is let out, which is no guess. */
int gate_deny_paused(struct net_gate *gate, enum audit_type type, const struct action *action, pid_t pid,
		     const struct net_detail *detail) MUST_USE;

/* The same of what is beyond a limit, which limit names; one that the policy does not have is called by its kind. */
int gate_deny_limited(struct net_gate *gate, enum audit_type type, const struct action *action, pid_t pid,
		      const struct net_detail *detail, const struct gate_limit *limit) MUST_USE;

/* Nothing new is let out now. */
bool gate_is_paused(const struct net_gate *gate);

/* A limit that begins to refuse: once an episode. Negative: the log failed. */
int gate_log_limit(struct net_gate *gate, const struct gate_limit *limit) MUST_USE;
