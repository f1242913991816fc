/* SPDX-License-Identifier: Apache-2.0 */
#include "os/clone.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/vmfork.h"

pid_t clone_process(uint64_t flags, int cgroup_fd, int *ret_pidfd)
{
	int pidfd = FD_NONE;
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD, /* the maker's own, clone(2) */
		.cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0,
	};
	long pid = syscall(SYS_clone3, &args, sizeof args);

	if (pid < 0)
		return -errno;
	if (pid > 0)
		*ret_pidfd = pidfd;
	return (pid_t)pid;
}

struct id_map {
	char lines[200];
	int error;
};

static void put_extent(struct id_map *map, unsigned inside, unsigned outside, unsigned count)
{
	size_t used = strlen(map->lines);

	if (count && map->error >= 0)
		map->error = str_format(map->lines + used, sizeof map->lines - used, "%u %u %u\n", inside, outside,
					count);
}

static int write_map(int dir_fd, const char *file, unsigned inside, unsigned outside, enum clone_others others)
{
	const unsigned first = CLONE_OTHERS_FIRST, count = others ? CLONE_OTHERS_COUNT : 0;
	struct id_map map = { .lines = "" };

	put_extent(&map, inside, outside, 1);
	put_extent(&map, 0, first, inside < count ? inside : count);
	put_extent(&map, inside + 1, first + inside + 1, inside < count ? count - inside - 1 : 0);
	put_extent(&map, count, first + inside, others == CLONE_OTHERS_SHOWN && inside < count);
	return map.error < 0 ? map.error : fd_write_file_at(dir_fd, file, map.lines);
}

int clone_write_ids(pid_t pid, const struct clone_ids *ids)
{
	cleanup_fd int dir = FD_NONE;
	char path[32];
	int r = str_format(path, sizeof path, "/proc/%d", (int)pid);

	if (r < 0)
		return r;
	dir = fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (dir < 0)
		return dir;
	if (ids->deny_setgroups) {
		r = fd_write_file_at(dir, "setgroups", "deny");
		if (r < 0)
			return r;
	}
	r = write_map(dir, "uid_map", ids->uid, ids->host_uid, ids->others);
	return r < 0 ? r : write_map(dir, "gid_map", ids->gid, ids->host_gid, ids->others);
}

void clone_bound_life(unsigned ms)
{
	struct itimerval limit = { .it_value = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 } };
	struct sigaction fatal = { .sa_handler = SIG_DFL };
	sigset_t set;

	/* Timer, handlers and mask are of this process alone. */
	sigaction(SIGALRM, &fatal, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &limit, NULL);
}

int clone_enter_user_namespace(void)
{
	struct clone_ids ids = {
		.uid = geteuid(), .host_uid = geteuid(), .gid = getegid(), .host_gid = getegid(), .deny_setgroups = 1,
	};

	if (syscall(SYS_unshare, CLONE_NEWUSER) < 0)
		return 1;
	return clone_write_ids(getpid(), &ids);
}

/*
 * Where the parent is killed before it could kill this one: it must not stay, and no copy of a socket with it, whose
 * end of file tells others of the parent's death.
 */
static int hold_namespace(void *argument)
{
	const pid_t *parent = argument;

	syscall(SYS_close_range, 0u, ~0u, 0u);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != *parent)
		return 0;
	for (;;)
		pause();
}

int clone_user_namespace(const struct clone_ids *ids, struct pidref *ret_holder)
{
	struct pidref holder = PIDREF_NONE;
	static pid_t parent; /* the holder reads it whenever it comes to run */
	const struct vmfork_work work = { hold_namespace, &parent };
	char path[40];
	int r, fd = FD_NONE;

	parent = getpid();
	holder.pid = vmfork_start(VMFORK_HOLDER, CLONE_NEWUSER, -1, &work, &holder.fd);
	if (holder.pid < 0)
		return holder.pid;
	r = clone_write_ids(holder.pid, ids);
	if (r == 0)
		r = str_format(path, sizeof path, "/proc/%d/ns/user", (int)holder.pid);
	if (r == 0)
		r = fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	/* Not reaped yet, so its number is its own: better a second way to kill it than to wait for ever. */
	if (pidref_signal(&holder, SIGKILL) < 0 && kill(holder.pid, SIGKILL) < 0 && r >= 0)
		r = -errno;
	*ret_holder = holder;
	if (r < 0)
		close_fd(&fd);
	return r < 0 ? r : fd;
}
