/* SPDX-License-Identifier: Apache-2.0 */
#include "limit/group.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

/*
 * One sandbox, one group; how it is held is decided limit by limit, best first:
 *
 *   1. a v2 group in the nearest place that has or can be given the controllers (v2.c); where the user has no
 *      such place, a scope from the user's service manager (scope.c), then again;
 *   2. v1 groups for what no v2 tree can hold (v1.c). Hybrid hosts have a v2 tree without controllers beside
 *      them: a group there costs less than a cpuacct group (CLONE_INTO_CGROUP attaches for free) and gives
 *      CPU accounting, cgroup.kill and cgroup.freeze;
 *   3. rlimits and supervision (rlimit.c).
 *
 * Only groups are made that hold a limit which was asked for: each costs 50 to 90 µs of every start.
 */

const char *const limit_backend_names[LIMIT_BACKEND_COUNT] = { "rlimit", "v1", "v2" };
const char *const limit_holder_names[LIMIT_HOLDER_COUNT] = {
	"none", "nothing", "supervised", "rlimit", "cgroup", "machine",
};

enum { SESSION_MAX = 32, REMOVE_WAIT_MS = 2000 };

bool group_is_refusal(int error)
{
	switch (-error) {
	case EACCES: case EPERM: case EROFS: case ENOENT: case ENODEV: case EBUSY: case EINVAL: case EOPNOTSUPP:
	case EAGAIN: /* cgroup.max.depth or .max.descendants */
	case ENOSPC: case ERANGE: case ENOTDIR: case ENAMETOOLONG:
		return true;
	default:
		return false;
	}
}

void group_note(struct limit_group *group, const char *format, ...)
{
	va_list args;

	if (group->detail[0])
		return;
	va_start(args, format);
	err_vformat(group->detail, sizeof group->detail, format, args);
	va_end(args);
}

static bool has_swap(void)
{
	struct sysinfo info;

	return sysinfo(&info) < 0 || info.totalswap > 0;
}

int cgroup_limit_swap(int fd, const char *name, uint64_t bytes)
{
	int r = cgroup_write_u64(fd, name, bytes);

	return r == -ENOENT && !has_swap() ? 0 : r;
}

/* The quota's least value is 1 ms, so tiny shares need a longer period. */
void cpu_quota(uint64_t millicpus, uint64_t *ret_quota_us, uint64_t *ret_period_us)
{
	uint64_t period = millicpus < 10 ? 1000000 : 100000;

	*ret_period_us = period;
	*ret_quota_us = millicpus ? millicpus * period / 1000 : 1000;
}

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)ms * 1000000 }, NULL);
}

int group_rmdir(const char *path, uint64_t deadline_ns)
{
	unsigned wait_ms = 1;

	for (;;) {
		int error;

		if (rmdir(path) == 0 || errno == ENOENT)
			return 0;
		error = -errno;
		if (error == -EACCES || error == -EPERM || error == -EROFS || error == -ENOTDIR)
			return error;
		if (clock_monotonic_ns() >= deadline_ns)
			return error;
		sleep_ms(wait_ms);
		if (wait_ms < 16)
			wait_ms *= 2;
	}
}

/* A v1 hierarchy may have several controllers (cpu,cpuacct): then the group is there already, by us. */
static bool share_dir(struct limit_group *group, enum cgroup_kind kind, const char *path)
{
	struct stat st, other;

	if (stat(path, &st) < 0)
		return false;
	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++) {
		struct limit_dir *dir = &group->dirs[i];

		if (dir->path && dir->is_made && fstat(dir->fd, &other) == 0 && st.st_dev == other.st_dev &&
		    st.st_ino == other.st_ino) {
			group->dirs[kind].fd = fcntl(dir->fd, F_DUPFD_CLOEXEC, 3);
			return group->dirs[kind].fd >= 0;
		}
	}
	return false;
}

int group_make_dir(struct limit_group *group, enum cgroup_kind kind, const char *parent)
{
	struct limit_dir *dir = &group->dirs[kind];
	int r;

	free(dir->path);
	dir->path = str_printf("%s/%s", parent, group->name);
	if (!dir->path)
		return -ENOMEM;
	if (mkdir(dir->path, 0755) == 0) {
		dir->is_made = true;
		dir->fd = fd_open_at(AT_FDCWD, dir->path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (dir->fd >= 0)
			return 0;
		r = dir->fd;
		dir->fd = FD_NONE;
	} else {
		r = -errno;
		if (r == -EEXIST && share_dir(group, kind, dir->path))
			return 0;
	}
	group_remove_dir(group, kind, 0);
	return r;
}

bool group_remove_dir(struct limit_group *group, enum cgroup_kind kind, uint64_t deadline_ns)
{
	struct limit_dir *dir = &group->dirs[kind];
	bool is_gone = !dir->is_made || group_rmdir(dir->path, deadline_ns) == 0;

	dir->is_made = false;
	close_fd(&dir->fd);
	close_fd(&dir->tasks_fd);
	free(take_ptr(dir->path));
	return is_gone;
}

static int set_name(struct limit_group *group, const struct limit_request *request, struct err *err)
{
	size_t length = strlen(request->session);

	if (!length || length > SESSION_MAX || strspn(request->session, GROUP_SESSION_CHARACTERS) != length)
		return err_set(err, ERR_INTERNAL, EINVAL, "cgroup", "\"%s\" is no session id", request->session);
	return str_format(group->name, sizeof group->name, GROUP_PREFIX "%s", request->session);
}

/* Counts "0-3,8" of /sys/devices/system/cpu/online; 0 where it cannot be read. */
static uint64_t online_cpus(void)
{
	char text[1024];
	uint64_t count = 0;
	char *at = text;

	if (cgroup_read_text(AT_FDCWD, "/sys/devices/system/cpu/online", text, sizeof text) < 0)
		return 0;
	while (*at >= '0' && *at <= '9') {
		uint64_t first = strtoull(at, &at, 10), last = first;

		if (*at == '-')
			last = strtoull(at + 1, &at, 10);
		count += last - first + 1;
		at += *at == ',';
	}
	return count;
}

/*
 * Whether the machine itself holds the limit. The affinity of this process is a lower bound only (the agent
 * may widen it), so it can say no without a file being read, but not yes.
 */
static bool machine_has_no_more_cpus(uint64_t millicpus)
{
	cpu_set_t set;
	uint64_t online;

	if (sched_getaffinity(0, sizeof set, &set) == 0 && (uint64_t)CPU_COUNT(&set) * 1000 > millicpus)
		return false;
	online = online_cpus();
	return online && millicpus >= online * 1000;
}

static unsigned wanted_limits(const struct limit_group *group)
{
	unsigned wanted = 0;

	if (group->request.memory_bytes != NUM_UNLIMITED)
		wanted |= kind_bit(CGROUP_MEMORY);
	if (group->request.processes != NUM_UNLIMITED)
		wanted |= kind_bit(CGROUP_PIDS);
	if (group->request.millicpus != NUM_UNLIMITED && group->cpus != LIMIT_BY_MACHINE)
		wanted |= kind_bit(CGROUP_CPU);
	return wanted;
}

static int make_v2(struct limit_group *group, unsigned wanted)
{
	cleanup_cgroup_layout struct cgroup_layout layout = { 0 };
	int r = cgroup_layout_load(&layout, group->request.cgroup_root);

	return r < 0 ? r : v2_make(group, &layout, wanted);
}

static int make_groups(struct limit_group *group, const char *forced)
{
	cleanup_cgroup_layout struct cgroup_layout layout = { 0 };
	unsigned wanted = wanted_limits(group), possible = 0, lacking;
	int r = cgroup_layout_load(&layout, group->request.cgroup_root);

	if (r < 0)
		return group_is_refusal(r) ? 0 : r;
	for (enum cgroup_kind kind = CGROUP_MEMORY; kind <= CGROUP_CPU; kind++)
		if (!cgroup_layout_is_v1(&layout, kind) && !str_equal(forced, "v1"))
			possible |= kind_bit(kind);
	r = v2_make(group, &layout, wanted & possible);
	lacking = wanted & possible & ~group->v2_set & ~kind_bit(CGROUP_CPU);
	if (r == 0 && lacking && scope_is_possible(group)) {
		group_remove_dir(group, CGROUP_V2, clock_monotonic_ns());
		group->v2_controllers = group->v2_set = 0;
		r = scope_enter(group);
		group->is_scoped = r == 0;
		if (r == 0 || r == 1)
			r = make_v2(group, wanted & possible);
	}
	if (r == 0 && !str_equal(forced, "v2"))
		r = v1_make(group, &layout);
	return r;
}

static bool held_by_cgroup(const struct limit_group *group, enum cgroup_kind kind)
{
	return group->v2_set & kind_bit(kind) || group->dirs[kind].path;
}

static void set_holders(struct limit_group *group)
{
	unsigned wanted = wanted_limits(group);
	bool has_v1 = false;

	for (enum cgroup_kind kind = CGROUP_MEMORY; kind < CGROUP_KIND_COUNT; kind++)
		has_v1 |= group->dirs[kind].path != NULL;
	group->backend = group->v2_controllers ? LIMIT_CGROUP_V2 : has_v1 ? LIMIT_CGROUP_V1 : LIMIT_RLIMIT;
	if (wanted & kind_bit(CGROUP_MEMORY))
		group->memory = held_by_cgroup(group, CGROUP_MEMORY) ? LIMIT_BY_CGROUP : LIMIT_SUPERVISED;
	if (wanted & kind_bit(CGROUP_PIDS))
		group->tasks = held_by_cgroup(group, CGROUP_PIDS) ? LIMIT_BY_CGROUP : rlimit_tasks_holder();
	if (wanted & kind_bit(CGROUP_CPU))
		group->cpus = held_by_cgroup(group, CGROUP_CPU) ? LIMIT_BY_CGROUP : LIMIT_BY_NOTHING;
}

static int build(struct limit_group *group, const struct limit_request *request, struct err *err)
{
	const char *forced = request->forced_backend;
	int r = 0;

	if (request->millicpus != NUM_UNLIMITED && machine_has_no_more_cpus(request->millicpus))
		group->cpus = LIMIT_BY_MACHINE;
	if (!forced || !str_equal(forced, "rlimit"))
		r = make_groups(group, forced);
	if (r < 0) {
		err_set(err, ERR_WALL, -r, "cgroup", "cannot make the control group %s: %s", group->name,
			err_errno_name(-r));
		return r;
	}
	set_holders(group);
	if (forced && !str_equal(forced, limit_backend_names[group->backend])) {
		err_set(err, ERR_WALL, EOPNOTSUPP, "cgroup", "the limit backend \"%s\" is not available here: "
							     "%s", forced,
			group->detail[0] ? group->detail : "no such hierarchy is mounted");
		return -EOPNOTSUPP;
	}
	return 0;
}

int limit_group_new(struct limit_group **ret_group, const struct limit_request *request, struct err *err)
{
	struct limit_group *group = calloc(1, sizeof *group);
	int r;

	if (!group)
		return err_set(err, ERR_INTERNAL, ENOMEM, "cgroup", "out of memory");
	group->request = *request;
	group->events = (struct limit_events){ FD_NONE, FD_NONE, FD_NONE, FD_NONE, false };
	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++)
		group->dirs[i].fd = group->dirs[i].tasks_fd = FD_NONE;
	r = set_name(group, request, err);
	if (r == 0)
		r = build(group, request, err);
	if (r < 0) {
		limit_group_free(group);
		return r;
	}
	*ret_group = group;
	return 0;
}

enum limit_backend limit_group_backend(const struct limit_group *group)
{
	return group->backend;
}

enum limit_holder limit_group_holder_memory(const struct limit_group *group)
{
	return group->memory;
}

enum limit_holder limit_group_holder_processes(const struct limit_group *group)
{
	return group->tasks;
}

enum limit_holder limit_group_holder_cpus(const struct limit_group *group)
{
	return group->cpus;
}

int limit_group_clone_fd(const struct limit_group *group)
{
	return group->dirs[CGROUP_V2].path ? group->dirs[CGROUP_V2].fd : -1;
}

static bool is_entered_by_hand(const struct limit_group *group, enum cgroup_kind kind)
{
	return kind != CGROUP_V2 && kind != CGROUP_FREEZER && group->dirs[kind].is_made;
}

int limit_group_prepare(struct limit_group *group, struct err *err)
{
	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++) {
		struct limit_dir *dir = &group->dirs[i];

		if (!is_entered_by_hand(group, (enum cgroup_kind)i) || dir->tasks_fd >= 0)
			continue;
		dir->tasks_fd = fd_open_at(dir->fd, "tasks", O_WRONLY, 0);
		if (dir->tasks_fd < 0)
			return err_set(err, ERR_WALL, -dir->tasks_fd, "cgroup", "cannot open %s/tasks: %s", dir->path,
				       err_errno_name(-dir->tasks_fd));
	}
	return 0;
}

/*
 * "0" in tasks, by the process itself: the one way into a v1 group that does not take the kernel's global lock on
 * forks and exits (cgroup_threadgroup_rwsem), for which everyone else's forks and an RCU grace period would be
 * waited for. That is milliseconds on a busy machine, for this sandbox and for all others that start.
 */
int limit_group_enter(const struct limit_group *group)
{
	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++) {
		ssize_t n;

		if (!is_entered_by_hand(group, (enum cgroup_kind)i))
			continue;
		do
			n = write(group->dirs[i].tasks_fd, "0", 1);
		while (n < 0 && errno == EINTR);
		if (n != 1)
			return n < 0 ? -errno : -EIO;
	}
	return rlimits_apply(group);
}

size_t limit_group_directories(const struct limit_group *group, const char *const **ret_paths)
{
	/* Filled here, not at creation: the freezer's group may have come later. */
	struct limit_group *mutable = (struct limit_group *)group;
	size_t count = 0;

	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++)
		if (group->dirs[i].path && group->dirs[i].is_made)
			mutable->paths[count++] = group->dirs[i].path;
	*ret_paths = mutable->paths;
	return count;
}

bool limit_group_free(struct limit_group *group)
{
	bool are_gone = true;
	uint64_t deadline_ns;

	if (!group)
		return true;
	close_fd(&group->events.epoll_fd);
	close_fd(&group->events.memory_fd);
	close_fd(&group->events.pids_fd);
	close_fd(&group->events.oom_fd);
	deadline_ns = clock_monotonic_ns() + (uint64_t)REMOVE_WAIT_MS * 1000000;
	for (size_t i = CGROUP_KIND_COUNT; i-- > 0;)
		are_gone &= group_remove_dir(group, (enum cgroup_kind)i, deadline_ns);
	free(group);
	return are_gone;
}
