/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/peer-process.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "session/run-request.h"
#include "supervise/run.h"
#include "watch/watch.h"

enum { RANGE_FIRST = 0x70000000, RANGE_SIZE = 0x0f000000, SIGNAL_MAX = 64 };

int peer_open(const char *init_path, const char *name)
{
	char path[PATH_MAX];
	int fd, r = path_beside(path, sizeof path, init_path, name);

	if (r < 0)
		return r;
	fd = fd_open_at(AT_FDCWD, path, O_PATH, 0);
	return fd < 0 ? fd : fd_move_above(fd, PEER_ABOVE);
}

/* ---- in the child made by vfork(): raw calls only, see take_identity() in watch/connect.c ---- */

static bool place_fds(const struct peer_spec *spec, int link_fd)
{
	int null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);

	/* First: it may itself have one of the numbers that come next. */
	for (int fd = 0; fd <= 2; fd++)
		if (null_fd < 0 || dup2(null_fd, fd) < 0)
			return false;
	if (dup2(link_fd, PEER_FD) < 0)
		return false;
	for (size_t i = 0; i < spec->given_count; i++)
		if (spec->given[i].fd >= 0 && dup2(spec->given[i].fd, spec->given[i].number) < 0)
			return false;
	return true;
}

static bool take_uid(uid_t uid)
{
	return !uid || (syscall(SYS_setgroups, 0, NULL) == 0 && syscall(SYS_setresgid, uid, uid, uid) == 0 &&
			syscall(SYS_setresuid, uid, uid, uid) == 0);
}

/*
 * What a caller ignores would be ignored for ever, also the numbers that a libc keeps for itself and lets nobody set.
 * The box's own two are wanted: a write fails instead.
 */
static void take_signals(void)
{
	/* struct kernel_sigaction, rt_sigaction(2): SIG_DFL, no flags, no mask. */
	static const uint64_t as_ever[4];

	for (int number = 1; number <= SIGNAL_MAX; number++)
		if (number != SIGPIPE && number != SIGXFSZ)
			syscall(SYS_rt_sigaction, number, as_ever, NULL, SIGNAL_MAX / 8);
}

/* The timer lives through the exec, and SIGALRM ends whoever did not ask for it. */
static bool limit_time(unsigned seconds)
{
	const struct itimerval limit = { .it_value = { .tv_sec = seconds } };

	return !seconds || setitimer(ITIMER_REAL, &limit, NULL) == 0;
}

static void become(const struct peer_spec *spec, int program_fd, int link_fd, pid_t parent)
{
	char *name_alone[] = { (char *)spec->program, NULL }, *none_set[] = { NULL };
	sigset_t none;

	sigemptyset(&none);
	take_signals();
	syscall(SYS_setsid);
	if (!place_fds(spec, link_fd) || !take_uid(spec->uid))
		return;
	/* After the change of ids, which clears it. */
	if (!spec->outlives && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return;
	/* vfork(2) holds its caller, but not against SIGKILL: who was killed before sends no signal any more. */
	if (!spec->outlives && getppid() != parent)
		return;
	if (!limit_time(spec->seconds) || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return;
	syscall(SYS_execveat, program_fd, "", spec->argv ? spec->argv : name_alone,
		spec->environment ? spec->environment : none_set, AT_EMPTY_PATH);
}

/* ---- in the box ---- */

uid_t peer_uid(const struct run *run, enum peer_user user)
{
	return getuid() == 0 ? run->identity->uid ^ user : 0;
}

int peer_uid_choose(uid_t *ret_uid)
{
	uint32_t random;
	int r = random_bytes(&random, sizeof random);

	*ret_uid = RANGE_FIRST + random % RANGE_SIZE;
	return r;
}

int peer_spawn(const struct peer_spec *spec, int program_fd, int link_fd, struct pidref *ret_process)
{
	volatile int failed = 0;
	pid_t parent = getpid(), pid;
	int r;

	*ret_process = PIDREF_NONE;
	pid = vfork();
	if (pid == 0) {
		become(spec, program_fd, link_fd, parent);
		failed = errno;
		_exit(125);
	}
	if (pid < 0)
		return -errno;
	r = pidref_open(ret_process, pid);
	return r == 0 && failed ? -failed : r;
}

int peer_socket(int *ret_near_fd, int *ret_far_fd)
{
	cleanup_fd int near_fd = FD_NONE, far_fd = FD_NONE;
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	near_fd = ends[0];
	r = far_fd = fd_move_above(ends[1], PEER_ABOVE);
	if (r >= 0)
		r = fd_set_nonblocking(near_fd, true);
	if (r < 0)
		return r;
	*ret_near_fd = take_fd(&near_fd);
	*ret_far_fd = take_fd(&far_fd);
	return 0;
}

int peer_start_as(const char *init_path, const struct peer_spec *spec, int *ret_fd, struct pidref *ret_process)
{
	cleanup_fd int program_fd = peer_open(init_path, spec->program);
	cleanup_fd int near_fd = FD_NONE, far_fd = FD_NONE;
	int r;

	*ret_process = PIDREF_NONE;
	if (program_fd < 0)
		return program_fd;
	r = peer_socket(&near_fd, &far_fd);
	if (r == 0)
		r = peer_spawn(spec, program_fd, far_fd, ret_process);
	if (r < 0) {
		peer_end(ret_process);
		return r;
	}
	*ret_fd = take_fd(&near_fd);
	return 0;
}

void peer_end(struct pidref *process)
{
	siginfo_t info;

	if (process->fd < 0)
		return;
	(void)!pidref_signal(process, SIGKILL);
	(void)!pidref_wait(process, WEXITED, &info, NULL);
	pidref_done(process);
	*process = PIDREF_NONE;
}
