/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/clocks.h"

#include <limits.h>

#include "base/num.h"

const char *const clock_hit_names[CLOCK_HIT_COUNT] = {
	[CLOCK_NONE] = "",
	[CLOCK_WALL] = "time.wall",
	[CLOCK_CPU] = "time.cpu",
	[CLOCK_IDLE] = "time.idle",
};

enum {
	MS_NS = 1000000,
	LOOK_MIN_MS = 20,
	IDLE_CPU_NOISE_NS = 1000000,
	IDLE_LOOKS = 4, /* what happened counts from the look that saw it: idleness is found this part of it later */
};

static uint64_t at_ms(uint64_t from_ns, uint64_t ms)
{
	uint64_t ns, at;

	if (ms == NUM_UNLIMITED || __builtin_mul_overflow(ms, (uint64_t)MS_NS, &ns) ||
	    __builtin_add_overflow(from_ns, ns, &at))
		return UINT64_MAX;
	return at;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The earliest moment at which a limit on CPU time or idleness could be reached. */
static void plan_look(struct clocks *clocks, uint64_t now_ns)
{
	uint64_t look = least(at_ms(clocks->active_ns, clocks->idle_ms),
			      clocks->idle_ms == NUM_UNLIMITED ? UINT64_MAX
							       : at_ms(now_ns, clocks->idle_ms / IDLE_LOOKS));
	uint64_t cpu_limit = at_ms(0, clocks->cpu_ms);

	if (cpu_limit != UINT64_MAX) {
		uint64_t left = cpu_limit > clocks->cpu_ns ? cpu_limit - clocks->cpu_ns : 0;

		look = least(look, now_ns + left / clocks->cpus);
	}
	/* Close to the limit the looks must not become a busy loop. */
	clocks->look_ns = look < now_ns + LOOK_MIN_MS * MS_NS ? now_ns + LOOK_MIN_MS * MS_NS : look;
}

void clocks_init(struct clocks *clocks, const struct policy *policy, unsigned cpus, uint64_t now_ns)
{
	*clocks = (struct clocks){
		.wall_ms = policy->limits[RESOURCE_WALL_MS].value,
		.cpu_ms = policy->limits[RESOURCE_CPU_MS].value,
		.idle_ms = policy->limits[RESOURCE_IDLE_MS].value,
		.cpus = cpus ? cpus : 1,
		.started_ns = now_ns,
		.active_ns = now_ns,
	};
	plan_look(clocks, now_ns);
}

void clocks_set_deadline(struct clocks *clocks, const struct policy *policy, uint64_t now_ns, uint64_t ms)
{
	uint64_t spent_ms = (now_ns - clocks->started_ns) / MS_NS, wall_ms;

	if (__builtin_add_overflow(spent_ms, ms, &wall_ms))
		wall_ms = NUM_UNLIMITED;
	clocks->wall_ms = least(wall_ms, policy->limits[RESOURCE_WALL_MS].value);
}

bool clocks_must_look(const struct clocks *clocks, uint64_t now_ns)
{
	return now_ns >= clocks->look_ns;
}

void clocks_saw(struct clocks *clocks, uint64_t now_ns, uint64_t cpu_ns, uint64_t moved_bytes)
{
	if (moved_bytes != clocks->moved_bytes || cpu_ns > clocks->active_cpu_ns + IDLE_CPU_NOISE_NS) {
		clocks->active_ns = now_ns;
		clocks->active_cpu_ns = cpu_ns;
	}
	clocks->cpu_ns = cpu_ns;
	clocks->moved_bytes = moved_bytes;
	plan_look(clocks, now_ns);
}

void clocks_pause(struct clocks *clocks, uint64_t paused_ns)
{
	clocks->started_ns += paused_ns;
	clocks->active_ns += paused_ns;
	if (clocks->look_ns != UINT64_MAX)
		clocks->look_ns += paused_ns;
}

enum clock_hit clocks_check(const struct clocks *clocks, uint64_t now_ns)
{
	if (now_ns >= at_ms(clocks->started_ns, clocks->wall_ms))
		return CLOCK_WALL;
	if (clocks->cpu_ns >= at_ms(0, clocks->cpu_ms))
		return CLOCK_CPU;
	if (now_ns >= at_ms(clocks->active_ns, clocks->idle_ms))
		return CLOCK_IDLE;
	return CLOCK_NONE;
}

int clocks_timeout_ms(const struct clocks *clocks, uint64_t now_ns)
{
	uint64_t next = least(clocks->look_ns, at_ms(clocks->started_ns, clocks->wall_ms));
	uint64_t ms;

	if (next == UINT64_MAX)
		return -1;
	if (next <= now_ns)
		return 0;
	ms = (next - now_ns + MS_NS - 1) / MS_NS;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
