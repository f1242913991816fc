/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-policy/confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "os/fd.h"

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#endif

enum {
	MEMORY_MAX = 1 << 30,
	CPU_SECONDS_MAX = 30,
};

static int fail(struct err *err, int errnum, const char *what)
{
	err_set(err, ERR_WALL, errnum, "confine", "atoll-policy cannot confine itself: %s: %s", what,
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
		{ RLIMIT_CPU, CPU_SECONDS_MAX },
#ifndef HAS_SANITIZER /* its shadow memory alone is larger */
		{ RLIMIT_AS, MEMORY_MAX },
#endif
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct rlimit limit;

		if (getrlimit(limits[i].resource, &limit) < 0)
			return fail(err, errno, "getrlimit");
		if (limit.rlim_cur > limits[i].value)
			limit.rlim_cur = limits[i].value;
		limit.rlim_max = limit.rlim_cur;
		if (setrlimit(limits[i].resource, &limit) < 0)
			return fail(err, errno, "setrlimit");
	}
	return 0;
}

/* Reading anywhere, and nothing else. The system call filter has no way to say so; it is a second wall. */
static int restrict_files(struct err *err)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = (1ULL << 13) - 1 };
	struct landlock_path_beneath_attr rule = { .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE |
								     LANDLOCK_ACCESS_FS_READ_DIR };
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	cleanup_fd int ruleset = FD_NONE, root = FD_NONE;

	if (abi < 0)
		return 0; /* a kernel without Landlock; the filter still has no call that writes */
	if (abi >= 2)
		attr.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		attr.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		attr.handled_access_fs |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	root = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	if (ruleset < 0 || root < 0)
		return fail(err, errno, "landlock");
	rule.parent_fd = root;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return fail(err, errno, "landlock");
	return 0;
}

#ifndef HAS_SANITIZER
static int add_calls(scmp_filter_ctx filter)
{
	static const int calls[] = {
		SCMP_SYS(read),	      SCMP_SYS(pread64),
		SCMP_SYS(readv),      SCMP_SYS(write),
		SCMP_SYS(writev),     SCMP_SYS(close),
		SCMP_SYS(fstat),      SCMP_SYS(newfstatat),
		SCMP_SYS(stat),	      SCMP_SYS(lstat),
		SCMP_SYS(statx),      SCMP_SYS(lseek),
		SCMP_SYS(readlink),   SCMP_SYS(readlinkat),
		SCMP_SYS(openat2),    SCMP_SYS(munmap),
		SCMP_SYS(mremap),     SCMP_SYS(brk),
		SCMP_SYS(madvise),    SCMP_SYS(exit),
		SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn),
		SCMP_SYS(getrandom),  SCMP_SYS(clock_gettime),
		SCMP_SYS(futex),      SCMP_SYS(restart_syscall),
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(calls); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
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
	r = limit_resources(err);
	if (r == 0)
		r = restrict_files(err);
#ifndef HAS_SANITIZER /* its runtime makes calls of its own */
	if (r == 0)
		r = filter_calls(err);
#endif
	return r;
}
