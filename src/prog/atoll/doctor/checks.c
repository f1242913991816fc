/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/str.h"
#include "limit/limit.h"
#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll/doctor/doctor.h"

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif
#define SCHED_CORE_GET 0

const char *const finding_state_names[FINDING_STATE_COUNT] = {
	[FINDING_OK] = "ok",
	[FINDING_NOTE] = "note",
	[FINDING_WEAK] = "weak",
	[FINDING_MISSING] = "missing",
};

struct finding *findings_add(struct findings *findings, enum finding_state state, const char *what,
			     const char *detail, ...)
{
	struct finding *finding =
		&findings->items[findings->count < FINDINGS_MAX ? findings->count++ : FINDINGS_MAX - 1];
	va_list args;

	*finding = (struct finding){ .state = state, .what = what };
	va_start(args, detail);
	vsnprintf(finding->detail, sizeof finding->detail, detail, args);
	va_end(args);
	return finding;
}

static void explain(struct finding *finding, const char *consequence, const char *fix)
{
	snprintf(finding->consequence, sizeof finding->consequence, "%s", consequence);
	snprintf(finding->fix, sizeof finding->fix, "%s", fix);
}

/* The first line of a small file, "" when there is none. */
static void read_line(const char *path, char *out, size_t size)
{
	cleanup_free char *bytes = NULL;
	size_t length;

	out[0] = 0;
	if (fd_read_file_at(AT_FDCWD, path, 64 << 10, &bytes, &length) < 0)
		return;
	bytes[strcspn(bytes, "\n")] = 0;
	snprintf(out, size, "%s", bytes);
}

/* The value of a sysctl, or -1 where this kernel has none. */
static long read_sysctl(const char *path)
{
	char line[64];
	uint64_t value;

	read_line(path, line, sizeof line);
	return num_parse_u64(line, &value) == 0 && value <= INT64_MAX ? (long)value : -1;
}

/* The kind of container that we are in, or NULL. */
static const char *container_kind(void)
{
	static const struct {
		const char *text, *kind;
	} marks[] = {
		{ "docker", "docker" }, { "kubepods", "kubernetes" },	{ "libpod", "podman" },
		{ "lxc", "lxc" },	{ "containerd", "containerd" },
	};
	static char found[64];
	char line[512];

	if (access("/run/.containerenv", F_OK) == 0)
		return "podman";
	if (access("/.dockerenv", F_OK) == 0)
		return "docker";
	read_line("/run/systemd/container", found, sizeof found);
	if (*found)
		return found;
	read_line("/proc/1/cgroup", line, sizeof line);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (strstr(line, marks[i].text))
			return marks[i].kind;
	return NULL;
}

void doctor_machine(struct findings *findings)
{
	const char *kind = container_kind();
	char modules[200];
	struct utsname name;

	if (uname(&name) == 0) {
		findings_add(findings, FINDING_NOTE, "kernel", "Linux %.100s %.60s", name.release,
			     name.machine);
		if (strcasestr(name.release, "microsoft"))
			findings_add(findings, FINDING_NOTE, "wsl",
				     "Windows Subsystem for Linux: Windows drives below /mnt are not "
				     "protected by Linux permissions");
	}
	read_line("/sys/kernel/security/lsm", modules, sizeof modules);
	findings_add(findings, FINDING_NOTE, "security modules", "%s",
		     *modules ? modules : "unknown: securityfs is not mounted");
	if (kind)
		findings_add(findings, FINDING_NOTE, "container",
			     "this is a %.40s container: its own rules apply first", kind);
}

static const struct {
	unsigned long flag;
	const char *name, *sysctl;
} namespaces[] = {
	{ CLONE_NEWUSER, "user", "user" },	 { CLONE_NEWNS, "mount", "mnt" },
	{ CLONE_NEWPID, "pid", "pid" },		 { CLONE_NEWNET, "network", "net" },
	{ CLONE_NEWIPC, "ipc", "ipc" },		 { CLONE_NEWUTS, "uts", "uts" },
	{ CLONE_NEWCGROUP, "cgroup", "cgroup" },
};

/* Ubuntu lets namespaces be made but takes the capabilities in them away, unless a profile allows it. */
static bool is_restricted_by_apparmor(void)
{
	return read_sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1;
}

static void fix_apparmor(struct finding *finding, const char *programs_dir)
{
	char relative[4200], profile[4200] = "";

	snprintf(relative, sizeof relative, "%s/../../share/atoll/apparmor/atoll", programs_dir);
	if (path_real(relative, profile, sizeof profile) == 0)
		snprintf(finding->fix, sizeof finding->fix,
			 "sudo install -m 644 %.200s /etc/apparmor.d/atoll && sudo apparmor_parser -r "
			 "/etc/apparmor.d/atoll",
			 profile);
	else
		snprintf(finding->fix, sizeof finding->fix,
			 "install atoll, whose AppArmor profile allows it user namespaces; or, for every "
			 "program: "
			 "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
}

static void fix_namespaces(struct finding *finding, int errnum, const char *programs_dir)
{
	const char *kind = container_kind();
	char path[64];

	if (read_sysctl("/proc/sys/kernel/unprivileged_userns_clone") == 0) {
		snprintf(finding->fix, sizeof finding->fix,
			 "sudo sysctl -w kernel.unprivileged_userns_clone=1");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", namespaces[i].sysctl);
		if (read_sysctl(path) == 0) {
			snprintf(finding->fix, sizeof finding->fix,
				 "sudo sysctl -w user.max_%s_namespaces=15000", namespaces[i].sysctl);
			return;
		}
	}
	if (geteuid() != 0 && is_restricted_by_apparmor())
		fix_apparmor(finding, programs_dir);
	else if (kind)
		snprintf(finding->fix, sizeof finding->fix,
			 "start the container with --security-opt seccomp=unconfined --security-opt "
			 "apparmor=unconfined "
			 "--security-opt systempaths=unconfined (docker, podman)");
	else if (errnum == EINVAL || errnum == ENOSYS)
		snprintf(finding->fix, sizeof finding->fix,
			 "use a kernel with all of CONFIG_{USER,PID,NET,IPC,UTS}_NS and CONFIG_CGROUPS");
	else if (errnum == ENOSPC || errnum == EUSERS)
		snprintf(finding->fix, sizeof finding->fix,
			 "the limit is used up: sudo sysctl -w user.max_user_namespaces=15000 "
			 "user.max_net_namespaces=15000");
}

static void check_clone(struct findings *findings, int errnum, const char *programs_dir)
{
	static const char consequence[] = "no sandbox can be built: without them nothing is hidden";
	struct finding *finding;
	char which[128] = "";
	size_t used = 0;

	if (errnum == 0) {
		findings_add(findings, FINDING_OK, "namespaces",
			     "user, mount, pid, network, ipc, uts and cgroup");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		int r = trial_namespaces(CLONE_NEWUSER | namespaces[i].flag);

		if (r && used < sizeof which)
			used += (size_t)snprintf(which + used, sizeof which - used, "%s%s", used ? ", " : "",
						 namespaces[i].name);
	}
	finding = findings_add(findings, FINDING_MISSING, "namespaces", "%s: %s",
			       *which ? which : "all together", strerror(errnum));
	explain(finding, consequence, "");
	fix_namespaces(finding, errnum, programs_dir);
}

/* The steps inside the namespaces, each a wall. */
static const struct {
	const char *what, *good, *consequence;
	enum finding_state state;
} steps[TRIAL_COUNT] = {
	[TRIAL_IDS] = { "id mapping", "uid and gid map to themselves",
			"no sandbox can be built: it would own nothing inside", FINDING_MISSING },
	[TRIAL_PRIVATE] = { "private mounts", "mounts stay inside", "no sandbox can be built",
			    FINDING_MISSING },
	[TRIAL_TMPFS] = { "tmpfs", "an own root and private scratch directories", "no sandbox can be built",
			  FINDING_MISSING },
	[TRIAL_BIND] = { "bind mounts", "single trees can be shown", "no sandbox can be built",
			 FINDING_MISSING },
	[TRIAL_READ_ONLY] = { "mount_setattr", "whole trees can be made read-only",
			      "no sandbox can be built: submounts would stay writable (Linux 5.12)",
			      FINDING_MISSING },
	[TRIAL_PROC] = { "own /proc", "only processes of the sandbox are seen",
			 "no sandbox can be built: the host's processes would be seen", FINDING_MISSING },
	[TRIAL_LOOPBACK] = { "loopback", "programs can serve themselves",
			     "servers inside cannot be reached from inside", FINDING_WEAK },
	[TRIAL_OVERLAY] = { "overlayfs", "trees can be staged (userxattr)",
			    "trees cannot be staged (Linux 5.11), except by fuse-overlayfs: `stage: {backend: fuse}`",
			    FINDING_WEAK },
	[TRIAL_PIVOT] = { "pivot_root", "the host's root can be left",
			  "no sandbox can be built: the host's root would stay in reach", FINDING_MISSING },
};

void doctor_namespaces(struct findings *findings, const char *programs_dir)
{
	struct trial trial;

	trial_run(&trial);
	check_clone(findings, trial.errnums[TRIAL_CLONE], programs_dir);
	for (size_t i = TRIAL_CLONE + 1; i < TRIAL_COUNT; i++) {
		int errnum = trial.errnums[i];
		struct finding *finding;

		if (errnum == TRIAL_NOT_REACHED)
			continue;
		if (errnum == 0) {
			findings_add(findings, FINDING_OK, steps[i].what, "%s", steps[i].good);
			continue;
		}
		finding = findings_add(findings, steps[i].state, steps[i].what, "%s", strerror(errnum));
		explain(finding, steps[i].consequence, "");
		fix_namespaces(finding, errnum, programs_dir);
	}
	if (trial.errnums[TRIAL_PIVOT] == 0)
		findings_add(findings, FINDING_NOTE, "time", "%u.%02u ms to make and end all of this",
			     (unsigned)(trial.ns / 1000000), (unsigned)(trial.ns / 10000 % 100));
	if (geteuid() == 0) {
		int errnum = trial_idmap("/");

		if (errnum == 0)
			findings_add(findings, FINDING_OK, "id-mapped mounts",
				     "root's sandboxes run as an unprivileged range of ids");
		else
			explain(findings_add(findings, FINDING_WEAK, "id-mapped mounts",
					     "of the root file system: %s", strerror(errnum)),
				"root cannot run sandboxes in such a tree; ordinary users can",
				"run atoll as an ordinary user, or keep projects on ext4, xfs, btrfs or "
				"tmpfs (Linux 5.12 and newer)");
	}
}

static void check_landlock(struct findings *findings)
{
	enum { ABI_REFER = 2, ABI_SCOPE = 6 };
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi >= ABI_SCOPE) {
		findings_add(findings, FINDING_OK, "landlock",
			     "ABI %ld: files (not with exec: {namespaces: mounts}), abstract sockets, signals", abi);
	} else if (abi > 0 && abi < ABI_REFER) {
		explain(findings_add(findings, FINDING_WEAK, "landlock", "ABI %ld: files only, each in its directory",
				     abi),
			"inside, a file cannot be moved or linked into another directory (EXDEV; most programs copy "
			"it then); abstract sockets and signals have the namespaces as their only wall",
			"use Linux 5.19 or newer, better 6.12");
	} else if (abi > 0) {
		explain(findings_add(findings, FINDING_WEAK, "landlock", "ABI %ld: files only", abi),
			"abstract sockets and signals have the namespaces as their only wall",
			"use Linux 6.12 or newer");
	} else if (errno == EOPNOTSUPP) {
		explain(findings_add(findings, FINDING_WEAK, "landlock", "switched off at boot"),
			"the second wall around files is missing; levels that demand it are refused",
			"add landlock to the kernel's lsm= option (sudoedit /etc/default/grub && sudo "
			"update-grub), then reboot");
	} else {
		explain(findings_add(findings, FINDING_WEAK, "landlock", "%s", strerror(errno)),
			"the second wall around files is missing; levels that demand it are refused",
			"use Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK; in a container, allow its "
			"system calls");
	}
}

static void check_seccomp(struct findings *findings)
{
	bool is_sync;
	int errnum = trial_seccomp(&is_sync);

	if (errnum == 0 && is_sync)
		findings_add(findings, FINDING_OK, "seccomp",
			     "filters with notification, synchronous wake-up");
	else if (errnum == 0)
		explain(findings_add(findings, FINDING_WEAK, "seccomp", "filters with notification"),
			"each logged exec or connect costs tens of microseconds more",
			"use Linux 6.6 or newer");
	else
		explain(findings_add(findings, FINDING_MISSING, "seccomp", "a filter with notification: %s",
				     strerror(errnum)),
			errnum == EBUSY
				? "no sandbox can be built: whoever started this holds the only listener"
				: "no sandbox can be built: system calls could be neither filtered nor "
				  "logged",
			errnum == EBUSY ? "start atoll outside of the other sandbox or container"
					: "use Linux 5.5 or newer with CONFIG_SECCOMP_FILTER; in a "
					  "container, allow seccomp(2)");
}

static bool has_syscall(long result)
{
	return result >= 0 || (errno != ENOSYS && errno != EPERM);
}

static void check_calls(struct findings *findings)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct open_how how = { .flags = O_PATH | O_CLOEXEC };
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);
	unsigned long cookie = 0;

	if (pidfd >= 0)
		findings_add(findings, FINDING_OK, "pidfd", "processes are named without races");
	else
		explain(findings_add(findings, FINDING_MISSING, "pidfd", "%s", strerror(errno)),
			"no sandbox can be supervised",
			"use Linux 5.4 or newer; in a container, allow pidfd_open(2)");
	if (fd >= 0)
		findings_add(findings, FINDING_OK, "openat2", "paths are resolved without races");
	else
		explain(findings_add(findings, FINDING_MISSING, "openat2", "%s", strerror(errno)),
			"no path can be resolved safely",
			"use Linux 5.6 or newer; in a container, allow openat2(2)");
	close_fd(&pidfd);
	close_fd(&fd);
	if (prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, 0, 0, 0) >= 0)
		findings_add(findings, FINDING_OK, "speculation", "controls by prctl");
	else
		explain(findings_add(findings, FINDING_WEAK, "speculation", "no controls by prctl: %s",
				     strerror(errno)),
			"side channels of the processor are mitigated by the kernel's defaults only", "");
	if (has_syscall(prctl(PR_SCHED_CORE, SCHED_CORE_GET, 0, 0, &cookie)))
		findings_add(findings, FINDING_OK, "core scheduling", "known to the kernel");
	else
		explain(findings_add(findings, FINDING_WEAK, "core scheduling", "%s", strerror(errno)),
			"a sandbox may share a core with other programs at the same moment",
			"use a kernel with CONFIG_SCHED_CORE, where the processor has hyper-threads");
}

void doctor_kernel(struct findings *findings)
{
	check_landlock(findings);
	check_seccomp(findings);
	check_calls(findings);
}

void doctor_limits(struct findings *findings)
{
	struct limit_capability capability;
	int errnum = trial_limits(&capability);
	bool is_whole;
	struct finding *finding;

	if (errnum) {
		explain(findings_add(findings, FINDING_WEAK, "limits", "cannot be tried: %s", strerror(errnum)),
			"nobody knows what would hold limits here", "");
		return;
	}
	is_whole = capability.memory == LIMIT_BY_CGROUP && capability.processes == LIMIT_BY_CGROUP &&
		   capability.cpus == LIMIT_BY_CGROUP;
	finding = findings_add(findings, is_whole ? FINDING_OK : FINDING_WEAK, "limits",
			       "%s: memory %s, processes %s, CPUs %s",
			       limit_backend_names[capability.backend], limit_holder_names[capability.memory],
			       limit_holder_names[capability.processes], limit_holder_names[capability.cpus]);
	if (capability.systemd_user_scope)
		findings_add(findings, FINDING_NOTE, "systemd",
			     "each run asks the user's service manager for its cgroup, as a scope");
	if (is_whole)
		return;
	snprintf(finding->consequence, sizeof finding->consequence,
		 "%s%swhat no cgroup holds is held per process, by supervision or not at all", capability.detail,
		 *capability.detail ? ": " : "");
	snprintf(finding->fix, sizeof finding->fix, "%s", capability.fix);
}
