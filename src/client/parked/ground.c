/* SPDX-License-Identifier: Apache-2.0 */
#include "client/parked/ground.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "os/fd.h"

/* What decides whether and how walls can be built. */
static const char *const settings[PARKING_SETTINGS] = {
	"/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_net_namespaces",
	"/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
	"/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/fs/suid_dumpable",
};

static void read_setting(const char *path, char out[PARKING_SETTING_SIZE])
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? 0 : read(fd, out, PARKING_SETTING_SIZE - 1);

	out[n > 0 ? n : 0] = 0;
}

/* 1: it has none; 0: it has; -errno. */
static int has_no_entries(const char *path)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	char entries[256] __attribute__((aligned(8)));
	long n = fd < 0 ? fd : syscall(SYS_getdents64, fd, entries, sizeof entries);

	if (n < 0)
		return fd < 0 ? fd : -errno;
	/* "." and ".." are 24 bytes each. */
	return n <= 48;
}

static int refuse(struct err *err, const char *what)
{
	err_set(err, ERR_POLICY, EINVAL, "park", "no sandbox can be parked under this policy: %s", what);
	err_hint(err, "start it when it is needed");
	return -EINVAL;
}

static bool publishes_fixed_ports(const struct policy *policy)
{
	for (size_t i = 0; i < policy->network.publish_count; i++)
		if (!policy->network.publish[i].is_on_demand)
			return true;
	return false;
}

/* What of a start depends on whom it is for, or is one of a kind on this machine. */
static int check_policy(const struct policy *policy, struct err *err)
{
	const char *names[POLICY_SECRETS_MAX];

	if (policy_secrets(policy, names))
		return refuse(err, "it names secrets, which are given to a session at its start");
	if (policy->agent.command || policy->agent.directories || policy->agent.files)
		return refuse(err, "it prepares the host for an agent");
	if (publishes_fixed_ports(policy))
		return refuse(err, "it publishes ports, which one sandbox can have");
	return 0;
}

static int check_project(const char *project, struct err *err)
{
	int r = has_no_entries(project);

	if (r == 1)
		return 0;
	if (r < 0)
		return err_set(err, ERR_USAGE, -r, "park", "the project %s cannot be read: %s", project,
			       err_errno_name(-r));
	err_set(err, ERR_POLICY, ENOTEMPTY, "park", "a sandbox is parked for a project that is empty; %s is not",
		project);
	err_hint(err, "what of a project is masked is looked up at the start: start it when it is needed");
	return -ENOTEMPTY;
}

int parking_check(const struct snapshot *snapshot, const char *project, const char *programs,
		  struct parking_ground *ret_ground, struct err *err)
{
	static const char *const names[PARKING_PROGRAMS] = { "atoll", "atoll-init" };
	struct parking_ground *ground = ret_ground;
	int r = check_policy(snapshot_policy(snapshot), err);

	if (r == 0)
		r = check_project(project, err);
	if (r < 0)
		return r;
	r = str_copy(ground->project, sizeof ground->project, project);
	for (size_t i = 0; r == 0 && i < PARKING_PROGRAMS; i++) {
		r = path_join(ground->programs[i], PATH_MAX, programs, names[i]);
		if (r == 0)
			r = seen_look(ground->programs[i], &ground->seen[i]);
	}
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "park", "atoll's own programs cannot be looked at: %s",
			       err_errno_name(-r));
	for (size_t i = 0; i < PARKING_SETTINGS; i++)
		read_setting(settings[i], ground->settings[i]);
	return parking_stands(snapshot, ground, err);
}

static int stale(struct err *err, const char *what)
{
	err_set(err, ERR_STATE, ESTALE, "park", "the parked sandbox was given up: %s changed", what);
	err_hint(err, "load the policy again, and park another");
	return -ESTALE;
}

static bool are_same(const struct seen *a, const struct seen *b)
{
	return a->exists == b->exists && a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static bool has_its_sources(const struct snapshot *snapshot)
{
	size_t count;
	const struct snapshot_source *sources = snapshot_sources(snapshot, &count);

	for (size_t i = 0; i < count; i++) {
		const struct seen then = { sources[i].exists, sources[i].device, sources[i].inode, sources[i].size,
					   sources[i].mtime_ns, sources[i].ctime_ns };
		struct seen now;

		if (seen_look(sources[i].path, &now) < 0 || !are_same(&then, &now))
			return false;
	}
	return true;
}

int parking_stands(const struct snapshot *snapshot, const struct parking_ground *ground, struct err *err)
{
	if (!has_its_sources(snapshot))
		return stale(err, "a file that its policy was made of");
	for (size_t i = 0; i < PARKING_PROGRAMS; i++) {
		struct seen now;

		if (seen_look(ground->programs[i], &now) < 0 || !are_same(&now, &ground->seen[i]))
			return stale(err, "a program of atoll's");
	}
	for (size_t i = 0; i < PARKING_SETTINGS; i++) {
		char now[PARKING_SETTING_SIZE];

		read_setting(settings[i], now);
		if (!str_equal(now, ground->settings[i]))
			return stale(err, "a setting of the kernel");
	}
	return check_project(ground->project, err);
}
