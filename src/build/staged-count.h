/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many files a running sandbox has staged so far, for those who look at it while it runs. Cheap instead of exact:
 * nothing is compared with the host (that is staging_count()'s, and `atoll diff`'s), a count ends at a bound, and
 * costs a small share of the box's time whoever asks how often. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "build/staging.h"

struct staged_count {
	uint64_t paths;      /* files and links that the live layers hold or hide; directories are not counted */
	uint64_t hidden;     /* of these, names that the host has and that are gone */
	uint64_t bytes;      /* that the live layers take on their disk */
	bool is_cut;         /* there are more */
	uint64_t next_ns;    /* when to count again, if somebody asks */
};

/*
 * Counts again where it is time to, and notes files of the host that the sandbox has replaced by its own, before the
 * host deletes them (stage/change/seen.h). False: nothing is staged, or it cannot be read now.
 */
bool staged_count_look(struct staged_count *count, struct staging *staging, uint64_t now_ns) MUST_USE;
