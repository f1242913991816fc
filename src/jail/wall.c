/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/str.h"
#include "jail/job.h"

/* What to do about each wall that this folder builds. */
static const char *const wall_hints[WALL_COUNT] = {
	[WALL_USERNS] = "user namespaces are off or used up here: see `sysctl kernel.unprivileged_userns_clone "
			"user.max_user_namespaces kernel.apparmor_restrict_unprivileged_userns` and `ulimit -u`, or "
			"run `atoll doctor`",
	[WALL_MOUNTS] = "the kernel or a security module refuses mounts in a user namespace: `atoll doctor` says which",
	[WALL_PIDNS] = "see `sysctl user.max_pid_namespaces`, or run `atoll doctor`",
	[WALL_NETNS] = "see `sysctl user.max_net_namespaces`, or run `atoll doctor`",
	[WALL_IPC] = "see `sysctl user.max_ipc_namespaces`, or run `atoll doctor`",
	[WALL_UTS] = "see `sysctl user.max_uts_namespaces`, or run `atoll doctor`",
	[WALL_CGROUPNS] = "see `sysctl user.max_cgroup_namespaces`, or run `atoll doctor`",
	[WALL_LANDLOCK] = "boot with `lsm=landlock,…`, or accept it with `degrade: [landlock]`",
	[WALL_LANDLOCK_SCOPE] = "Linux 6.12 has it; accept it with `degrade: [landlock.scope]`",
	[WALL_SECCOMP] = "the kernel needs CONFIG_SECCOMP_FILTER",
	[WALL_SPECULATION] = "accept it with `degrade: [speculation]`",
	[WALL_CORE_SCHED] = "the kernel needs CONFIG_SCHED_CORE; accept it with `degrade: [core-sched]`",
};

bool jail_wall_is_broken(const struct jail_spec *spec, enum wall wall)
{
	return spec->broken_wall && str_equal(spec->broken_wall, wall_names[wall]);
}

int jail_wall_failed(const struct jail_spec *spec, enum wall wall, int errnum, uint32_t *missing, struct err *err,
		     const char *what)
{
	if (spec->degrade & 1u << wall) {
		*missing |= 1u << wall;
		return 0;
	}
	err_set(err, ERR_WALL, errnum, wall_names[wall], "%s: %s", what, err_errno_name(errnum));
	if (wall_hints[wall])
		err_hint(err, "%s", wall_hints[wall]);
	return errnum ? -errnum : -EPERM;
}

int jail_wall_demanded(const struct jail_spec *spec, enum wall wall, int errnum, struct err *err, const char *what)
{
	struct jail_spec strict = *spec;
	uint32_t missing = 0;

	strict.degrade = 0;
	return jail_wall_failed(&strict, wall, errnum, &missing, err, what);
}
