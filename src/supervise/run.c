/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/run.h"

#include <string.h>
#include <sys/stat.h>

#include "audit/writer.h"
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "policy/policy.h"
#include "supervise/hub.h"

const char *const ended_names[ENDED_COUNT] = {
	[ENDED_NOT] = "",	   [ENDED_EXIT] = "exit",     [ENDED_SIGNAL] = "signal",
	[ENDED_TIME] = "time",	   [ENDED_MEMORY] = "memory", [ENDED_DISK] = "disk",
	[ENDED_OUTPUT] = "output", [ENDED_POLICY] = "policy", [ENDED_STOPPED] = "stopped",
};

void run_end(struct run *run, enum ended why)
{
	if (run->ended != ENDED_NOT)
		return;
	run->ended = why;
	run->owner.kill(run->owner.context);
}

void run_stage_add(struct run *run, const char *name, uint64_t ns)
{
	struct run_course *course = &run->course;

	if (course->stage_count < RUN_STAGES_MAX)
		course->stages[course->stage_count++] = (struct run_stage){ name, ns };
}

void run_stage(struct run *run, const char *name)
{
	uint64_t now_ns = clock_monotonic_ns();

	run_stage_add(run, name, now_ns - run->course.stage_started_ns);
	run->course.stage_started_ns = now_ns;
}

static bool was_hit(const struct run_course *course, const char *limit)
{
	for (size_t i = 0; i < course->hit_count; i++)
		if (str_equal(course->hits[i], limit))
			return true;
	return false;
}

static void hit_detail(struct json *json, const void *context)
{
	const uint64_t *value = context;

	json_u64(json, "limit", *value);
}

int run_limit_hit(struct run *run, const char *limit, uint64_t value)
{
	return was_hit(&run->course, limit) ? 0 : run_limit_episode(run, limit, value);
}

int run_limit_episode(struct run *run, const char *limit, uint64_t value)
{
	struct run_course *course = &run->course;
	struct audit_event event = {
		.type = AUDIT_LIMIT_HIT,
		.verdict = "deny",
		.rule = limit,
		.subject = limit,
		.subject_size = strlen(limit),
		.write_detail = hit_detail,
		.context = &value,
	};
	bool is_new = !was_hit(course, limit);
	int r;

	if (is_new && course->hit_count < RUN_HITS_MAX &&
	    str_copy(course->hits[course->hit_count], RUN_HIT_SIZE, limit) == 0)
		course->hit_count++;
	r = audit_write(run->audit, &event);
	return r < 0 || !is_new ? r : hub_publish(run->hub, EVENT_LIMIT, limit);
}

/*
 * Every refused call and every exec is a record, and a loop of them is 10 MB a second: what the sandbox may
 * take of the disk counts for the log that it causes as well.
 */
int run_check_log_size(struct run *run)
{
	uint64_t limit = run->policy->policy->limits[RESOURCE_DISK].value;
	struct stat st;

	if (limit == NUM_UNLIMITED || run->ended != ENDED_NOT || fstat(run->audit->fd, &st) < 0 ||
	    (uint64_t)st.st_size <= limit)
		return 0;
	run_end(run, ENDED_DISK);
	return run_limit_hit(run, "resources.disk", limit);
}
