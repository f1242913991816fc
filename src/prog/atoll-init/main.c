/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/names.h"
#include "base/num.h"
#include "init.h"
#include "jail/filter.h"
#include "os/fd.h"

/*
 * PID 1 of the sandbox. It makes itself unreadable for the others, loads the seccomp filter, hands the
 * listener to the box, and then starts and reaps commands on request. What runs beside it shares the
 * PID namespace and the uid, nothing else: no fd of init's survives an exec, and init reads no memory of
 * theirs. When the wire closes, or anything on it is malformed, init ends and the kernel kills all
 * that lives in the namespace.
 *
 * While a command is between clone and exec, init waits for it (CLONE_VFORK), and its exec waits for the
 * box: so the box never waits for init in turn; it stops the sandbox by cgroup.kill or SIGKILL to init.
 */


static const struct frame_rule rules[] = {
	{ INIT_SPAWN, 1, FRAME_MESSAGE_MAX, 0, 3, commands_spawn },
	{ INIT_SIGNAL, 1, 64, 0, 0, commands_signal },
	{ INIT_CONTINUE, 1, 64, 0, 0, commands_continue },
};

/*
 * Commands start from this: every disposition the default, and init itself blocks everything. But SIGXFSZ is ignored,
 * as Python and Node have it: who writes beyond a limit gets an error then, and does not die because a disk is full
 * (build/disk-quota.h).
 */
static int prepare_signals(struct init *init)
{
	/*
	 * The kernel's own struct, all zero: SIG_DFL. The C library's sigaction() refuses the numbers that it uses
	 * itself, and callers do hand those down ignored (make does).
	 */
	const unsigned long standard[8] = { 0 }, ignored[8] = { (unsigned long)SIG_IGN };
	sigset_t signals;

	for (int number = 1; number <= 64; number++)
		if (number != SIGKILL && number != SIGSTOP &&
		    syscall(SYS_rt_sigaction, number, number == SIGXFSZ ? ignored : standard, NULL, 8) < 0)
			return -errno;
	sigfillset(&signals);
	if (sigprocmask(SIG_SETMASK, &signals, NULL) < 0)
		return -errno;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	init->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return init->signal_fd < 0 ? -errno : 0;
}

static int prepare(struct init *init, int rules_fd)
{
	int r;

	/* Closes /proc/1/{mem,environ,fd,root,cwd,exe} and ptrace for everyone inside; forks keep it, exec ends it. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	r = fd_set_cloexec(init->wire_fd, true);
	if (r < 0)
		return r;
	/* A dead box cannot send PDEATHSIG any more; its closed wire is seen by the first send. */
	r = fd_secure_standard();
	if (r < 0)
		return r;
	if (rules_fd >= 0 && rules_fd != INIT_RULES_FD && dup2(rules_fd, INIT_RULES_FD) < 0)
		return -errno;
	if (rules_fd >= 0 && fd_set_cloexec(INIT_RULES_FD, true) < 0)
		return -errno;
	/* A second look: jail_start closed these already. */
	if (syscall(SYS_close_range, INIT_WIRE_FD + 1 + (rules_fd >= 0), ~0U, 0) < 0)
		return -errno;
	return prepare_signals(init);
}

/*
 * The jail's second process, our only child, lets go of the host's root while we start (jail/detacher.c): nothing may
 * run here before it has said that it did.
 */
static int await_second(void)
{
	siginfo_t info;

	while (waitid(P_ALL, 0, &info, WEXITED) < 0)
		if (errno != EINTR)
			return -errno;
	return info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : -EPERM;
}

/* The listener leaves before anything runs: were a copy kept, calls would hang instead of fail when the box dies. */
static int load_filter(struct init *init, int profile, int rules_fd, const char **ret_wall)
{
	cleanup_fd int listener = FD_NONE, root = FD_NONE, landlock = rules_fd;
	int r;

	/* Before the filter, which may hand an open to the box, and nobody answers there yet. */
	*ret_wall = "mounts";
	root = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	if (root < 0)
		return root;
	*ret_wall = "seccomp";
	/* Without it an exec of a setuid program would lift the command out of all this. */
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return -EPERM;
	listener = jail_filter_load((enum jail_seccomp_profile)profile);
	if (listener < 0)
		return listener;
	*ret_wall = "mounts";
	r = await_second();
	return r < 0 ? r : tell_ready(init, listener, root, landlock);
}

static int handle_wire(struct init *init)
{
	int r;

	init->is_scratch_large = false;
	r = frame_dispatch(init->wire_fd, &init->scratch, 0, rules, ARRAY_SIZE(rules), init);
	if (init->is_scratch_large) {
		buf_done(&init->scratch);
		buf_init(&init->scratch, FRAME_MESSAGE_MAX);
	}
	return r;
}

static int handle_children(struct init *init)
{
	struct signalfd_siginfo info;
	int r;

	/* Only to empty it: one SIGCHLD may stand for many. */
	while (read(init->signal_fd, &info, sizeof info) > 0)
		;
	r = commands_reap(init);
	init->is_reaping = r > 0;
	return r < 0 ? r : 0;
}

/* 0: the box closed the wire, or nothing more is to be done. */
static int serve(struct init *init)
{
	while (!init->is_over) {
		struct pollfd polled[] = {
			{ .fd = init->signal_fd, .events = POLLIN },
			{ .fd = init->events[0], .events = POLLIN },
			{ .fd = init->wire_fd, .events = POLLIN },
		};
		int r = 0;

		if (poll(polled, ARRAY_SIZE(polled), init->is_reaping ? 0 : -1) < 0 && errno != EINTR)
			return -errno;
		if (polled[0].revents || init->is_reaping)
			r = handle_children(init);
		if (r == 0 && polled[1].revents)
			r = commands_read_monitors(init);
		if (r == 0 && polled[2].revents) {
			r = handle_wire(init);
			if (r == 0)
				return 0;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static struct init the_init = {
	.wire_fd = INIT_WIRE_FD,
	.signal_fd = FD_NONE,
	.events = { FD_NONE, FD_NONE },
	.scratch = { .max = FRAME_MESSAGE_MAX },
};

int main(int argc, char **argv)
{
	int profile = argc == 2 || argc == 3
			? names_find(jail_seccomp_names, ARRAY_SIZE(jail_seccomp_names), argv[1]) : -1;
	const char *wall = "init";
	uint64_t number = UINT64_MAX;
	int r = profile < 0 || (argc == 3 && (num_parse_count(argv[2], &number) < 0 || number > INT32_MAX))
			? -EINVAL : prepare(&the_init, (int)number);

	if (r == 0)
		r = load_filter(&the_init, profile, argc == 3 ? INIT_RULES_FD : FD_NONE, &wall);
	if (r == 0) {
		wall = "wire";
		r = serve(&the_init);
	}
	/* Nobody may be there to hear it; the end is the same. */
	return r < 0 && tell_broken(&the_init, -r, wall) == 0 ? 1 : r < 0 ? 2 : 0;
}
