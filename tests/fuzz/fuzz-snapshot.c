/* SPDX-License-Identifier: Apache-2.0 */

/* The snapshot loader on arbitrary bytes; what it accepts must be safe to decide with. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/decide.h"
#include "policy/snapshot/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void decide_all(const struct policy *policy)
{
	static const char *const subjects[] = {
		"/", "/usr/bin/env", "/home/u/.ssh/id_rsa", "a.example.org", "10.0.0.1", "x"
	};
	static const char *const argv[] = { "git", "push", NULL };

	for (int kind = 0; kind < ACTION_KIND_COUNT; kind++) {
		for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
			struct action action = { kind, subjects[i], argv, "GET", "/v1/x", 443 };
			struct decision decision = policy_decide(policy, &action);

			if (!decision.reason || !decision.hint || !decision.rule.id)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	cleanup_snapshot struct snapshot *snapshot = NULL;
	/* The loader wants aligned bytes, as a mapping gives them. */
	cleanup_free uint8_t *copy = malloc(size ? size : 1);
	size_t count;

	if (!copy)
		return 0;
	memcpy(copy, bytes, size);
	if (snapshot_load(&snapshot, copy, size) < 0)
		return 0;
	decide_all(snapshot_policy(snapshot));
	for (size_t i = 0; i < snapshot_policy(snapshot)->files.plan_count; i++)
		if (snapshot_policy(snapshot)->files.plan[i].path[0] != '/')
			abort();
	if (!snapshot_sources(snapshot, &count) && count)
		abort();
	return 0;
}
