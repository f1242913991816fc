/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * TIME LIMITER: which time limit has been reached, and when to look again. Pure: the caller brings the clock.
 * Per-command time is in command.h. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"

enum clock_hit { CLOCK_NONE, CLOCK_WALL, CLOCK_CPU, CLOCK_IDLE, CLOCK_HIT_COUNT };

extern const char *const clock_hit_names[CLOCK_HIT_COUNT]; /* policy keys: "time.wall", … */

struct clocks {
	uint64_t wall_ms, cpu_ms, idle_ms; /* NUM_UNLIMITED: none */
	unsigned cpus;			   /* how fast CPU time can be used up at most */
	uint64_t started_ns;
	uint64_t active_ns;	      /* when something was last seen to happen */
	uint64_t active_cpu_ns;	      /* CPU time used until then */
	uint64_t cpu_ns, moved_bytes; /* as last seen */
	uint64_t look_ns;	      /* when usage must be read again */
};

/* Starts them with the limits of the policy; cpus: how many the sandbox can use at once, 0 is taken as 1. */
void clocks_init(struct clocks *clocks, const struct policy *policy, unsigned cpus, uint64_t now_ns);

/* The wall clock ends ms from now; never later than the policy says. */
void clocks_set_deadline(struct clocks *clocks, const struct policy *policy, uint64_t now_ns, uint64_t ms);

/* Whether CPU time or activity must be read now (clocks_saw), since a limit on them might be reached. */
bool clocks_must_look(const struct clocks *clocks, uint64_t now_ns);

/* Takes what was read and plans the next look. */
void clocks_saw(struct clocks *clocks, uint64_t now_ns, uint64_t cpu_ns, uint64_t moved_bytes);

/* Nothing could happen for this long: it counts neither as time nor as idleness. */
void clocks_pause(struct clocks *clocks, uint64_t paused_ns);

/* The limit that is reached by what was last seen. */
enum clock_hit clocks_check(const struct clocks *clocks, uint64_t now_ns);

/* Milliseconds until the next thing to do, rounded up; -1 when there is none. */
int clocks_timeout_ms(const struct clocks *clocks, uint64_t now_ns);
