/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The subverbs of `atoll policy` that `atoll` has itself, one file each; the others are atoll-policy's. Each prints.
 * The exit status, or negative with *err. words: those behind the subverb, NULL-terminated.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

struct dirs;
struct policy;

/*
 * The policies that a name stands for, with the first sentence of each one's own comment: shipped ones by kind, then
 * the user's own (CONFIG/atoll/policies). Compiles none, and says nothing of whether they are valid. No words.
 */
int policy_list(char **words, bool json, struct err *err) MUST_USE;

/*
 * Has a policy compiled for the project of a session that lives, and hands it to that session's box, which decides
 * whether it can be taken over. words: [ID] POLICY.
 */
int policy_set(char **words, bool json, struct err *err) MUST_USE;

/*
 * What a policy would have decided otherwise about what sessions did. The logs are read by atoll-learn, which confines
 * itself first. words: the policy, then sessions (none: the newest of the project). 0 where nothing would differ,
 * LEARN_DIFFERS where something would, LEARN_UNKNOWN where that cannot be known.
 */
int policy_test(char **words, bool json, struct err *err) MUST_USE;

/*
 * Which trust level a run would have now under a policy and why, what the record of its agent has to do with it, and
 * what other records and confidences would come to. Changes nothing. agent: NULL: the policy's, or nobody's.
 */
int policy_explain_trust(const struct policy *policy, const struct dirs *dirs, const char *agent, bool is_json,
			 struct err *err) MUST_USE;

struct learn_request {
	const char *policy;      /* -p, or NULL */
	const char *trust;       /* -t, or NULL */
	const char *output;      /* a file that is made; NULL: stdout */
	char **command;          /* NULL-terminated */
};

/*
 * Runs a command with everything recorded, and proposes the smallest policy that would have allowed what it did. What
 * the proposal is made of is read by atoll-learn, which confines itself first. 0 where there is a proposal that was
 * seen to hold; else 125 and the like.
 */
int policy_learn(const struct learn_request *request, struct err *err) MUST_USE;
