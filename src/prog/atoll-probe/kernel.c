/* SPDX-License-Identifier: Apache-2.0 */
/* X13, X14, X15, X17: doors of the kernel that no job in a sandbox needs. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

#define CALL(name, cases, what, number, ...) { name, cases, what, try_syscall, number, { __VA_ARGS__ }, NULL }
#define REACH(name, cases, what, number, ...) { name, cases, what, try_reach, number, { __VA_ARGS__ }, NULL }

static enum outcome try_clone_flags(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long pid;

	if (targets->user_namespaces && (attempt->number & CLONE_NEWUSER))
		return outcome(note, OUTCOME_NOT_APPLICABLE, "the policy allows user namespaces");
	pid = syscall(SYS_clone, attempt->number | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		wait_for((pid_t)pid);
	return outcome_of_call(note, pid, "a child in new namespaces");
}

static enum outcome try_clone3_flags(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct { uint64_t words[11]; } arguments = { { 0 } };
	long pid;

	if (targets->user_namespaces)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "the policy allows user namespaces");
	arguments.words[0] = (uint64_t)attempt->number;
	arguments.words[4] = SIGCHLD;
	pid = syscall(SYS_clone3, &arguments, sizeof arguments);
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		wait_for((pid_t)pid);
	return outcome_of_call(note, pid, "a child in new namespaces");
}

static enum outcome try_unshare(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	if (targets->user_namespaces && (attempt->number & CLONE_NEWUSER))
		return outcome(note, OUTCOME_NOT_APPLICABLE, "the policy allows user namespaces");
	return outcome_of_call(note, syscall(SYS_unshare, attempt->number), "in new namespaces");
}

static enum outcome try_setns(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	cleanup_fd int fd = raw_open(attempt->text, O_RDONLY, 0);

	if (fd < 0)
		return outcome(note, OUTCOME_HELD, "open: %s", err_errno_name(errno));
	return outcome_of_call(note, syscall(SYS_setns, fd, attempt->number), "joined");
}

static enum outcome try_bpf(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	if (attempt->number == BPF_MAP_CREATE) {
		attr.map_type = BPF_MAP_TYPE_ARRAY;
		attr.key_size = 4;
		attr.value_size = 4;
		attr.max_entries = 1;
	}
	return outcome_of_reach(note, syscall(SYS_bpf, attempt->number, &attr, sizeof attr));
}

static enum outcome try_perf(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.size = sizeof attr;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return outcome_of_reach(note, syscall(SYS_perf_event_open, &attr, 0, attempt->number, -1, 0));
}

static enum outcome try_io_uring(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct io_uring_params params;

	memset(&params, 0, sizeof params);
	return outcome_of_reach(note, syscall(SYS_io_uring_setup, 4, &params));
}

#ifdef __x86_64__
/* The i386 entry: numbers mean other calls there, so a filter that does not look at the architecture is blind. */
static long int80(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10",
		"r11");
	return ret;
}

static enum outcome try_int80(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const long *a = attempt->arguments;
	long ret = int80(attempt->number, a[0], a[1], a[2]);

	if (ret < 0 && ret > -4096) {
		errno = (int)-ret;
		return attempt->text ? outcome_of_call(note, -1, "") : outcome_of_reach(note, -1);
	}
	return outcome(note, OUTCOME_BROKE, "the i386 call answered %ld", ret);
}

static enum outcome try_x32(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const long *a = attempt->arguments;
	long ret = syscall(attempt->number | 0x40000000, a[0], a[1], a[2], a[3], a[4], a[5]);

	return outcome_of_call(note, ret, "the x32 call answered");
}

/*
 * A far return into the 32-bit code segment, then i386 calls from there: eax = 1 (exit), ebx = 42. No 64-bit
 * instruction makes the call, so only the filter's architecture check sees it.
 */
static enum outcome try_compat_segment(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	static const unsigned char with_int80[] = { 0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80, 0xf4 };
	static const unsigned char with_sysenter[] = { 0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0x89, 0xe5, 0x0f, 0x34,
		0xf4 };
	const void *code = attempt->number ? (const void *)with_sysenter : (const void *)with_int80;
	size_t size = attempt->number ? sizeof with_sysenter : sizeof with_int80;
	unsigned char *low = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	pid_t pid;
	int status;

	if (low == MAP_FAILED)
		return outcome(note, OUTCOME_HELD, "mmap: %s", err_errno_name(errno));
	memcpy(low, code, size);
	if (mprotect(low, 4096, PROT_READ | PROT_EXEC) < 0)
		return outcome(note, OUTCOME_HELD, "mprotect: %s", err_errno_name(errno));
	pid = fork();
	if (pid == 0) {
		__asm__ volatile("mov %1, %%rsp\n\tpush $0x23\n\tpush %0\n\tlretq" : : "r"((long)low),
			"r"((long)low + 8128)
				 : "memory");
		_exit(1);
	}
	status = wait_for(pid);
	if (status == 42)
		return outcome(note, OUTCOME_BROKE, "the i386 exit call worked");
	return outcome(note, OUTCOME_HELD, "ended with %d", status);
}
#endif

static const struct attempt attempts[] = {
	{ "unshare.user", "X13", "unshare(CLONE_NEWUSER)", try_unshare, CLONE_NEWUSER, { 0 }, NULL },
	{ "unshare.user+mount", "X13", "unshare user and mount namespace at once", try_unshare,
		CLONE_NEWUSER | CLONE_NEWNS, { 0 }, NULL },
	{ "unshare.user+net", "X13", "unshare user and network namespace at once", try_unshare,
		CLONE_NEWUSER | CLONE_NEWNET, { 0 }, NULL },
	{ "unshare.mount", "X13", "unshare(CLONE_NEWNS)", try_unshare, CLONE_NEWNS, { 0 }, NULL },
	{ "unshare.pid", "X13", "unshare(CLONE_NEWPID)", try_unshare, CLONE_NEWPID, { 0 }, NULL },
	{ "unshare.net", "X13", "unshare(CLONE_NEWNET)", try_unshare, CLONE_NEWNET, { 0 }, NULL },
	{ "unshare.ipc", "X13", "unshare(CLONE_NEWIPC)", try_unshare, CLONE_NEWIPC, { 0 }, NULL },
	{ "unshare.uts", "X13", "unshare(CLONE_NEWUTS)", try_unshare, CLONE_NEWUTS, { 0 }, NULL },
	{ "unshare.cgroup", "X13", "unshare(CLONE_NEWCGROUP)", try_unshare, CLONE_NEWCGROUP, { 0 }, NULL },
	{ "unshare.time", "X13", "unshare(CLONE_NEWTIME)", try_unshare, CLONE_NEWTIME, { 0 }, NULL },
	{ "clone.user", "X13", "clone(CLONE_NEWUSER)", try_clone_flags, CLONE_NEWUSER, { 0 }, NULL },
	{ "clone.user+mount", "X13", "clone(CLONE_NEWUSER|CLONE_NEWNS)", try_clone_flags, CLONE_NEWUSER | CLONE_NEWNS,
		{ 0 }, NULL },
	{ "clone.mount", "X13", "clone(CLONE_NEWNS)", try_clone_flags, CLONE_NEWNS, { 0 }, NULL },
	{ "clone.net", "X13", "clone(CLONE_NEWNET)", try_clone_flags, CLONE_NEWNET, { 0 }, NULL },
	{ "clone3.user", "X13", "clone3(CLONE_NEWUSER): flags behind a pointer, which no filter can read",
		try_clone3_flags, CLONE_NEWUSER, { 0 }, NULL },
	{ "clone3.user+mount", "X13", "clone3(CLONE_NEWUSER|CLONE_NEWNS)", try_clone3_flags,
		CLONE_NEWUSER | CLONE_NEWNS, { 0 }, NULL },
	{ "setns.self-mount", "X13", "setns into the own mount namespace (resets the root directory)", try_setns,
		CLONE_NEWNS, { 0 }, "/proc/self/ns/mnt" },
	{ "setns.init-mount", "X13", "setns into PID 1's mount namespace", try_setns, CLONE_NEWNS, { 0 },
		"/proc/1/ns/mnt" },
	{ "setns.init-pid", "X13", "setns into PID 1's PID namespace", try_setns, CLONE_NEWPID, { 0 },
		"/proc/1/ns/pid" },
	{ "setns.init-net", "X13", "setns into PID 1's network namespace", try_setns, CLONE_NEWNET, { 0 },
		"/proc/1/ns/net" },
	{ "setns.any-type", "X13", "setns with type 0", try_setns, 0, { 0 }, "/proc/self/ns/ipc" },

	{ "io_uring.setup", "X15", "io_uring_setup: its operations pass no filter", try_io_uring, 0, { 0 }, NULL },
	REACH("io_uring.enter", "X15", "io_uring_enter", SYS_io_uring_enter, -1, 0, 0, 0, 0, 0),
	REACH("io_uring.register", "X15", "io_uring_register", SYS_io_uring_register, -1, 0, 0, 0),

	{ "bpf.map", "X17", "bpf(BPF_MAP_CREATE)", try_bpf, BPF_MAP_CREATE, { 0 }, NULL },
	{ "bpf.program", "X17", "bpf(BPF_PROG_LOAD)", try_bpf, BPF_PROG_LOAD, { 0 }, NULL },
	{ "bpf.next-id", "X17", "bpf(BPF_PROG_GET_NEXT_ID)", try_bpf, BPF_PROG_GET_NEXT_ID, { 0 }, NULL },
	{ "perf.self", "X17", "perf_event_open on itself", try_perf, -1, { 0 }, NULL },
	{ "perf.cpu", "X17", "perf_event_open on a CPU", try_perf, 0, { 0 }, NULL },
	REACH("userfaultfd", "X17", "userfaultfd(0)", SYS_userfaultfd, 0),
	REACH("userfaultfd.user-mode", "X17", "userfaultfd(UFFD_USER_MODE_ONLY)", SYS_userfaultfd, 1),
	REACH("keyctl.session", "X17", "keyctl(KEYCTL_GET_KEYRING_ID, session): the caller's keys", SYS_keyctl, 0, -3,
		0),
	REACH("keyctl.user", "X17", "keyctl(KEYCTL_GET_KEYRING_ID, user): keys of the whole uid", SYS_keyctl, 0, -4, 1),
	REACH("keyctl.join", "X17", "keyctl(KEYCTL_JOIN_SESSION_KEYRING)", SYS_keyctl, 1, 0),
	REACH("keyctl.read", "X17", "keyctl(KEYCTL_READ)", SYS_keyctl, 11, -3, 0, 0),
	REACH("add_key", "X17", "add_key", SYS_add_key, (long)"user", (long)"atoll-probe", (long)"x", 1, -2),
	REACH("request_key", "X17", "request_key", SYS_request_key, (long)"user", (long)"atoll-probe-none", 0, 0),
	REACH("kexec_load", "X17", "kexec_load with bad flags", SYS_kexec_load, 0, 0, 0, -1),
#ifdef SYS_kexec_file_load
	REACH("kexec_file_load", "X17", "kexec_file_load with bad flags", SYS_kexec_file_load, -1, -1, 0, 0, -1),
#endif
	REACH("init_module", "X17", "init_module of nothing", SYS_init_module, 0, 0, 0),
	REACH("finit_module", "X17", "finit_module of no fd", SYS_finit_module, -1, 0, 0),
	REACH("delete_module", "X17", "delete_module of an absent module", SYS_delete_module, (long)"atoll_none",
		04000),
	REACH("acct", "X17", "acct of an absent file", SYS_acct, (long)"/nonexistent/acct"),
	REACH("quotactl", "X17", "quotactl", SYS_quotactl, 0x80000800, (long)"/nonexistent", 0, 0),
	REACH("quotactl_fd", "X17", "quotactl_fd", SYS_quotactl_fd, -1, 0, 0, 0),
	REACH("swapon", "X17", "swapon of an absent file", SYS_swapon, (long)"/nonexistent/swap", 0),
	REACH("swapoff", "X17", "swapoff of an absent file", SYS_swapoff, (long)"/nonexistent/swap"),
	REACH("reboot", "X17", "reboot with wrong magic", SYS_reboot, 1, 2, 3, 0),
	REACH("settimeofday", "X17", "settimeofday of an impossible time", SYS_settimeofday, (long)&(const long[2]){ -1,
		-1 }, 0),
	REACH("clock_settime", "X17", "clock_settime of an impossible time", SYS_clock_settime, 0,
		(long)&(const long[2]){ -1, -1 }),
	REACH("syslog.read", "X17", "syslog(SYSLOG_ACTION_SIZE_BUFFER): kernel messages", SYS_syslog, 10, 0, 0),
	REACH("sethostname", "X17", "sethostname", SYS_sethostname, (long)"atoll-probe", -1),
#ifdef SYS_iopl
	CALL("iopl", "X17", "iopl(3): I/O ports", SYS_iopl, 3),
	CALL("ioperm", "X17", "ioperm", SYS_ioperm, 0x80, 1, 1),
	REACH("modify_ldt", "X14", "modify_ldt: 32-bit segments", SYS_modify_ldt, 0, 0, 0),
#endif
	REACH("fanotify_init", "X17", "fanotify_init", SYS_fanotify_init, 0, 0),
	REACH("lookup_dcookie", "X17", "lookup_dcookie", SYS_lookup_dcookie, 0, 0, 0),
	REACH("nfsservctl", "X17", "nfsservctl", SYS_nfsservctl, 0, 0, 0),
	REACH("move_pages", "X17", "move_pages", SYS_move_pages, 0, 1, 0, 0, 0, 4),
	REACH("migrate_pages", "X17", "migrate_pages", SYS_migrate_pages, 0, 0, 0, 0),
	CALL("personality.read-implies-exec", "X17", "personality(READ_IMPLIES_EXEC)", SYS_personality, 0x0400000),
#ifdef SYS_uselib
	REACH("uselib", "X17", "uselib", SYS_uselib, (long)"/nonexistent/lib"),
	REACH("sysfs", "X17", "sysfs(2)", SYS_sysfs, 9),
	REACH("_sysctl", "X17", "_sysctl", SYS__sysctl, 0),
#endif
	REACH("vhangup", "X17", "vhangup", SYS_vhangup),
	REACH("lsm_set_self_attr", "X17", "lsm_set_self_attr", SYS_lsm_set_self_attr, 0, 0, 0, 0),
#ifdef __x86_64__
	{ "int80.getpid", "X14", "i386 getpid through int 0x80", try_int80, 20, { 0 }, NULL },
	{ "int80.socketcall", "X14", "i386 socketcall(socket) through int 0x80", try_int80, 102, { 1, 0, 0 }, NULL },
	{ "int80.ptrace", "X14", "i386 number 26 (ptrace), another call in 64 bits", try_int80, 26, { 0, 0, 0 }, NULL },
	{ "compat.int80", "X14", "32-bit code segment, int 0x80", try_compat_segment, 0, { 0 }, NULL },
	{ "compat.sysenter", "X14", "32-bit code segment, sysenter", try_compat_segment, 1, { 0 }, NULL },
	{ "x32.getpid", "X14", "x32 getpid", try_x32, 39, { 0 }, NULL },
	{ "x32.ptrace", "X14", "x32 ptrace (number 521)", try_x32, 521, { 0 }, NULL },
	{ "x32.unshare", "X14", "x32 unshare(CLONE_NEWUSER)", try_x32, SYS_unshare, { CLONE_NEWUSER }, NULL },
#endif
};

const struct attempt_group probe_kernel = { attempts, ARRAY_SIZE(attempts) };
