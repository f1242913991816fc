/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-secret/confine.h"

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "os/landlock.h"
#include "wire/secret.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#endif

static int fail(struct err *err, int errnum, const char *what)
{
	err_set(err, ERR_WALL, errnum, "confine", "atoll-secret cannot confine itself: %s: %s", what, strerror(errnum));
	err_hint(err, "`atoll doctor` says what this machine lacks");
	return -errnum;
}

/* Nobody else looks into this memory: neither a core file nor a debugger of the same user. */
static int hide_memory(struct err *err)
{
	if (setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }) < 0)
		return fail(err, errno, "setrlimit");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(err, errno, "PR_SET_DUMPABLE");
	return 0;
}

/* A kernel without Landlock leaves the filter, which lets neither programs nor sockets through. */
static int restrict_files(int dir_fd, struct err *err)
{
	int abi = landlock_abi(), r = 0;
	cleanup_fd int ruleset = FD_NONE;

	if (!abi)
		return 0;
	ruleset = landlock_ruleset_new(abi, true);
	if (ruleset < 0)
		return fail(err, -ruleset, "landlock");
	if (dir_fd >= 0)
		r = landlock_allow(ruleset, abi, dir_fd, true,
				   LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE |
				   LANDLOCK_MAKE_REG | LANDLOCK_REMOVE_FILE | LANDLOCK_READ_DIR);
	if (r == 0)
		r = landlock_restrict(ruleset);
	return r < 0 ? fail(err, -r, "landlock") : 0;
}

#ifndef HAS_SANITIZER
/* Calls that are allowed for some values of one argument only. */
static int add_narrow_calls(scmp_filter_ctx filter)
{
	static const unsigned ioctls[] = { TCGETS, TCSETS, TCSETSW, TCSETSF, TIOCGWINSZ };
	static const unsigned keys[] = { KEYCTL_LINK, KEYCTL_UNLINK, KEYCTL_SEARCH, KEYCTL_READ, KEYCTL_SET_TIMEOUT };
	static const unsigned receivers[] = { SECRET_FD, SECRET_PLACEHOLDER_FD };
	static const int maps[] = { SCMP_SYS(mmap), SCMP_SYS(mprotect) };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ioctls); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, ioctls[i]));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(keys); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(keyctl), 1, SCMP_A0(SCMP_CMP_EQ, keys[i]));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(maps); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, maps[i], 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(receivers); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sendmsg), 1,
				     SCMP_A0(SCMP_CMP_EQ, receivers[i]));
	/* To itself: a signal that came during a prompt is raised again when the terminal has its echo back. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(kill), 1,
				     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	return r;
}

static int add_calls(scmp_filter_ctx filter)
{
	static const int calls[] = {
		SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(close), SCMP_SYS(fstat),
		SCMP_SYS(newfstatat), SCMP_SYS(lseek), SCMP_SYS(openat), SCMP_SYS(openat2), SCMP_SYS(faccessat),
		SCMP_SYS(faccessat2), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(unlinkat), SCMP_SYS(fsync),
		SCMP_SYS(flock), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(mlock),
		SCMP_SYS(munlock), SCMP_SYS(getrandom), SCMP_SYS(clock_gettime), SCMP_SYS(add_key),
		SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(getpid),
		SCMP_SYS(geteuid), SCMP_SYS(futex), SCMP_SYS(restart_syscall), SCMP_SYS(exit_group),
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(calls); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return r < 0 ? r : add_narrow_calls(filter);
}

static int filter_calls(struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
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

int confine_self(int dir_fd, struct err *err)
{
	int r = hide_memory(err);

	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = fail(err, errno, "no_new_privs");
	if (r == 0)
		r = restrict_files(dir_fd, err);
#ifndef HAS_SANITIZER /* its runtime makes calls of its own */
	if (r == 0)
		r = filter_calls(err);
#endif
	return r;
}
