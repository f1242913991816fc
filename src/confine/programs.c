/* SPDX-License-Identifier: Apache-2.0 */
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "confine/program.h"
#include "os/landlock.h"
#include "wire/secret.h"
#include "wire/token.h"

enum {
	MIB = 1 << 20, GIB = 1 << 30,
	READ = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR,
	RUN = READ | LANDLOCK_EXECUTE,
	FCHMODAT2 = 452, /* newer than some headers */
};

/* What every program does with what is open already, its memory and its end. No memory becomes code. */
static const struct confine_call base[] = {
	CALL(read), CALL(readv), CALL(write), CALL(writev), CALL(lseek), CALL(close), CALL(fstat), CALL(poll),
	CALL(ppoll), CALL(munmap), CALL(mremap), CALL(brk), CALL(madvise), CALL(futex),
	CALL_MASKED(mmap, 2, PROT_EXEC, 0), CALL_MASKED(mprotect, 2, PROT_EXEC, 0), CALL(clock_gettime),
	CALL(getrandom), CALL(rt_sigreturn), CALL(rt_sigprocmask), CALL(restart_syscall), CALL(exit),
	CALL(exit_group),
};

static const struct confine_call log_calls[] = {
	CALL(flock),
	/* fstat(2) is newfstatat(fd, "") in this libc; names of files stay out of reach by Landlock. */
	CALL_MASKED(newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH),
	/* stdio asks whether stdout is a terminal. */
	CALL_IF(ioctl, 1, TCGETS),
};

static const struct confine_call token_calls[] = {
	CALL(newfstatat), CALL(openat), CALL(openat2), CALL(renameat), CALL(unlinkat), CALL(fsync), CALL(flock),
	CALL(geteuid), CALL(getpid), CALL(nanosleep), CALL(clock_nanosleep), CALL_IF(ioctl, 1, TCGETS),
	CALL_IF(sendmsg, 0, TOKEN_FD),
};

/* Curses: modes and size of the terminal, and the stop key, which it handles by a signal to itself. */
static const struct confine_call top_calls[] = {
	CALL(fcntl), CALL(recvmsg), CALL(sendmsg), CALL(getpid), CALL(rt_sigaction), CALL(gettimeofday), CALL(time),
	CALL(sysinfo), /* qsort_r(3) of glibc asks how much memory there is */
	CALL_MASKED(newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH),
	CALL_IF(ioctl, 1, TCGETS), CALL_IF(ioctl, 1, TCSETS), CALL_IF(ioctl, 1, TCSETSW), CALL_IF(ioctl, 1, TCSETSF),
	CALL_IF(ioctl, 1, TCFLSH), CALL_IF(ioctl, 1, TIOCGWINSZ),
	{ .number = SCMP_SYS(kill), .match = ARGUMENT_IS_OWN_PID },
};

static const struct confine_call policy_calls[] = {
	CALL(pread64), CALL(newfstatat), CALL(stat), CALL(lstat), CALL(statx), CALL(readlink), CALL(readlinkat),
	CALL_MASKED(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY),
	/* Its flags lie in memory, where a filter cannot look: Landlock says no to all but reading. */
	CALL(openat2),
};

static const struct confine_call learn_calls[] = {
	CALL(sysinfo), /* qsort(3) of glibc asks how much memory there is */
};

static const struct confine_call secret_calls[] = {
	CALL(newfstatat), CALL(openat), CALL(openat2), CALL(faccessat), CALL(faccessat2), CALL(renameat),
	CALL(renameat2), CALL(unlinkat), CALL(fsync), CALL(flock), CALL(mlock), CALL(munlock), CALL(add_key),
	CALL(rt_sigaction), CALL(getpid), CALL(geteuid), CALL_IF(ioctl, 1, TCGETS), CALL_IF(ioctl, 1, TCSETS),
	CALL_IF(ioctl, 1, TCSETSW), CALL_IF(ioctl, 1, TCSETSF), CALL_IF(ioctl, 1, TIOCGWINSZ),
	CALL_IF(keyctl, 0, KEYCTL_LINK), CALL_IF(keyctl, 0, KEYCTL_UNLINK), CALL_IF(keyctl, 0, KEYCTL_SEARCH),
	CALL_IF(keyctl, 0, KEYCTL_READ), CALL_IF(keyctl, 0, KEYCTL_SET_TIMEOUT), CALL_IF(sendmsg, 0, SECRET_FD),
	CALL_IF(sendmsg, 0, SECRET_PLACEHOLDER_FD),
	/* A signal that came during a prompt is raised again when the terminal has its echo back. */
	{ .number = SCMP_SYS(kill), .match = ARGUMENT_IS_OWN_PID },
};

static const struct confine_call reading_calls[] = {
	CALL(sysinfo), /* qsort(3) of glibc asks how much memory there is */
	CALL(pread64), CALL(newfstatat), CALL(statx), CALL(openat2), CALL(openat), CALL(getdents64),
	CALL(readlinkat), CALL(readlink), CALL(flistxattr), CALL(llistxattr), CALL(fgetxattr), CALL(lgetxattr),
	CALL(fcntl), CALL(fstatfs), CALL(memfd_create), CALL(ftruncate), CALL(sendmsg), CALL(recvmsg), CALL(pipe2),
	CALL(geteuid), CALL(getuid), CALL(getpid),
};

/* What stdio asks of its streams is answered with "no terminal". */
static const struct confine_call no_terminal[] = { CALL_FAILS(ioctl, ENOTTY) };

/* Of ioctl(2) clones of files and the question for a terminal: TIOCSTI would type into the user's shell. */
static const struct confine_call writing_calls[] = {
	CALL(renameat2), CALL(renameat), CALL(linkat), CALL(symlinkat), CALL(unlinkat), CALL(mkdirat),
	CALL(mknodat), CALL(fchmod), CALL(fchmodat), CALL(fchown), CALL(fchownat), CALL(utimensat),
	CALL(fsetxattr), CALL(lsetxattr), CALL(fremovexattr), CALL(lremovexattr), CALL(removexattr), CALL(fsync),
	CALL(fdatasync), CALL(syncfs), CALL(fallocate), CALL(copy_file_range), CALL(pwrite64), CALL(flock),
	CALL(chmod), CALL(sendfile), CALL(umask), CALL(nanosleep), CALL(clock_nanosleep), CALL(statfs),
	CALL_IF(ioctl, 1, FICLONE), CALL_IF(ioctl, 1, TCGETS),
};

/* What root makes in a living session belongs to the user of the sandbox. */
static const struct confine_call restore_calls[] = {
	CALL(setfsuid), CALL(setfsgid),
};

/* libgit2 makes objects: files of its own, synced and renamed. */
static const struct confine_call commit_calls[] = {
	CALL(mkdir), CALL(mkdirat), CALL(rename), CALL(renameat), CALL(link), CALL(linkat), CALL(unlink),
	CALL(unlinkat), CALL(access), CALL(stat), CALL(lstat), CALL(open), CALL(chmod), CALL(fchmod), CALL(fsync),
	CALL(utimensat), CALL(umask), CALL(getcwd), CALL(gettimeofday), CALL(time), CALL(gettid), CALL(pwrite64),
};

static const struct confine_call text_calls[] = {
	CALL(setitimer), CALL(sysinfo), /* qsort(3) of glibc asks how much memory there is */
};

/* What a process needs to be made, and to confine itself once more: a filter, Landlock and limits only ever tighten. */
static const struct confine_call keeper_calls[] = {
	CALL(clone), CALL(wait4), CALL(set_robust_list), CALL(rseq), CALL(prctl), CALL(prlimit64), CALL(seccomp),
	CALL(landlock_create_ruleset), CALL(landlock_restrict_self), CALL(getpid), CALL(gettid), CALL(setitimer),
	CALL(sysinfo),
};

static const struct confine_call verify_calls[] = {
	CALL(sysinfo), /* qsort(3) of glibc asks how much memory there is */
	CALL(recvmsg), CALL(sendmsg), CALL(fcntl), CALL(pread64),
	CALL_MASKED(newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH),
};

static const struct confine_call desk_calls[] = {
	CALL(accept4), CALL(recvfrom), CALL(sendto), CALL(recvmsg), CALL(sendmsg), CALL(fcntl),
};

/* What a program inside may do to files; of sockets those of the sandbox's loopback, which it has entered before. */
static const struct confine_call files_calls[] = {
	CALL(openat), CALL(openat2), CALL(newfstatat), CALL(statx), CALL(getdents64), CALL(readlinkat), CALL(fcntl),
	CALL(flistxattr), CALL(fgetxattr), CALL(fsetxattr), CALL(fremovexattr), CALL(mkdirat), CALL(renameat),
	CALL(unlinkat), CALL(ftruncate), CALL(fchmod), CALL(fchown), CALL(fchownat), CALL(utimensat),
	CALL(recvmsg), CALL(sendmsg), CALL(connect), CALL(getsockopt), CALL_IF(socket, 0, AF_INET),
	CALL_IF(socket, 0, AF_INET6), CALL(inotify_init1), CALL(inotify_add_watch), CALL(inotify_rm_watch),
	CALL(fchdir), { .number = FCHMODAT2 },
};

/* The bus is reached before. */
static const struct confine_call desktop_calls[] = {
	CALL(recvfrom), CALL(sendto), CALL(recvmsg), CALL(sendmsg), CALL(fcntl), CALL(getpid), CALL(gettid),
	CALL(shutdown),
};

static const struct confine_call webhook_calls[] = {
	CALL(fcntl), CALL(connect), CALL(getsockname), CALL(getpeername), CALL(getsockopt), CALL(setsockopt),
	CALL(recvfrom), CALL(sendto), CALL(recvmsg), CALL(sendmsg), CALL(sendmmsg), CALL(shutdown), CALL(getpid),
	CALL(newfstatat), CALL(sysinfo), CALL(rt_sigaction), CALL_IF(socket, 0, AF_INET), CALL_IF(socket, 0, AF_INET6),
	CALL_MASKED(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY), CALL_IF(ioctl, 1, FIONREAD),
};

static const struct confine_call egress_calls[] = {
	CALL(splice), CALL(pipe2), CALL(fcntl), CALL(shutdown), CALL(accept4), CALL(connect), CALL(getsockname),
	CALL(getpeername), CALL(getsockopt), CALL(setsockopt), CALL(recvfrom), CALL(sendto), CALL(recvmsg),
	CALL(sendmsg), CALL(epoll_wait), CALL(epoll_pwait), CALL(epoll_pwait2), CALL(epoll_ctl),
	CALL(timerfd_settime), CALL(gettimeofday), CALL(getpid), CALL_IF(socket, 0, AF_INET),
	CALL_IF(socket, 0, AF_INET6),
	CALL_IF(ioctl, 1, FIONREAD), /* libevent asks how many bytes there are to read */
};

/* A socket pair is what libmicrohttpd relays an upgraded connection under TLS through. */
static const struct confine_call front_calls[] = {
	CALL(accept4), CALL(recvfrom), CALL(sendto), CALL(recvmsg), CALL(sendmsg), CALL(shutdown), CALL(fcntl),
	CALL(epoll_wait), CALL(epoll_pwait), CALL(epoll_ctl), CALL(getsockopt), CALL(setsockopt), CALL(getsockname),
	CALL(getpeername), CALL(sendfile), CALL(pread64), CALL(ftruncate), CALL(splice), CALL(gettimeofday),
	CALL(getpid), CALL_IF(socketpair, 0, AF_UNIX), CALL_IF(ioctl, 1, FIONBIO),
	CALL(sysinfo), /* qsort_r(3) of glibc asks how much memory there is */
	CALL_MASKED(newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH),
};

/*
 * What no foreign program that we start needs, and Landlock says nothing about: whose files are whose and with which
 * modes, other processes, the kernel's larger interfaces.
 */
static const struct confine_call foreign_calls[] = {
	CALL_FAILS(chmod, EPERM), CALL_FAILS(fchmod, EPERM), CALL_FAILS(fchmodat, EPERM),
	/* setxattrat, removexattrat: newer than some headers, too. */
	{ .number = FCHMODAT2, .errnum = ENOSYS }, { .number = 463, .errnum = ENOSYS },
	{ .number = 466, .errnum = ENOSYS },
	CALL_FAILS(chown, EPERM), CALL_FAILS(fchown, EPERM), CALL_FAILS(lchown, EPERM), CALL_FAILS(fchownat, EPERM),
	CALL_FAILS(utime, EPERM), CALL_FAILS(utimes, EPERM), CALL_FAILS(futimesat, EPERM), CALL_FAILS(utimensat, EPERM),
	CALL_FAILS(setxattr, EPERM), CALL_FAILS(lsetxattr, EPERM), CALL_FAILS(fsetxattr, EPERM),
	CALL_FAILS(removexattr, EPERM), CALL_FAILS(lremovexattr, EPERM), CALL_FAILS(fremovexattr, EPERM),
	CALL_FAILS(ptrace, EPERM), CALL_FAILS(process_vm_readv, EPERM), CALL_FAILS(process_vm_writev, EPERM),
	CALL_FAILS(pidfd_getfd, EPERM), CALL_FAILS(unshare, EPERM), CALL_FAILS(setns, EPERM), CALL_FAILS(bpf, EPERM),
	CALL_FAILS(perf_event_open, EPERM), CALL_FAILS(userfaultfd, EPERM), CALL_FAILS(io_uring_setup, ENOSYS),
	CALL_FAILS(add_key, EPERM), CALL_FAILS(request_key, EPERM), CALL_FAILS(keyctl, EPERM),
	{ .number = SCMP_SYS(ioctl), .match = ARGUMENT_IS, .argument = 1, .mask = UINT32_MAX, .value = TIOCSTI,
	  .errnum = EPERM },
};

#define CALLS(array) { (array), ARRAY_SIZE(array) }
#define SYSTEM { "/usr", RUN }, { "/lib", RUN }, { "/lib64", RUN }, { "/bin", RUN }, { "/etc", RUN }

#define RESOLVER \
	{ "/etc/resolv.conf", LANDLOCK_READ_FILE }, { "/etc/hosts", LANDLOCK_READ_FILE }, \
	{ "/etc/nsswitch.conf", LANDLOCK_READ_FILE }, { "/etc/host.conf", LANDLOCK_READ_FILE }, \
	{ "/etc/gai.conf", LANDLOCK_READ_FILE }

static const struct confine_row rows[CONFINE_PROGRAM_COUNT] = {
	[CONFINE_LOG] = {
		.name = "atoll-log", .calls = { CALLS(base), CALLS(log_calls) }, .is_alone = true,
		.memory_max = 256 * MIB,
	},
	[CONFINE_LEARN] = {
		.name = "atoll-learn", .calls = { CALLS(base), CALLS(log_calls), CALLS(learn_calls) }, .is_alone = true,
		.memory_max = 512 * MIB,
	},
	[CONFINE_POLICY] = {
		.name = "atoll-policy", .calls = { CALLS(base), CALLS(policy_calls) }, .refuses = true,
		.memory_max = GIB, .cpu_seconds_max = 30, .paths = { { "/", READ } },
	},
	[CONFINE_SECRET] = {
		.name = "atoll-secret", .calls = { CALLS(base), CALLS(secret_calls) }, .is_hidden = true,
		.memory_max = GIB,
	},
	[CONFINE_STAGE_READING] = {
		.name = "atoll-stage", .calls = { CALLS(base), CALLS(reading_calls), CALLS(no_terminal) },
		.memory_max = (rlim_t)4 * GIB,
	},
	[CONFINE_STAGE_WRITING] = {
		.name = "atoll-stage", .calls = { CALLS(base), CALLS(reading_calls), CALLS(writing_calls) },
		.memory_max = (rlim_t)4 * GIB,
	},
	[CONFINE_STAGE_RESTORE] = {
		.name = "atoll-stage",
		.calls = { CALLS(base), CALLS(reading_calls), CALLS(writing_calls), CALLS(restore_calls) },
		.memory_max = (rlim_t)4 * GIB,
	},
	[CONFINE_STAGE_TEXT] = {
		.name = "atoll-stage", .calls = { CALLS(base), CALLS(text_calls) }, .is_hidden = true, .is_alone = true,
		.memory_max = GIB,
	},
	[CONFINE_STAGE_KEEPER] = {
		.name = "atoll-stage", .calls = { CALLS(base), CALLS(keeper_calls) }, .memory_max = GIB,
	},
	/* git itself opens /dev/null both ways before it does anything. */
	[CONFINE_STAGE_BASE] = {
		.name = "atoll-stage", .calls = { CALLS(foreign_calls) }, .is_open = true, .memory_max = GIB,
		.cpu_seconds_max = 20, .paths = { SYSTEM, { "/dev/null", LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE } },
	},
	[CONFINE_STAGE_COMMIT] = {
		.name = "atoll-stage", .calls = { CALLS(base), CALLS(reading_calls), CALLS(commit_calls) },
		.refuses = true, .is_alone = true, .memory_max = (rlim_t)2 * GIB,
	},
	/* What libarchive tries beside this fails. */
	[CONFINE_TEMPLATE] = {
		.name = "atoll-template", .calls = { CALLS(base), CALLS(reading_calls), CALLS(writing_calls) },
		.refuses = true, .is_hidden = true, .is_alone = true, .memory_max = (rlim_t)2 * GIB,
		.cpu_seconds_max = 3600,
	},
	[CONFINE_TOKEN] = {
		.name = "atoll-token", .calls = { CALLS(base), CALLS(token_calls) }, .is_hidden = true,
		.is_alone = true, .memory_max = 256 * MIB,
	},
	/* The terminal's description was read before. What else curses tries fails: dead, it would leave the terminal
	 * raw. */
	[CONFINE_TOP] = {
		.name = "atoll-top", .calls = { CALLS(base), CALLS(top_calls) }, .refuses = true, .is_alone = true,
		.memory_max = 256 * MIB,
	},
	[CONFINE_DESK] = {
		.name = "atoll-desk", .calls = { CALLS(base), CALLS(desk_calls) }, .refuses = true, .is_hidden = true,
		.is_alone = true, .memory_max = 256 * MIB,
	},
	[CONFINE_FILES] = {
		.name = "atoll-files", .calls = { CALLS(base), CALLS(files_calls) }, .refuses = true,
		.is_hidden = true, .is_alone = true, .memory_max = 128 * MIB,
	},
	[CONFINE_NOTIFY_DESKTOP] = {
		.name = "atoll-notify", .calls = { CALLS(base), CALLS(desktop_calls) }, .refuses = true,
		.is_hidden = true, .is_alone = true, .memory_max = 256 * MIB,
	},
	[CONFINE_NOTIFY_WEBHOOK] = {
		.name = "atoll-notify", .calls = { CALLS(base), CALLS(webhook_calls) }, .refuses = true,
		.is_hidden = true, .is_alone = true, .memory_max = 512 * MIB,
		.paths = { RESOLVER },
	},
	/* The rules were read before. Its parsers count what they take and stop long before this. */
	[CONFINE_VERIFY] = {
		.name = "atoll-verify", .calls = { CALLS(base), CALLS(verify_calls) }, .is_hidden = true,
		.is_alone = true, .memory_max = (rlim_t)2 * GIB,
	},
	[CONFINE_JUDGE_COMMAND] = {
		.name = "atoll-judge", .calls = { CALLS(foreign_calls) }, .is_open = true,
		.memory_max = (rlim_t)4 * GIB, .cpu_seconds_max = 300,
		.paths = { { "/", RUN }, { "/dev/null", LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE } },
	},
	[CONFINE_JUDGE_MODEL] = {
		.name = "atoll-judge", .calls = { CALLS(base), CALLS(webhook_calls) }, .refuses = true,
		.is_hidden = true, .is_alone = true, .memory_max = 512 * MIB, .paths = { RESOLVER },
	},
	[CONFINE_FRONT] = {
		.name = "atoll-front", .calls = { CALLS(base), CALLS(front_calls) }, .refuses = true,
		.is_hidden = true, .is_alone = true, .memory_max = (rlim_t)2 * GIB,
	},
	/* The resolver configuration was read before. */
	[CONFINE_EGRESS] = {
		.name = "atoll-egress", .calls = { CALLS(base), CALLS(egress_calls) }, .refuses = true,
		.is_hidden = true, .memory_max = 512 * MIB,
	},
};

const struct confine_row *confine_row(enum confine_program program)
{
	return &rows[program];
}
