/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How often programs of one sandbox may be tried (dry-run.h). Each trial freezes everything inside for a moment, forks
 * the session and leaves a record with its log on the host, and what is tried says how often. Pure. Run by
 * atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"

enum { TRIALS_SAVED_MAX = 30, TRIAL_EVERY_MS = 60000 };

/* All zero is a start: it is full when it is first used. */
struct dry_run_budget {
	struct bucket bucket;
	bool is_begun;
};

/* Takes one; false: there is none. */
bool dry_run_budget_take(struct dry_run_budget *budget, uint64_t now_ns);
