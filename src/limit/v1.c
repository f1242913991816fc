/* SPDX-License-Identifier: Apache-2.0 */
#include "limit/group.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

/*
 * Each v1 hierarchy has its own tree, and our own group may stand at another place in each. The new group goes
 * below our own in every one: v1 lets a group have both processes and children, and so the limits that hold us
 * keep holding the sandbox. Kernel memory and page tables count as memory here (since Linux 4.5).
 * Documentation/admin-guide/cgroup-v1/.
 */

static int set_memory(struct limit_group *group, int fd)
{
	int r = cgroup_write_u64(fd, "memory.limit_in_bytes", group->request.memory_bytes);

	/* Memory and swap together: without it the group swaps instead of being stopped. */
	return r < 0 ? r : cgroup_limit_swap(fd, "memory.memsw.limit_in_bytes", group->request.memory_bytes);
}

static int set_cpu(struct limit_group *group, int fd)
{
	uint64_t quota, period;
	int r = 0;

	cpu_quota(group->request.millicpus, &quota, &period);
	if (period != 100000) /* the kernel's own */
		r = cgroup_write_u64(fd, "cpu.cfs_period_us", period);
	return r < 0 ? r : cgroup_write_u64(fd, "cpu.cfs_quota_us", quota);
}

static int set_limit(struct limit_group *group, enum cgroup_kind kind)
{
	int fd = group->dirs[kind].fd;

	switch (kind) {
	case CGROUP_MEMORY:
		return set_memory(group, fd);
	case CGROUP_PIDS:
		return cgroup_write_u64(fd, "pids.max", group->request.processes + 1);
	case CGROUP_CPU:
		return set_cpu(group, fd);
	default:
		return 0;
	}
}

static int make_kind(struct limit_group *group, struct cgroup_layout *layout, enum cgroup_kind kind)
{
	char parent[PATH_MAX];
	size_t top;
	int r = cgroup_layout_own(layout, kind, parent, &top);

	if (r == 0)
		r = group_make_dir(group, kind, parent);
	if (r < 0) {
		if (r != -ENOENT)
			group_note(group, "no group can be made in %s (%s)", parent, err_errno_name(-r));
		return group_is_refusal(r) ? 0 : r;
	}
	r = set_limit(group, kind);
	if (r < 0) {
		group_note(group, "the %s limit cannot be set in %s (%s)", cgroup_kind_names[kind], parent,
			   err_errno_name(-r));
		group_remove_dir(group, kind, clock_monotonic_ns());
		return group_is_refusal(r) ? 0 : r;
	}
	return 0;
}

int v1_make(struct limit_group *group, struct cgroup_layout *layout)
{
	const struct {
		enum cgroup_kind kind;
		bool is_wanted;
	} kinds[] = {
		{ CGROUP_MEMORY, group->request.memory_bytes != NUM_UNLIMITED },
		{ CGROUP_PIDS, group->request.processes != NUM_UNLIMITED },
		{ CGROUP_CPU, group->request.millicpus != NUM_UNLIMITED && group->cpus != LIMIT_BY_MACHINE },
		/* A v2 group counts CPU time as well, and for less. */
		{ CGROUP_CPUACCT, !group->dirs[CGROUP_V2].path },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		int r;

		if (!kinds[i].is_wanted || group->v2_set & kind_bit(kinds[i].kind) ||
		    !cgroup_layout_is_v1(layout, kinds[i].kind))
			continue;
		r = make_kind(group, layout, kinds[i].kind);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A directory that lists the sandbox's processes. */
static int listing_fd(const struct limit_group *group)
{
	static const enum cgroup_kind kinds[] = { CGROUP_PIDS, CGROUP_MEMORY, CGROUP_CPUACCT, CGROUP_CPU };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (group->dirs[kinds[i]].path)
			return group->dirs[kinds[i]].fd;
	return -EOPNOTSUPP;
}

/* Moves every listed process into the freezer's group; 1 when one was still outside. */
static int move_all(int from_fd, int to_fd)
{
	cleanup_free char *inside = NULL, *listed = NULL;
	size_t size;
	int moved = 0;
	int r = fd_read_file_at(to_fd, "cgroup.procs", 1 << 24, &inside, &size);

	if (r == 0)
		r = fd_read_file_at(from_fd, "cgroup.procs", 1 << 24, &listed, &size);
	if (r < 0)
		return r;
	for (char *at = listed; *at;) {
		char line[16];
		char *end = strchrnul(at, '\n');
		size_t length = (size_t)(end - at);
		const char *found;

		if (length >= sizeof line)
			return -EBADMSG;
		memcpy(line, at, length);
		line[length] = 0;
		at = *end ? end + 1 : end;
		for (found = strstr(inside, line); found; found = strstr(found + 1, line))
			if ((found == inside || found[-1] == '\n') && found[length] == '\n')
				break;
		if (found)
			continue;
		r = fd_write_file_at(to_fd, "cgroup.procs", line);
		if (r < 0 && r != -ESRCH)
			return r;
		moved = 1;
	}
	return moved;
}

/* Waits for what freezing takes: a process in an uninterruptible call freezes when it comes back. */
int v1_wait_frozen(const struct limit_group *group)
{
	int fd = group->dirs[CGROUP_FREEZER].fd;
	uint64_t deadline_ns = clock_monotonic_ns() + 2000000000U;
	char state[32];

	for (;;) {
		int r = cgroup_read_text(fd, "freezer.state", state, sizeof state);

		if (r < 0)
			return r;
		if (str_has_prefix(state, "FROZEN"))
			return 0;
		if (clock_monotonic_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

/*
 * The freezer's group is made at the first freeze, since most sandboxes never need one. A process that is moved
 * into a frozen group freezes at once, so each round of moving leaves fewer that can still fork.
 */
int v1_freeze(struct limit_group *group, bool frozen)
{
	struct limit_dir *freezer = &group->dirs[CGROUP_FREEZER];
	cleanup_cgroup_layout struct cgroup_layout layout = { 0 };
	int from_fd = listing_fd(group), r = 0;
	char parent[PATH_MAX];
	size_t top;

	if (from_fd < 0)
		return from_fd;
	if (!freezer->path) {
		if (!frozen)
			return 0;
		r = cgroup_layout_load(&layout, group->request.cgroup_root);
		if (r == 0)
			r = cgroup_layout_own(&layout, CGROUP_FREEZER, parent, &top);
		if (r == 0)
			r = group_make_dir(group, CGROUP_FREEZER, parent);
		if (r < 0)
			return group_is_refusal(r) ? -EOPNOTSUPP : r;
	}
	r = fd_write_file_at(freezer->fd, "freezer.state", frozen ? "FROZEN" : "THAWED");
	if (r < 0 || !frozen)
		return r;
	do
		r = move_all(from_fd, freezer->fd);
	while (r == 1);
	return r;
}
