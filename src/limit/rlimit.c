/* SPDX-License-Identifier: Apache-2.0 */
#include "limit/group.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/num.h"
#include "os/proc.h"

/*
 * What stands in where no cgroup can be had.
 *
 * Processes: RLIMIT_NPROC. Since Linux 5.14 the tasks of a uid are counted for each user namespace on its own
 * (ucounts), and a fork is checked against the counts of all namespaces above too, each with the limit that the
 * namespace's creator had. So a limit set inside the sandbox's fresh user namespace counts exactly the sandbox,
 * the user's other processes do not matter, and neither a nested namespace nor setsid or a double fork gets out:
 * a hard limit. (Uid 0 of the host is exempt, which is one more reason that no sandbox runs as it.) Before 5.14
 * the count is the user's whole machine: setting it would refuse the first fork of a busy user, so it is not
 * set, and processes are only supervised.
 *
 * Memory: RLIMIT_DATA bounds each process alone, so the sum is supervised: whoever reads limit_group_usage()
 * compares and kills. RLIMIT_AS would be no stronger and breaks programs that reserve address space (node, go,
 * java). Not seen by the sum: System V segments that nobody has attached, memfds in flight in a socket.
 */

static bool counts_by_namespace(void)
{
	struct utsname name;
	unsigned major, minor;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 14));
}

enum limit_holder rlimit_tasks_holder(void)
{
	return counts_by_namespace() ? LIMIT_BY_RLIMIT : LIMIT_SUPERVISED;
}

static int lower(int resource, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return -errno;
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max <= value)
		limit.rlim_cur = limit.rlim_max;
	else
		limit.rlim_cur = limit.rlim_max = value;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

int rlimits_apply(const struct limit_group *group)
{
	int r = 0;

	if (group->tasks == LIMIT_BY_RLIMIT)
		r = lower(RLIMIT_NPROC, group->request.processes + 1);
	if (r == 0 && group->memory == LIMIT_SUPERVISED)
		r = lower(RLIMIT_DATA, group->request.memory_bytes);
	return r;
}

static uint64_t sum_resident(const struct proc_list *list)
{
	uint64_t total = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct proc_memory memory;

		if (proc_memory_resident(list->proc_fd, list->stats[i].pid, &memory) == 0)
			total += memory.anonymous + memory.shmem + memory.swap + memory.tables;
	}
	return total;
}

/*
 * Shared pages once each. A mapped page of a tmpfs or a memfd is in the files' sum already, but shared anonymous
 * memory is not, and the kernel's figure does not part them: the larger of the two counts.
 */
static uint64_t sum_shares(const struct proc_list *list, uint64_t file_bytes)
{
	uint64_t anonymous = 0, shmem = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct proc_memory memory;

		if (proc_memory_share(list->proc_fd, list->stats[i].pid, &memory) < 0)
			continue;
		anonymous += memory.anonymous + memory.swap;
		shmem += memory.shmem;
	}
	return anonymous + (shmem > file_bytes ? shmem : file_bytes);
}

/* The cheap upper bound first; the exact sum, which walks page tables, only when that is over the limit. */
static uint64_t sum_memory(const struct limit_group *group, pid_t init_pid, const struct proc_list *list)
{
	uint64_t tmpfs = 0, files, total;

	if (proc_tmpfs_bytes(init_pid, &tmpfs) < 0)
		tmpfs = 0;
	files = tmpfs + proc_memfd_bytes(list);
	total = sum_resident(list) + files;
	return total > group->request.memory_bytes ? sum_shares(list, files) : total;
}

/* The sum falls when a process ends whose parent does not wait for it: what was seen of it stays counted. */
static uint64_t sum_cpu(struct limit_group *group, const struct proc_list *list)
{
	uint64_t total = 0;

	for (size_t i = 0; i < list->count; i++)
		total += list->stats[i].cpu_ns;
	if (total < group->cpu_last_ns)
		group->cpu_lost_ns += group->cpu_last_ns - total;
	group->cpu_last_ns = total;
	return total + group->cpu_lost_ns;
}

int walk_usage(struct limit_group *group, pid_t init_pid, unsigned missing, struct limit_usage *usage)
{
	cleanup_proc_list struct proc_list list = { .proc_fd = FD_NONE };
	uint64_t tasks = 0;
	int r;

	if (!init_pid) {
		if (missing & kind_bit(CGROUP_CPUACCT))
			usage->cpu_ns = group->cpu_last_ns + group->cpu_lost_ns;
		return 0;
	}
	r = proc_list_namespace(init_pid, &list);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.count; i++)
		tasks += list.stats[i].threads;
	if (missing & kind_bit(CGROUP_PIDS)) {
		usage->processes = tasks;
		if (group->request.processes != NUM_UNLIMITED && tasks >= group->request.processes + 1)
			group->refusals++;
	}
	if (missing & kind_bit(CGROUP_MEMORY))
		usage->memory_bytes = sum_memory(group, init_pid, &list);
	if (missing & kind_bit(CGROUP_CPUACCT))
		usage->cpu_ns = sum_cpu(group, &list);
	return 0;
}
