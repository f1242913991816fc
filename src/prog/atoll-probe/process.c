/* SPDX-License-Identifier: Apache-2.0 */
/* X16, X19: reaching processes outside, and the sandbox's own PID 1. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

/* number 1: PID 1 (atoll-init inside; outside the machine's init). 0: the host process that was named. */
static long target_pid(const struct attempt *attempt, const struct targets *targets)
{
	return attempt->number ? 1 : targets->host_pid;
}

#define NEED_PID(pid) \
	do { \
		if (!(pid)) \
			return outcome_no_target(note, "--host-pid"); \
	} while (0)

static enum outcome try_ptrace_attach(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets), ret;

	NEED_PID(pid);
	ret = syscall(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0);
	if (ret == 0) {
		wait_for((pid_t)pid);
		syscall(SYS_ptrace, PTRACE_DETACH, pid, 0, 0);
	}
	return outcome_of_call(note, ret, "attached");
}

static enum outcome try_ptrace_seize(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets), ret;

	NEED_PID(pid);
	ret = syscall(SYS_ptrace, PTRACE_SEIZE, pid, 0, 0);
	if (ret == 0)
		syscall(SYS_ptrace, PTRACE_DETACH, pid, 0, 0);
	return outcome_of_call(note, ret, "seized");
}

/* Address 0 is mapped nowhere: EFAULT comes behind the permission check. */
static enum outcome try_process_vm(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets);
	char byte = 0;
	struct iovec local = { &byte, 1 }, remote = { NULL, 1 };
	long ret;

	NEED_PID(pid);
	ret = syscall(attempt->arguments[0], pid, &local, 1, &remote, 1, 0);
	if (ret < 0 && errno == ESRCH)
		return outcome(note, OUTCOME_HELD, "ESRCH");
	return outcome_of_reach(note, ret);
}

static enum outcome try_pidfd_getfd(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets);
	int pidfd;

	NEED_PID(pid);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return outcome(note, OUTCOME_HELD, "pidfd_open: %s", err_errno_name(errno));
	for (int fd = 0; fd < 16; fd++) {
		if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0)
			return outcome(note, OUTCOME_BROKE, "took its fd %d", fd);
	}
	return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
}

static enum outcome try_pidfd_call(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets);
	int pidfd;

	NEED_PID(pid);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return outcome(note, OUTCOME_HELD, "pidfd_open: %s", err_errno_name(errno));
	return outcome_of_call(note, syscall(attempt->arguments[0], pidfd, attempt->arguments[1], attempt->arguments[2],
					     attempt->arguments[3], attempt->arguments[4]), "accepted");
}

/* arguments[0] is the call, arguments[1…] what follows the pid. */
static enum outcome try_pid_first(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const long *a = attempt->arguments;
	long pid = target_pid(attempt, targets);

	NEED_PID(pid);
	return outcome_of_call(note, syscall(a[0], pid, a[1], a[2], a[3], a[4]), "accepted");
}

/* The same where the pid is the second argument (setpriority, ioprio_set, tgkill). */
static enum outcome try_pid_second(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const long *a = attempt->arguments;
	long pid = target_pid(attempt, targets);

	NEED_PID(pid);
	return outcome_of_call(note, syscall(a[0], a[1], pid, a[2], a[3], a[4]), "accepted");
}

static enum outcome try_tgkill(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets);

	NEED_PID(pid);
	return outcome_of_call(note, syscall(SYS_tgkill, pid, pid, 0), "accepted");
}

static enum outcome try_kcmp(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets);

	NEED_PID(pid);
	return outcome_of_call(note, syscall(SYS_kcmp, getpid(), pid, 1, 0, 0), "compared");
}

static enum outcome try_sigqueue(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets);
	siginfo_t info;

	NEED_PID(pid);
	memset(&info, 0, sizeof info);
	info.si_code = SI_QUEUE;
	return outcome_of_call(note, syscall(SYS_rt_sigqueueinfo, pid, 0, &info), "accepted");
}

/* The kernel signals the owner of a socket on our behalf; a foreign process must not be one. */
static enum outcome try_owner(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets);
	struct { int type; int pid; } owner = { 1, (int)pid };
	int pair[2];
	long ret;

	NEED_PID(pid);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "socketpair: %s", err_errno_name(errno));
	ret = attempt->arguments[0] ? syscall(SYS_fcntl, pair[0], 15 /* F_SETOWN_EX */, &owner)
				    : syscall(SYS_fcntl, pair[0], F_SETOWN, pid);
	return outcome_of_call(note, ret, "owner set");
}

static enum outcome try_affinity(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets);
	unsigned long mask[16] = { 0 };
	long ret;

	NEED_PID(pid);
	ret = syscall(SYS_sched_getaffinity, pid, sizeof mask, mask);
	if (ret < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	return outcome_of_call(note, syscall(SYS_sched_setaffinity, pid, sizeof mask, mask), "changed");
}

static enum outcome try_prlimit(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid = target_pid(attempt, targets);
	struct { unsigned long long current, maximum; } limit;

	NEED_PID(pid);
	return outcome_of_call(note, syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, 0, &limit), "read");
}

static enum outcome try_visible(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char path[64], text[64];
	ssize_t size;

	NEED_PID(targets->host_pid);
	snprintf(path, sizeof path, "/proc/%ld/%s", targets->host_pid, attempt->text);
	size = raw_read_file(path, text, sizeof text);
	return outcome_of_call(note, size, "read");
}

/* Any other user's process, and any that was there before this one's ancestors: what does /proc list? */
static enum outcome try_namespaces(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char target[64] = "";

	if (readlink("/proc/1/exe", target, sizeof target - 1) < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	return outcome(note, OUTCOME_BROKE, "PID 1 is %s", target);
}

#define OUTSIDE(name, cases, what, try, ...) \
	{ name ".host", cases, what " of a host process", try, 0, { __VA_ARGS__ }, NULL }
#define INIT(name, cases, what, try, ...) { name ".init", cases, what " of PID 1", try, 1, { __VA_ARGS__ }, NULL }
#define BOTH(name, cases, what, try, ...) \
	OUTSIDE(name, cases, what, try, __VA_ARGS__), INIT(name, cases, what, try, __VA_ARGS__)

static const struct attempt attempts[] = {
	BOTH("ptrace.attach", "X16", "ptrace(PTRACE_ATTACH)", try_ptrace_attach, 0),
	BOTH("ptrace.seize", "X16", "ptrace(PTRACE_SEIZE)", try_ptrace_seize, 0),
	BOTH("process_vm_readv", "X16", "process_vm_readv", try_process_vm, SYS_process_vm_readv),
	BOTH("process_vm_writev", "X16", "process_vm_writev", try_process_vm, SYS_process_vm_writev),
	BOTH("pidfd_getfd", "X16", "pidfd_getfd", try_pidfd_getfd, 0),
	BOTH("kcmp", "X16", "kcmp", try_kcmp, 0),
	BOTH("process_madvise", "X16", "process_madvise of nothing", try_pidfd_call, SYS_process_madvise, 0, 0, 20, 0),
	OUTSIDE("pidfd_send_signal", "X19", "pidfd_send_signal 0", try_pidfd_call, SYS_pidfd_send_signal, 0, 0, 0),
	OUTSIDE("kill", "X19", "kill with signal 0", try_pid_first, SYS_kill, 0),
	OUTSIDE("tkill", "X19", "tkill with signal 0", try_pid_first, SYS_tkill, 0),
	OUTSIDE("tgkill", "X19", "tgkill with signal 0", try_tgkill, 0),
	OUTSIDE("rt_sigqueueinfo", "X19", "rt_sigqueueinfo with signal 0", try_sigqueue, 0),
	OUTSIDE("f_setown", "X19", "fcntl(F_SETOWN)", try_owner, 0),
	OUTSIDE("f_setown_ex", "X19", "fcntl(F_SETOWN_EX)", try_owner, 1),
	OUTSIDE("setpriority", "X19", "setpriority", try_pid_second, SYS_setpriority, PRIO_PROCESS, 19),
	OUTSIDE("ioprio_set", "X19", "ioprio_set", try_pid_second, SYS_ioprio_set, 1, 3 << 13),
	OUTSIDE("getpgid", "X19", "getpgid", try_pid_first, SYS_getpgid),
	OUTSIDE("getsid", "X19", "getsid", try_pid_first, SYS_getsid),
	OUTSIDE("sched_getscheduler", "X19", "sched_getscheduler", try_pid_first, SYS_sched_getscheduler),
	OUTSIDE("sched_setaffinity", "X19", "sched_setaffinity", try_affinity, 0),
	OUTSIDE("prlimit", "X16", "prlimit", try_prlimit, 0),
	{ "proc.host.cmdline", "F19", "/proc/PID/cmdline of a host process", try_visible, 0, { 0 }, "cmdline" },
	{ "proc.host.environ", "F19", "/proc/PID/environ of a host process", try_visible, 0, { 0 }, "environ" },
	{ "proc.host.maps", "F19", "/proc/PID/maps of a host process", try_visible, 0, { 0 }, "maps" },
	{ "proc.init.exe", "F19", "the program of PID 1", try_namespaces, 0, { 0 }, NULL },
};

const struct attempt_group probe_process = { attempts, ARRAY_SIZE(attempts) };
