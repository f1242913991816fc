/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>

#include "base/num.h"
#include "base/str.h"
#include "box/state/sandbox.h"
#include "box/steps.h"

/* The limits of a sandbox, and what they lack here. */

static int start_limits(struct box *box)
{
	const struct policy *policy = box->run.policy->policy;
	struct limit_request request = {
		.session = box->run.request->group,
		.memory_bytes = policy->limits[RESOURCE_MEMORY].value,
		.millicpus = policy->limits[RESOURCE_CPUS].value,
		.processes = policy->limits[RESOURCE_PROCESSES].value,
		.runtime_dir = env_find(box->run.request->command.env, "XDG_RUNTIME_DIR"),
		.companion = jail_waiting(box->build.jail),
		.forced_backend = box->run.request->tests.limits,
	};

	int r = limit_group_new(&box->run.limits, &request, box->run.err);

	return r < 0 ? r : limit_group_prepare(box->run.limits, box->run.err);
}

/* All at once, with the one flag that accepts them. */
static int refuse_limits(struct box *box, uint32_t refused)
{
	char memory[96];
	struct buf names;

	buf_init_fixed(&names, memory, sizeof memory);
	for (unsigned wall = 0; wall < WALL_COUNT; wall++)
		if (refused >> wall & 1)
			buf_printf(&names, "%s%s", names.size ? "," : "", wall_names[wall]);
	err_set(box->run.err, ERR_WALL, 0, "limits",
		"this user has no cgroup here that can hold the limits of the policy (%s)", buf_text(&names));
	/* A program that started it has no options; a client of a service hears this, too. */
	err_hint(box->run.err, "`atoll doctor` says how to get one; to run without: %s%s%s",
		 box->run.request->starter ? "`degrade: [" : "atoll run --degrade ", buf_text(&names),
		 box->run.request->starter ? "]` in the policy" : " …");
	return -EOPNOTSUPP;
}

/* A limit that the policy wants hard and that nothing here can hold is a missing wall. */
static int check_limit_walls(struct box *box)
{
	const struct {
		enum limit_holder holder;
		enum wall wall;
		enum resource resource;
	} walls[] = {
		{ limit_group_holder_memory(box->run.limits), WALL_CGROUP_MEMORY, RESOURCE_MEMORY },
		{ limit_group_holder_processes(box->run.limits), WALL_CGROUP_PIDS, RESOURCE_PROCESSES },
		{ limit_group_holder_cpus(box->run.limits), WALL_CGROUP_CPU, RESOURCE_CPUS },
	};

	uint32_t refused = 0;

	for (size_t i = 0; i < ARRAY_SIZE(walls); i++) {
		const struct resource_limit *limit = &box->run.policy->policy->limits[walls[i].resource];
		/* The process limit holds without a cgroup too: the user namespace counts (see limit/). */
		bool holds = walls[i].holder >= LIMIT_BY_CGROUP || walls[i].holder == LIMIT_NONE ||
			     (walls[i].holder == LIMIT_BY_RLIMIT && walls[i].wall == WALL_CGROUP_PIDS);

		if (str_equal(box->run.request->tests.broken_wall, wall_names[walls[i].wall]))
			holds = false;
		if (holds || limit->value == NUM_UNLIMITED)
			continue;
		if (box->run.policy->policy->degrade & 1u << walls[i].wall)
			box->run.missing |= 1u << walls[i].wall;
		else
			refused |= 1u << walls[i].wall;
	}
	return refused ? refuse_limits(box, refused) : 0;
}

/* Private trees are a tmpfs with a size; a tree that is written in place is as large as its disk lets it be.
 */
static int check_disk_wall(struct box *box)
{
	const struct policy *policy = box->run.policy->policy;
	const struct resource_limit *limit = &policy->limits[RESOURCE_DISK];
	const struct file_plan_entry *written = NULL;

	for (size_t i = 0; i < policy->files.plan_count && !written; i++)
		if (policy->files.plan[i].class == FILE_WRITE)
			written = &policy->files.plan[i];
	if (limit->value == NUM_UNLIMITED || !written)
		return 0;
	if (policy->degrade & 1u << WALL_DISK) {
		box->run.missing |= 1u << WALL_DISK;
		return 0;
	}
	err_set(box->run.err, ERR_WALL, 0, wall_names[WALL_DISK],
		"%s is written in place, and there the disk limit cannot be enforced (%s)", written->path,
		limit->origin.id);
	err_hint(box->run.err, "accept it with `degrade: [%s]`, or make the tree `read`", wall_names[WALL_DISK]);
	return -EOPNOTSUPP;
}

/* What lies in file systems that programs mounted themselves is counted by a cgroup alone: nobody else finds it. */
static int check_own_mounts(struct box *box)
{
	const struct policy *policy = box->run.policy->policy;
	enum limit_holder holder = limit_group_holder_memory(box->run.limits);

	if (policy->exec.namespaces != EXEC_NAMESPACES_MOUNTS || holder >= LIMIT_BY_CGROUP ||
	    policy->limits[RESOURCE_MEMORY].value == NUM_UNLIMITED)
		return 0;
	err_set(box->run.err, ERR_WALL, 0, wall_names[WALL_CGROUP_MEMORY],
		"`exec: {namespaces: mounts}` needs a cgroup for the memory limit, and this user has none here");
	err_hint(box->run.err,
		 "`atoll doctor` says how to get one; or lift the limit: `resources: {memory: unlimited}`");
	return -EOPNOTSUPP;
}

int build_limits(struct box *box)
{
	int r = start_limits(box);

	if (r == 0)
		r = check_limit_walls(box);
	if (r == 0)
		r = check_own_mounts(box);
	return r == 0 ? check_disk_wall(box) : r;
}

void limits_held(const struct limit_group *group, enum limit_hold holds[RESOURCE_COUNT])
{
	if (limit_group_holder_memory(group) == LIMIT_SUPERVISED)
		holds[RESOURCE_MEMORY] = LIMIT_LOOKED_AT;
	/* Nobody ends a run for what these two use. */
	if (limit_group_holder_processes(group) < LIMIT_BY_RLIMIT)
		holds[RESOURCE_PROCESSES] = LIMIT_HOLDS_NOT;
	if (limit_group_holder_cpus(group) < LIMIT_BY_RLIMIT)
		holds[RESOURCE_CPUS] = LIMIT_HOLDS_NOT;
}

uint64_t limits_open_files(const struct policy *policy)
{
	uint64_t files = policy->limits[RESOURCE_OPEN_FILES].value;
	struct rlimit now;

	/* A hard limit can only be lowered without privilege. */
	return getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_max < files ? now.rlim_max : files;
}

size_t build_rlimits(const struct policy *policy, struct jail_rlimit rlimits[4])
{
	size_t count = 0;
	uint64_t files = limits_open_files(policy), size = policy->limits[RESOURCE_FILE_SIZE].value;

	/* 1 and not 0: the only limit that a core_pattern with a pipe heeds, so no program of the host is
	 * started by a crash inside. A file of one byte is none either. The filter keeps it there. */
	rlimits[count++] = (struct jail_rlimit){ RLIMIT_CORE, { 1, 1 } };
	/* Where nothing is asked for, what the caller has stays, its softer limit included. */
	if (policy->limits[RESOURCE_OPEN_FILES].value != NUM_UNLIMITED)
		rlimits[count++] = (struct jail_rlimit){ RLIMIT_NOFILE, { files, files } };
	if (size != NUM_UNLIMITED)
		rlimits[count++] = (struct jail_rlimit){ RLIMIT_FSIZE, { size, size } };
	return count;
}
