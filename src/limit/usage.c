/* SPDX-License-Identifier: Apache-2.0 */
#include "limit/group.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

/* Files of the two interfaces that say the same. */
struct usage_files {
	const char *memory, *memory_peak, *memory_events, *memory_kills_key, *cpu, *cpu_key;
	uint64_t cpu_unit_ns;
};

static const struct usage_files v2_files = {
	"memory.current", "memory.peak", "memory.events", "oom_kill", "cpu.stat", "usage_usec", 1000,
};
static const struct usage_files v1_files = {
	"memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control", "oom_kill",
	"cpuacct.usage", NULL, 1,
};

/* The directory that has this controller's files, and their names. */
static int controller_dir(const struct limit_group *group, enum cgroup_kind kind, const struct usage_files **ret_files)
{
	if (group->v2_controllers & kind_bit(kind) || (kind == CGROUP_CPUACCT && group->dirs[CGROUP_V2].path)) {
		*ret_files = &v2_files;
		return group->dirs[CGROUP_V2].fd;
	}
	*ret_files = &v1_files;
	return group->dirs[kind].path ? group->dirs[kind].fd : -1;
}

static int read_events(int dir_fd, int event_fd, const char *file, const char *key, uint64_t *ret_count)
{
	int r = event_fd >= 0 ? cgroup_read_key_fd(event_fd, key, ret_count) :
				cgroup_read_key(dir_fd, file, key, ret_count);

	/* Counters that this kernel does not have yet (oom_kill: 4.13, pids.events: 4.10). */
	return r == -ENODATA || (r == -ENOENT && dir_fd >= 0) ? 0 : r;
}

static int read_memory(struct limit_group *group, bool is_live, struct limit_usage *usage)
{
	const struct usage_files *files;
	int fd = controller_dir(group, CGROUP_MEMORY, &files);
	int r = 0;

	/* Also the proof that the controller is still there. */
	if (is_live)
		r = cgroup_read_u64(fd, files->memory, &usage->memory_bytes);
	if (r < 0)
		return r;
	r = cgroup_read_u64(fd, files->memory_peak, &usage->memory_peak_bytes);
	if (r < 0 && r != -ENOENT) /* memory.peak: since 5.19; before, the highest that was seen */
		return r;
	return read_events(fd, group->events.memory_fd, files->memory_events, files->memory_kills_key,
			   &usage->oom_kills);
}

static int read_pids(struct limit_group *group, bool is_live, struct limit_usage *usage)
{
	const struct usage_files *files;
	int fd = controller_dir(group, CGROUP_PIDS, &files);
	int r = 0;

	if (is_live)
		r = cgroup_read_u64(fd, "pids.current", &usage->processes);
	if (r < 0)
		return r;
	r = cgroup_read_u64(fd, "pids.peak", &usage->processes_peak);
	if (r < 0 && r != -ENOENT)
		return r;
	return read_events(fd, group->events.pids_fd, "pids.events", "max", &usage->fork_refusals);
}

static int read_cpu(struct limit_group *group, struct limit_usage *usage)
{
	const struct usage_files *files;
	int fd = controller_dir(group, CGROUP_CPUACCT, &files);
	int r = files->cpu_key ? cgroup_read_key(fd, files->cpu, files->cpu_key, &usage->cpu_ns) :
				 cgroup_read_u64(fd, files->cpu, &usage->cpu_ns);

	if (r == 0)
		usage->cpu_ns *= files->cpu_unit_ns;
	return r;
}

static int read_groups(struct limit_group *group, bool is_live, struct limit_usage *usage, unsigned *ret_missing)
{
	static const enum cgroup_kind kinds[] = { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPUACCT };
	const struct usage_files *files;

	*ret_missing = 0;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		int r;

		if (controller_dir(group, kinds[i], &files) < 0) {
			*ret_missing |= kind_bit(kinds[i]);
			continue;
		}
		r = kinds[i] == CGROUP_MEMORY ? read_memory(group, is_live, usage) :
		    kinds[i] == CGROUP_PIDS   ? read_pids(group, is_live, usage) :
						read_cpu(group, usage);
		if (r < 0)
			return r;
	}
	/* The cpu controller has no usage file of its own: only its limit shows whether it is still there. */
	if (is_live && group->v2_set & kind_bit(CGROUP_CPU) &&
	    faccessat(group->dirs[CGROUP_V2].fd, "cpu.max", F_OK, 0) < 0)
		return -errno;
	return 0;
}

static void drain(int fd)
{
	uint64_t count;
	ssize_t n = fd >= 0 ? read(fd, &count, sizeof count) : 0;

	(void)n; /* nothing there: EAGAIN */
}

static void close_events(struct limit_group *group)
{
	close_fd(&group->events.epoll_fd);
	close_fd(&group->events.memory_fd);
	close_fd(&group->events.pids_fd);
	close_fd(&group->events.oom_fd);
}

static uint64_t keep_peak(uint64_t *peak, uint64_t now, uint64_t kernel_peak)
{
	if (now > *peak)
		*peak = now;
	if (kernel_peak > *peak)
		*peak = kernel_peak;
	return *peak;
}

/* A peak of the kernel's that has not grown is of before. */
static void leave_out_before(const struct limit_group *group, struct limit_usage *usage)
{
	const struct limit_usage *before = &group->before;

	usage->cpu_ns -= before->cpu_ns < usage->cpu_ns ? before->cpu_ns : usage->cpu_ns;
	if (usage->memory_peak_bytes <= before->memory_peak_bytes)
		usage->memory_peak_bytes = 0;
	if (usage->processes_peak <= before->processes_peak)
		usage->processes_peak = 0;
	usage->oom_kills -= before->oom_kills;
	usage->fork_refusals -= before->fork_refusals;
}

int limit_group_begin(struct limit_group *group, pid_t init_pid)
{
	struct limit_usage usage = { 0 };
	const struct usage_files *files;
	unsigned missing;
	int r = read_groups(group, true, &usage, &missing);

	if (r == 0 && missing)
		r = walk_usage(group, init_pid, missing, &usage);
	if (r < 0)
		return r;
	/* v1 forgets on demand. */
	if (controller_dir(group, CGROUP_MEMORY, &files) == group->dirs[CGROUP_MEMORY].fd &&
	    fd_write_file_at(group->dirs[CGROUP_MEMORY].fd, files->memory_peak, "0") == 0)
		usage.memory_peak_bytes = 0;
	group->before = usage;
	group->memory_peak = group->processes_peak = group->refusals = 0;
	return 0;
}

int limit_group_usage(struct limit_group *group, pid_t init_pid, struct limit_usage *ret_usage)
{
	struct limit_usage usage = { 0 };
	bool is_live = init_pid != 0;
	unsigned missing;
	int r;

	drain(group->events.oom_fd);
	r = read_groups(group, is_live, &usage, &missing);
	if (r == -ENOENT || r == -ENODEV) {
		r = v2_restore(group);
		if (r == 0)
			r = read_groups(group, is_live, &usage, &missing);
	}
	/* A sandbox that ended meanwhile has no processes to walk, which is no failure of ours. */
	if (r == 0 && missing) {
		r = walk_usage(group, init_pid, missing, &usage);
		if (r == -ESRCH || r == -ENOENT)
			r = walk_usage(group, 0, missing, &usage);
	}
	if (r < 0)
		return r;
	leave_out_before(group, &usage);
	usage.memory_peak_bytes = keep_peak(&group->memory_peak, usage.memory_bytes, usage.memory_peak_bytes);
	usage.processes_peak = keep_peak(&group->processes_peak, usage.processes, usage.processes_peak);
	usage.processes -= usage.processes > 0;
	usage.processes_peak -= usage.processes_peak > 0;
	usage.fork_refusals += group->refusals;
	*ret_usage = usage;
	return 0;
}

/*
 * kernfs lets poll(2) see a change since the last read of that open file, and a file that was never read counts
 * as changed. So a counter of zero is read once (armed), and one that has moved already is opened anew.
 */
static int open_events(int dir_fd, const char *file, const char *key)
{
	uint64_t count = 0;
	int fd = fd_open_at(dir_fd, file, O_RDONLY, 0);

	if (fd < 0)
		return fd;
	if (cgroup_read_key_fd(fd, key, &count) == 0 && count == 0)
		return fd;
	close(fd);
	return fd_open_at(dir_fd, file, O_RDONLY, 0);
}

static int watch_fd(int epoll_fd, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* cgroup-v1/memory.rst, "OOM Control": "<event fd> <fd of memory.oom_control>" into cgroup.event_control. */
static int open_v1_oom_event(struct limit_group *group)
{
	int dir_fd = group->dirs[CGROUP_MEMORY].fd;
	cleanup_fd int control_fd = fd_open_at(dir_fd, "memory.oom_control", O_RDONLY, 0);
	cleanup_fd int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	char text[32];
	int r;

	if (control_fd < 0)
		return control_fd;
	if (event_fd < 0)
		return -errno;
	r = str_format(text, sizeof text, "%d %d", event_fd, control_fd);
	if (r == 0)
		r = fd_write_file_at(dir_fd, "cgroup.event_control", text);
	if (r < 0)
		return r;
	group->events.oom_fd = take_fd(&event_fd);
	return 0;
}

static int watch_memory(struct limit_group *group)
{
	uint64_t kills = 0;
	int r;

	if (group->v2_set & kind_bit(CGROUP_MEMORY)) {
		group->events.memory_fd = open_events(group->dirs[CGROUP_V2].fd, "memory.events", "oom_kill");
		if (group->events.memory_fd < 0)
			return group->events.memory_fd;
		return watch_fd(group->events.epoll_fd, group->events.memory_fd, EPOLLPRI);
	}
	if (!group->dirs[CGROUP_MEMORY].path)
		return 0;
	r = open_v1_oom_event(group);
	if (r < 0)
		return r;
	/* A kill before the event was asked for is told now. */
	r = cgroup_read_key(group->dirs[CGROUP_MEMORY].fd, "memory.oom_control", "oom_kill", &kills);
	if (r == 0 && kills && eventfd_write(group->events.oom_fd, 1) < 0)
		return -errno;
	return watch_fd(group->events.epoll_fd, group->events.oom_fd, EPOLLIN);
}

static int watch_pids(struct limit_group *group)
{
	if (!(group->v2_set & kind_bit(CGROUP_PIDS)))
		return 0;
	group->events.pids_fd = open_events(group->dirs[CGROUP_V2].fd, "pids.events", "max");
	if (group->events.pids_fd < 0)
		return group->events.pids_fd;
	return watch_fd(group->events.epoll_fd, group->events.pids_fd, EPOLLPRI);
}

int limit_group_event_fd(struct limit_group *group)
{
	if (group->events.is_tried)
		return group->events.epoll_fd >= 0 ? group->events.epoll_fd : -1;
	group->events.is_tried = true;
	if (group->memory != LIMIT_BY_CGROUP && group->tasks != LIMIT_BY_CGROUP)
		return -1;
	group->events.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (group->events.epoll_fd < 0 || watch_memory(group) < 0 || watch_pids(group) < 0) {
		close_events(group);
		return -1;
	}
	return group->events.epoll_fd;
}

/* cgroup.events says "frozen 1" when the last process has stopped. */
static int wait_v2_frozen(int fd)
{
	uint64_t deadline_ns = clock_monotonic_ns() + 2000000000U;

	for (;;) {
		uint64_t frozen;
		int r = cgroup_read_key(fd, "cgroup.events", "frozen", &frozen);

		if (r < 0)
			return r;
		if (frozen)
			return 0;
		if (clock_monotonic_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

int limit_group_freeze(struct limit_group *group, bool frozen)
{
	const struct limit_dir *dir = &group->dirs[CGROUP_V2];
	int r = dir->path ? fd_write_file_at(dir->fd, "cgroup.freeze", frozen ? "1" : "0") : -ENOENT;

	if (r == -ENOENT) /* no v2 tree, or one before Linux 5.2 */
		return v1_freeze(group, frozen);
	return r;
}

int limit_group_wait_frozen(const struct limit_group *group)
{
	if (group->dirs[CGROUP_FREEZER].path)
		return v1_wait_frozen(group);
	return group->dirs[CGROUP_V2].path ? wait_v2_frozen(group->dirs[CGROUP_V2].fd) : -EOPNOTSUPP;
}

/* Signals what the group lists; the number found. The lists name live processes only, in numbers of our own. */
static int kill_listed(int dir_fd)
{
	cleanup_free char *text = NULL;
	size_t size;
	int found = 0;
	int r = fd_read_file_at(dir_fd, "cgroup.procs", 1 << 24, &text, &size);

	if (r < 0)
		return r;
	for (char *at = text; *at;) {
		long pid = strtol(at, &at, 10);

		/* 0 is a process that our PID namespace cannot name; kill(0) would hit our own group. */
		if (pid > 1 && pid != getpid()) {
			kill((pid_t)pid, SIGKILL);
			found++;
		}
		at += *at == '\n';
	}
	return found;
}

int group_kill_dir(int dir_fd)
{
	uint64_t deadline_ns = clock_monotonic_ns() + 2000000000U;
	int r = fd_write_file_at(dir_fd, "cgroup.kill", "1");

	if (r != -ENOENT) /* v2 since Linux 5.14 */
		return r;
	do {
		r = kill_listed(dir_fd);
		if (r <= 0)
			return r;
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	} while (clock_monotonic_ns() < deadline_ns);
	return -ETIMEDOUT;
}

int limit_group_kill(struct limit_group *group)
{
	int result = -EOPNOTSUPP;

	/* A frozen v1 process does not die before it is thawed; kill first, so that it never runs again. */
	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++) {
		int r;

		if (!group->dirs[i].path || i == CGROUP_FREEZER)
			continue;
		if (group->dirs[CGROUP_FREEZER].path) {
			r = kill_listed(group->dirs[i].fd);
			if (r >= 0)
				r = fd_write_file_at(group->dirs[CGROUP_FREEZER].fd, "freezer.state", "THAWED");
		}
		r = group_kill_dir(group->dirs[i].fd);
		if (r < 0)
			return r;
		result = 0;
		if (i == CGROUP_V2)
			break; /* everything is in it */
	}
	return result;
}
