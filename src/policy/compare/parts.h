/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which parts of two policies are not the same, as far as a sandbox could tell: for a change while it runs, which can
 * be of the network alone. Where a rule was written does not matter. Pure.
 */

#include "policy/policy.h"

enum policy_part {
	POLICY_PART_FILES,
	POLICY_PART_EXEC,
	POLICY_PART_LIMITS,          /* resources and time */
	POLICY_PART_ENV,
	POLICY_PART_DEVICES,
	POLICY_PART_DATA,
	POLICY_PART_AUDIT,
	POLICY_PART_STAGE,
	POLICY_PART_DEGRADE,
	POLICY_PART_ASK,
	POLICY_PART_MONITOR,
	POLICY_PART_TRUST,
	POLICY_PART_VERIFY,
	POLICY_PART_PUBLISH,         /* of the network, but made before the sandbox lives */
	POLICY_PART_HOST_PORTS,      /* as POLICY_PART_PUBLISH, but that fewer of them are none */
	POLICY_PART_INJECT,          /* as POLICY_PART_PUBLISH: the rules that inject, as a whole */
	POLICY_PART_EXTERNAL,
	POLICY_PART_AGENT,           /* what is made and shown before the sandbox lives */
	POLICY_PART_COUNT,
};

/* As a policy has them: "files", "resources and time", "network.publish", … */
extern const char *const policy_part_names[POLICY_PART_COUNT];

/* Bits 1u << enum policy_part of what differs. Ports of the host that b leaves out, and closes, are no difference. */
uint32_t policy_compare_parts(const struct policy *a, const struct policy *b);

/* Whether they pause after as many refusals, within as long, for as long. */
bool cooldown_rules_equal(const struct cooldown_rule *a, const struct cooldown_rule *b);

/* Whether `to` lets more through; a mixed change does: what is only tighter does not. */
bool cooldown_rule_is_wider(const struct cooldown_rule *from, const struct cooldown_rule *to);
