/* SPDX-License-Identifier: Apache-2.0 */
#include "confine/confine.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confine/program.h"
#include "os/caps.h"
#include "os/landlock.h"
#include "os/path.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

bool confine_has_filter(void)
{
	return !HAS_SANITIZER;
}

static int fail(const struct confine_row *row, struct err *err, int errnum, const char *what)
{
	err_set(err, ERR_WALL, errnum, "confine", "%s cannot confine itself: %s: %s", row->name, what,
		strerror(errnum));
	err_hint(err, "`atoll doctor` says what this machine lacks");
	return -errnum;
}

/* A limit that is lower already stays: only root could raise it, and nobody should. */
static int lower_limit(int resource, rlim_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return -errno;
	if (limit.rlim_cur > value)
		limit.rlim_cur = value;
	limit.rlim_max = limit.rlim_cur;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

static int limit_resources(const struct confine_row *row, struct err *err)
{
	const struct {
		int resource;
		rlim_t value;
		bool is_set;
	} limits[] = {
		{ RLIMIT_CORE, 0, true },
		{ RLIMIT_NPROC, 0, row->is_alone },
		{ RLIMIT_CPU, row->cpu_seconds_max, row->cpu_seconds_max != 0 },
		/* A sanitizer's shadow memory alone is larger. */
		{ RLIMIT_AS, row->memory_max, !HAS_SANITIZER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		int r = limits[i].is_set ? lower_limit(limits[i].resource, limits[i].value) : 0;

		if (r < 0)
			return fail(row, err, -r, "setrlimit");
	}
	return 0;
}

static int allow_path(int ruleset_fd, int abi, const char *path, uint64_t rights)
{
	cleanup_fd int fd = path_open_anchor(path);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return landlock_allow(ruleset_fd, abi, fd, S_ISDIR(st.st_mode), rights);
}

static int limit_files(const struct confine_row *row, const struct confine_place *places, size_t count)
{
	int abi = landlock_abi(), r = 0;
	cleanup_fd int fd = abi > 0 ? landlock_ruleset_new(abi, true) : FD_NONE;

	if (abi <= 0)
		return 0;
	if (fd < 0)
		return fd;
	for (size_t i = 0; r == 0 && i < CONFINE_PATHS_MAX && row->paths[i].path; i++)
		r = allow_path(fd, abi, row->paths[i].path, row->paths[i].rights);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = landlock_allow(fd, abi, places[i].fd, true, places[i].rights);
	return r < 0 ? r : landlock_restrict(fd);
}

static int add_call(scmp_filter_ctx filter, const struct confine_call *call)
{
	uint32_t action = call->errnum ? SCMP_ACT_ERRNO((unsigned)call->errnum) : SCMP_ACT_ALLOW;
	struct scmp_arg_cmp argument = SCMP_CMP64(call->argument, SCMP_CMP_MASKED_EQ, call->mask, call->value);

	if (call->match == ARGUMENTS_ANY)
		return seccomp_rule_add(filter, action, call->number, 0);
	if (call->match == ARGUMENT_IS_OWN_PID)
		argument = SCMP_CMP64(0, SCMP_CMP_EQ, (scmp_datum_t)getpid());
	return seccomp_rule_add_array(filter, action, call->number, 1, &argument);
}

static int filter_calls(const struct confine_row *row)
{
	scmp_filter_ctx filter = seccomp_init(row->is_open   ? SCMP_ACT_ALLOW
					      : row->refuses ? SCMP_ACT_ERRNO(EPERM)
							     : SCMP_ACT_KILL_PROCESS);
	int r = filter ? 0 : -ENOMEM;

	/* What the kernel said, where the library can tell. */
	if (filter)
		(void)seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
	for (size_t table = 0; table < CONFINE_CALLS_MAX; table++)
		for (size_t i = 0; r == 0 && i < row->calls[table].count; i++)
			r = add_call(filter, &row->calls[table].calls[i]);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

int confine_self(enum confine_program program, const struct confine_place *places, size_t count, struct err *err)
{
	const struct confine_row *row = confine_row(program);
	int r = caps_no_new_privs();

	if (r < 0)
		return fail(row, err, -r, "no_new_privs");
	if (row->is_hidden && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(row, err, errno, "dumpable");
	r = limit_resources(row, err);
	if (r < 0)
		return r;
	r = limit_files(row, places, count);
	if (r < 0)
		return fail(row, err, -r, "landlock");
	r = row->calls[0].count && confine_has_filter() ? filter_calls(row) : 0;
	return r < 0 ? fail(row, err, -r, "seccomp") : 0;
}
