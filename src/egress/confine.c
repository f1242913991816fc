/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/confine.h"

#include <fcntl.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "os/landlock.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#endif

enum { MEMORY_MAX = 512 << 20 };

static int fail(struct err *err, int errnum, const char *what)
{
	err_set(err, ERR_WALL, errnum, "network gate", "the network gate cannot confine itself: %s: %s", what,
		strerror(errnum));
	err_hint(err, "`atoll doctor` says what this machine lacks");
	return -errnum;
}

static int limit_resources(struct err *err)
{
	static const struct {
		int resource;
		rlim_t value;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
#ifndef HAS_SANITIZER /* its shadow memory alone is larger */
		{ RLIMIT_AS, MEMORY_MAX },
#endif
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (setrlimit(limits[i].resource, &(struct rlimit){ limits[i].value, limits[i].value }) < 0)
			return fail(err, errno, "setrlimit");
	return 0;
}

/* No file at all: the resolver configuration was read before. Without Landlock the filter alone refuses to open. */
static int deny_files(struct err *err)
{
	int abi = landlock_abi(), r;
	cleanup_fd int fd = FD_NONE;

	if (abi < 1)
		return 0;
	fd = landlock_ruleset_new(abi, true);
	r = fd < 0 ? fd : landlock_restrict(fd);
	return r < 0 ? fail(err, -r, "landlock") : 0;
}

#ifndef HAS_SANITIZER
static int add_calls(scmp_filter_ctx filter)
{
	static const int calls[] = {
		SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(close), SCMP_SYS(fstat),
		SCMP_SYS(splice), SCMP_SYS(pipe2), SCMP_SYS(fcntl), SCMP_SYS(shutdown),
		SCMP_SYS(accept4), SCMP_SYS(connect), SCMP_SYS(getsockname), SCMP_SYS(getpeername),
		SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
		SCMP_SYS(recvfrom), SCMP_SYS(sendto), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
		SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2), SCMP_SYS(epoll_ctl),
		SCMP_SYS(timerfd_settime), SCMP_SYS(poll), SCMP_SYS(ppoll),
		SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(getrandom), SCMP_SYS(getpid),
		SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex),
		SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask), SCMP_SYS(restart_syscall),
		SCMP_SYS(exit), SCMP_SYS(exit_group),
	};
	static const int families[] = { AF_INET, AF_INET6 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(calls); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				     SCMP_A0(SCMP_CMP_EQ, (unsigned)families[i]));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	/* How many bytes are there to read; libevent asks. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, 0x541b));
	return r;
}

static int filter_calls(struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!filter)
		return fail(err, ENOMEM, "seccomp");
	r = add_calls(filter);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? fail(err, -r, "seccomp") : 0;
}
#endif

int confine_self(struct err *err)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(err, errno, "no_new_privs");
	/* Processes of the same user may not look into this one. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(err, errno, "dumpable");
	r = limit_resources(err);
	if (r == 0)
		r = deny_files(err);
#ifndef HAS_SANITIZER /* its runtime makes calls of its own */
	if (r == 0)
		r = filter_calls(err);
#endif
	return r;
}
