/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much the sandbox may do per time (time.rate), and the pause of every gate after a burst of refusals at any of
 * them (time.cooldown). What the network's gate has meters for is counted there (egress/limit/quota.h). Runs in
 * atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/cleanup.h"
#include "policy/policy.h"
#include "supervise/cooldown.h"

struct run;

extern const char rate_cooldown_rule[];     /* "time.cooldown" */

/* All zero is a start: buckets are filled when they are first used. */
struct rates {
	struct bucket buckets[RATE_KIND_COUNT];
	uint64_t quiet_ns[RATE_KIND_COUNT]; /* until then a refusal belongs to the episode that was told */
	uint32_t episodes[RATE_KIND_COUNT];
	struct cooldown cooldown;
};

/* Whether anything of this kind is counted, or can be refused by a pause; false: nobody has to ask. */
bool rate_is_limited(const struct run *run, enum rate_kind kind);

/*
 * One more of this kind is about to happen. 0: let it; 1: refuse it with EAGAIN, which the log and denials.jsonl know
 * once an episode. Negative: the log could not be written.
 */
int rate_take(struct run *run, enum rate_kind kind) MUST_USE;

/* The policy refused something, at whatever gate: many of these begin a pause. Negative as above. */
int rate_refused(struct run *run) MUST_USE;

/* How long the pause of all gates still lasts; 0: there is none. */
uint64_t rate_pause_left_ms(const struct run *run);
