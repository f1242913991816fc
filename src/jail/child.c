/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. The child of clone3 starts with all capabilities in its own user namespace and none
 * outside, in a network namespace that was made ahead. It first does what needs no plan (the other namespaces) while
 * the parent plans the mounts, then builds the root, then gives everything up, while its second process takes leave of
 * the old root, in the order in which each step still allows the next: limits, descriptors, keyring, capabilities,
 * no_new_privs, Landlock, exec. Changing credentials
 * clears the death signal, so that is asked for late; until then the socket's end of file tells of the parent's death.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/prctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "jail/filter.h"
#include "jail/job.h"
#include "os/caps.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/landlock.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

int prctl(int option, ...);

enum { INIT_FD_WIRE = 3 };

static int child_ids(struct jail_job *job, struct err *err)
{
	const struct jail_spec *spec = job->spec;

	if (child_await(job) < 0)
		return err_set(err, ERR_INTERNAL, EPIPE, "jail", "the parent process has ended");
	/* Planned by now as well. */
	job->planned.mounts = job->report->mounts;
	job->planned.mount_count = job->report->mount_count;
	/* Root's own groups must not come along. An ordinary user may not drop groups: they are unmapped inside. */
	if (spec->run_as_root && syscall(SYS_setgroups, 0, NULL) < 0)
		return err_set(err, ERR_WALL, errno, wall_names[WALL_USERNS], "cannot drop the groups: %s",
			       err_errno_name(errno));
	/* The raw calls: musl's would signal other threads, of which there are none. */
	if (syscall(SYS_setresgid, spec->gid, spec->gid, spec->gid) < 0 ||
	    syscall(SYS_setresuid, spec->uid, spec->uid, spec->uid) < 0)
		return err_set(err, ERR_WALL, errno, wall_names[WALL_USERNS], "cannot become uid %u: %s",
			       (unsigned)spec->uid,
			       err_errno_name(errno));
	return 0;
}

/* A limit can only be lowered: what the host already limits further stays. */
static int child_rlimits(const struct jail_spec *spec, struct err *err)
{
	for (size_t i = 0; i < spec->rlimit_count; i++) {
		struct rlimit old, new = spec->rlimits[i].value;

		if (getrlimit(spec->rlimits[i].resource, &old) < 0)
			return err_set(err, ERR_INTERNAL, errno, "limits", "cannot read resource limit %d: %s",
				       spec->rlimits[i].resource, err_errno_name(errno));
		if (new.rlim_max > old.rlim_max)
			new.rlim_max = old.rlim_max;
		if (new.rlim_cur > new.rlim_max)
			new.rlim_cur = new.rlim_max;
		if (setrlimit(spec->rlimits[i].resource, &new) < 0)
			return err_set(err, ERR_INTERNAL, errno, "limits", "cannot set resource limit %d: %s",
				       spec->rlimits[i].resource, err_errno_name(errno));
	}
	if (spec->child_limits && spec->child_limits(spec->limits) < 0)
		return err_set(err, ERR_INTERNAL, EPERM, "limits", "cannot set the resource limits of the group");
	return 0;
}

/* 0, 1, 2 are the sandbox's null, 3 is the wire, everything else goes at exec. */
static int child_descriptors(struct jail_job *job, struct err *err)
{
	int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	int r = null < 0 ? null : 0;

	/* The parent saw to it that only wire_fd can be 3 or less. */
	if (r == 0 && job->spec->wire_fd != INIT_FD_WIRE && dup2(job->spec->wire_fd, INIT_FD_WIRE) < 0)
		r = -errno;
	for (int fd = 0; r == 0 && fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			r = -errno;
	if (r == 0)
		r = fd_set_cloexec(INIT_FD_WIRE, false);
	if (r == 0 && syscall(SYS_close_range, 4, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		r = -errno;
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "descriptors", "the descriptors of init cannot be set up: %s",
			       err_errno_name(-r)) : 0;
}

/* Walls that not every machine has: what neither kernel nor processor offers is said in the report, never refused. */
static int child_hardware(const struct jail_job *job, struct err *err)
{
	struct jail_report *report = job->report;
	int r = jail_wall_is_broken(job->spec, WALL_SPECULATION) ? -EPERM : caps_limit_speculation();

	report->speculation = r >= 0;
	if (r == -EOPNOTSUPP)
		report->missing |= 1u << WALL_SPECULATION, r = 0;
	if (r < 0)
		r = jail_wall_failed(job->spec, WALL_SPECULATION, -r, &report->missing, err,
				     "cannot limit speculation");
	if (r < 0)
		return r;
	r = jail_wall_is_broken(job->spec, WALL_CORE_SCHED) ? -EPERM : caps_core_cookie();
	report->core_sched = r == 0;
	if (r == -EOPNOTSUPP)
		report->missing |= 1u << WALL_CORE_SCHED, r = 0;
	if (r < 0)
		r = jail_wall_failed(job->spec, WALL_CORE_SCHED, -r, &report->missing, err,
				     "cannot make a core-scheduling cookie");
	return r < 0 ? r : 0;
}

/* Under a rule about files the kernel lets nobody mount, so where programs may there is none. */
static int child_scopes(const struct jail_job *job, int abi, int *ret_fd, struct err *err)
{
	int fd = landlock_scopes_new(abi);

	if (fd >= 0 && fd <= INIT_FD_WIRE)
		fd = fd_move_above(fd, INIT_FD_WIRE + 1);
	if (fd < 0)
		return jail_wall_failed(job->spec, WALL_LANDLOCK_SCOPE, -fd, &job->report->missing, err,
					"Landlock cannot confine abstract sockets and signals here");
	job->report->landlock_abi = abi;
	*ret_fd = fd;
	return 0;
}

/* *ret_fd stays FD_NONE where the policy lets Landlock be missing. */
static int child_ruleset(const struct jail_job *job, int *ret_fd, struct err *err)
{
	const struct jail_spec *spec = job->spec;
	struct jail_report *report = job->report;
	bool scopes = !jail_wall_is_broken(spec, WALL_LANDLOCK_SCOPE);
	int abi = landlock_abi(), fd, r;

	if (abi < LANDLOCK_ABI_SCOPES || !scopes) {
		r = jail_wall_failed(spec, WALL_LANDLOCK_SCOPE, EOPNOTSUPP, &report->missing, err,
				     "Landlock cannot confine abstract sockets and signals here");
		if (r < 0)
			return r;
	}
	if (jail_seccomp_has_mounts(spec->seccomp))
		return scopes && abi >= LANDLOCK_ABI_SCOPES ? child_scopes(job, abi, ret_fd, err) : 0;
	fd = jail_wall_is_broken(spec, WALL_LANDLOCK) || abi < 1 ? -EOPNOTSUPP : landlock_ruleset_new(abi, scopes);
	if (fd >= 0 && fd <= INIT_FD_WIRE)
		fd = fd_move_above(fd, INIT_FD_WIRE + 1);
	if (fd < 0)
		return jail_wall_failed(spec, WALL_LANDLOCK, -fd, &report->missing, err, "Landlock is not available");
	/* Init comes by its descriptor from outside the new root, and its exec is checked as well. */
	r = landlock_allow(fd, abi, spec->init_fd, false, LANDLOCK_EXECUTE | LANDLOCK_READ_FILE);
	if (r < 0) {
		close(fd);
		return err_set(err, ERR_WALL, -r, wall_names[WALL_LANDLOCK], "init cannot be executed: %s",
			       err_errno_name(-r));
	}
	report->landlock_abi = abi;
	*ret_fd = fd;
	return 0;
}

static int child_give_up(const struct jail_job *job, int ruleset_fd, struct err *err)
{
	int r = caps_new_keyring();

	if (r < 0) {
		err_set(err, ERR_INTERNAL, -r, "keyring", "cannot make a session keyring: %s", err_errno_name(-r));
		if (r == -EDQUOT)
			err_hint(err, "too many keyrings are in use: raise `sysctl kernel.keys.maxkeys`");
		return r;
	}
	r = caps_bound(0);
	if (r == 0)
		r = caps_drop_all();
	if (r == 0)
		r = caps_no_new_privs();
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "capabilities", "cannot give up the privileges: %s",
			       err_errno_name(-r));
	r = ruleset_fd >= 0 ? landlock_restrict(ruleset_fd) : 0;
	return r < 0 ? err_set(err, ERR_WALL, -r, wall_names[WALL_LANDLOCK], "cannot enforce Landlock: %s",
			       err_errno_name(-r)) : 0;
}

/* The signal comes if the parent dies from now on; the pidfd tells whether it died before. */
static int child_bind_to_parent(const struct jail_job *job, struct err *err)
{
	struct pollfd parent = { .fd = job->parent_pidfd, .events = POLLIN };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "jail", "cannot ask for the death signal: %s",
			       err_errno_name(errno));
	if (poll(&parent, 1, 0) != 0)
		return err_set(err, ERR_INTERNAL, EPIPE, "jail", "the parent process has ended");
	return 0;
}

/* Of a descriptor; in place, since this runs behind clone. */
static char *number_text(int number, char out[12])
{
	char *at = out + 11;

	*at = 0;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	return at;
}

/* Init hands the rules to the box, for what that does inside on its owner's behalf. */
static int child_exec(const struct jail_job *job, int ruleset_fd, struct err *err)
{
	char number[12];
	char *argv[] = { (char *)"atoll-init", (char *)jail_seccomp_names[job->spec->seccomp],
			 ruleset_fd >= 0 ? number_text(ruleset_fd, number) : NULL, NULL };
	char *env[] = { NULL };
	sigset_t none;

	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "jail", "cannot unblock the signals: %s",
			       err_errno_name(errno));
	umask(022);
	if (ruleset_fd >= 0 && fd_set_cloexec(ruleset_fd, false) < 0)
		return err_set(err, ERR_INTERNAL, errno, "init", "cannot keep the rules of Landlock");
	job->report->is_complete = true;
	syscall(SYS_execveat, job->spec->init_fd, "", argv, env, AT_EMPTY_PATH);
	err_set(err, ERR_INTERNAL, errno, "init", "cannot execute atoll-init: %s", err_errno_name(errno));
	if (err->errnum == EACCES && job->spec->run_as_root)
		err_hint(err,
			 "atoll-init must be executable for everybody: the sandbox runs it as an unprivileged uid");
	return -err->errnum;
}

int child_run(struct jail_job *job, struct err *err)
{
	struct jail_report *report = job->report;
	bool has_file_rules = !jail_seccomp_has_mounts(job->spec->seccomp);
	int ruleset_fd = FD_NONE, r;

	close(job->parent_socket);
	umask(0);
	/* Away from the terminal of the host: /dev/tty would be it otherwise. */
	if (syscall(SYS_setsid) < 0)
		return err_set(err, ERR_INTERNAL, errno, "jail", "cannot make a session: %s", err_errno_name(errno));
	r = child_namespaces(job, err);
	report->stage_end_ns[JAIL_STAGE_NAMESPACES] = clock_monotonic_ns();
	if (r == 0)
		r = child_ruleset(job, &ruleset_fd, err);
	if (r == 0)
		r = child_ids(job, err);
	report->stage_end_ns[JAIL_STAGE_IDS] = clock_monotonic_ns();
	if (r == 0)
		r = child_fuse(job, err);
	if (r == 0)
		r = child_mounts(job, has_file_rules ? ruleset_fd : FD_NONE, report->landlock_abi, err);
	if (r == 0)
		r = detacher_start(job, err);
	if (r == 0)
		r = child_hardware(job, err);
	if (r == 0)
		r = child_descriptors(job, err);
	if (r == 0)
		r = child_rlimits(job->spec, err);
	if (r == 0)
		r = child_give_up(job, ruleset_fd, err);
	report->stage_end_ns[JAIL_STAGE_LANDLOCK] = clock_monotonic_ns();
	if (r == 0)
		r = child_bind_to_parent(job, err);
	return r < 0 ? r : child_exec(job, ruleset_fd, err);
}
