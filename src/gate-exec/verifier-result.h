/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What findings of atoll-verify lead to, by the policy and by what the sandbox's walls hold anyway, and their record in
 * the log. For verifier.c; starts nothing and waits for nobody. Run by atoll-box.
 */

#include "gate-exec/verifier.h"

struct run;

/*
 * *ret_outcome: the strictest action of all findings and the finding that leads to it. More than nothing is in the log
 * before it leads to anything; *noted counts what runs all the same. 0, or -errno: the log failed.
 */
int verifier_conclude(struct run *run, struct verifier_noted *noted, pid_t pid, const char *exe,
		    const struct verify_answer *answer, struct verify_outcome *ret_outcome) MUST_USE;

/* It could not be judged, and the policy says what that means. why: one sentence. As above. */
int verifier_conclude_unknown(struct run *run, struct verifier_noted *noted, pid_t pid, const char *exe,
			      const char *why,
			    struct verify_outcome *ret_outcome) MUST_USE;
