/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/confine.h"

#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "os/caps.h"
#include "os/landlock.h"

enum { MEMORY_MAX_GIB = 4, RULES_MAX = STAGE_TREES_MAX * (STAGE_STACK_MAX + 2) };

static int limit_resources(struct err *err)
{
	static const struct {
		int resource;
		rlim_t value;
	} limits[] = { { RLIMIT_AS, (rlim_t)MEMORY_MAX_GIB << 30 }, { RLIMIT_CORE, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (setrlimit(limits[i].resource, &(struct rlimit){ limits[i].value, limits[i].value }) < 0)
			return err_set(err, ERR_WALL, errno, "confine", "setrlimit: %s", strerror(errno));
	return 0;
}

static int limit_files(const struct confine_rule *rules, size_t count, struct err *err)
{
	int abi = landlock_abi(), r = 0;
	cleanup_fd int fd = abi > 0 ? landlock_ruleset_new(abi, false) : FD_NONE;

	if (abi <= 0)
		return 0;
	for (size_t i = 0; fd >= 0 && r == 0 && i < count; i++)
		r = landlock_allow(fd, abi, rules[i].fd, true, rules[i].rights);
	if (fd >= 0 && r == 0)
		r = landlock_restrict(fd);
	if (fd < 0 || r < 0)
		return err_set(err, ERR_WALL, fd < 0 ? -fd : -r, "confine", "landlock: %s",
			       strerror(fd < 0 ? -fd : -r));
	return 0;
}

static const int reading_calls[] = {
	SCMP_SYS(sysinfo), /* qsort(3) of glibc asks how much memory there is */
	SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(readv), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(lseek),
	SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(openat2), SCMP_SYS(openat),
	SCMP_SYS(getdents64), SCMP_SYS(readlinkat), SCMP_SYS(readlink), SCMP_SYS(flistxattr), SCMP_SYS(llistxattr),
	SCMP_SYS(fgetxattr), SCMP_SYS(lgetxattr), SCMP_SYS(fcntl), SCMP_SYS(fstatfs),
	SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(poll), SCMP_SYS(ppoll),
	SCMP_SYS(memfd_create), SCMP_SYS(ftruncate), SCMP_SYS(sendmsg), SCMP_SYS(recvmsg), SCMP_SYS(pipe2),
	SCMP_SYS(clock_gettime), SCMP_SYS(getrandom), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(restart_syscall), SCMP_SYS(exit_group), SCMP_SYS(geteuid), SCMP_SYS(getuid), SCMP_SYS(getpid),
};

static const int writing_calls[] = {
	SCMP_SYS(renameat2), SCMP_SYS(renameat), SCMP_SYS(linkat), SCMP_SYS(symlinkat), SCMP_SYS(unlinkat),
	SCMP_SYS(mkdirat), SCMP_SYS(mknodat), SCMP_SYS(fchmod), SCMP_SYS(fchmodat), SCMP_SYS(fchown),
	SCMP_SYS(fchownat), SCMP_SYS(utimensat), SCMP_SYS(fsetxattr), SCMP_SYS(lsetxattr), SCMP_SYS(fremovexattr),
	SCMP_SYS(lremovexattr), SCMP_SYS(removexattr), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(syncfs),
	SCMP_SYS(fallocate),
	SCMP_SYS(copy_file_range), SCMP_SYS(pwrite64), SCMP_SYS(flock), SCMP_SYS(chmod), SCMP_SYS(sendfile),
	SCMP_SYS(ioctl), SCMP_SYS(umask), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep), SCMP_SYS(statfs),
};

static int allow(scmp_filter_ctx filter, const int *calls, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return r;
}

static int filter_calls(enum confine_kind kind, struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r = filter ? allow(filter, reading_calls, ARRAY_SIZE(reading_calls)) : -ENOMEM;

	if (r == 0 && kind == CONFINE_WRITING)
		r = allow(filter, writing_calls, ARRAY_SIZE(writing_calls));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	/* What stdio asks of its streams is answered with "no terminal". */
	if (r == 0 && kind == CONFINE_READING)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl), 0);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? err_set(err, ERR_WALL, -r, "confine", "seccomp: %s", strerror(-r)) : 0;
}

int confine_self(enum confine_kind kind, const struct confine_rule *rules, size_t count, struct err *err)
{
	int r = caps_no_new_privs();

	if (r < 0)
		return err_set(err, ERR_WALL, -r, "confine", "no_new_privs: %s", strerror(-r));
	r = limit_resources(err);
	if (r == 0)
		r = limit_files(rules, count, err);
	return r < 0 ? r : filter_calls(kind, err);
}

enum {
	READ = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR,
	WRITE = READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE |
		LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SYM | LANDLOCK_REFER,
};

static int confine_opened(enum confine_kind kind, const struct opened *opened, struct err *err)
{
	uint64_t rights = kind == CONFINE_WRITING ? WRITE : READ;
	cleanup_free struct confine_rule *rules = calloc(RULES_MAX, sizeof *rules);
	size_t count = 0;

	if (!rules)
		return err_set(err, ERR_INTERNAL, ENOMEM, "confine", "out of memory");
	rules[count++] = (struct confine_rule){ opened->stage_fd, rights };
	for (size_t i = 0; opened->stacks && i < opened->record.tree_count; i++) {
		const struct stage_stack *stack = &opened->stacks[i];

		rules[count++] = (struct confine_rule){ stack->host_fd, rights };
		for (size_t layer = 0; layer < stack->count; layer++)
			rules[count++] = (struct confine_rule){ stack->layers[layer], READ };
	}
	return confine_self(kind, rules, count, err);
}

int confine_reading(const struct opened *opened, struct err *err)
{
	return confine_opened(CONFINE_READING, opened, err);
}

int confine_writing(const struct opened *opened, struct err *err)
{
	return confine_opened(CONFINE_WRITING, opened, err);
}
