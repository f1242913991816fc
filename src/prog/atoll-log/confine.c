/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-log/confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	MEMORY_MAX = 256 << 20,
	/* Every right of the first Landlock version; all of them denied everywhere. */
	FILE_RIGHTS = (1 << 13) - 1,
};

static int limit_resources(struct err *err)
{
	static const struct {
		int resource;
		rlim_t value;
	} limits[] = { { RLIMIT_AS, MEMORY_MAX }, { RLIMIT_CORE, 0 }, { RLIMIT_NPROC, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (setrlimit(limits[i].resource, &(struct rlimit){ limits[i].value, limits[i].value }) < 0)
			return err_set(err, ERR_WALL, errno, "confine", "setrlimit: %s", strerror(errno));
	return 0;
}

/*
 * An empty ruleset denies every path. A kernel without Landlock loses nothing by it here: the filter below
 * does not let open(2) through either, so both walls stand for the same thing.
 */
static int deny_files(struct err *err)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = FILE_RIGHTS };
	cleanup_fd int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);

	if (fd < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
		return 0;
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return err_set(err, ERR_WALL, errno, "confine", "landlock: %s", strerror(errno));
	return 0;
}

static int add_rules(scmp_filter_ctx filter)
{
	static const int allowed[] = {
		SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(fstat),
		SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(poll), SCMP_SYS(ppoll),
		SCMP_SYS(flock), SCMP_SYS(clock_gettime), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask),
		SCMP_SYS(restart_syscall), SCMP_SYS(exit_group),
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	/* fstat(2) is newfstatat(fd, "") in this libc; names of files stay out of reach by Landlock. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
				     SCMP_A3(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	/* stdio asks whether stdout is a terminal. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, TCGETS));
	return r;
}

static int filter_calls(struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r = filter ? add_rules(filter) : -ENOMEM;

	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? err_set(err, ERR_WALL, -r, "confine", "seccomp: %s", strerror(-r)) : 0;
}

int confine_self(struct err *err)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, ERR_WALL, errno, "confine", "no_new_privs: %s", strerror(errno));
	r = limit_resources(err);
	if (r == 0)
		r = deny_files(err);
	return r < 0 ? r : filter_calls(err);
}
