/* SPDX-License-Identifier: Apache-2.0 */
#include "limit/group.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"

/*
 * The honest way to ask: make a group with all three limits, look at what holds them, and remove it. Whether a service
 * manager gives a scope is known when it gave one; it is gone when whoever asked is.
 */

static void say(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(char *out, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_vformat(out, (unsigned)size, format, args);
	va_end(args);
}

static const char *fix_for(const struct limit_capability *capability, bool has_v2, bool has_v1)
{
	bool has_systemd = access("/run/systemd/system", F_OK) == 0;

	if (capability->memory == LIMIT_BY_CGROUP && capability->processes == LIMIT_BY_CGROUP)
		return capability->cpus >= LIMIT_BY_CGROUP ? "" :
		       "sudo mkdir -p /etc/systemd/system/user@.service.d && "
		       "printf '[Service]\\nDelegate=cpu memory pids\\n' | "
		       "sudo tee /etc/systemd/system/user@.service.d/delegate.conf && "
		       "sudo systemctl daemon-reload";
	if (!has_v1 && !has_v2)
		return "mount -t cgroup2 none /sys/fs/cgroup (in a container: start it with a writable /sys/fs/cgroup)";
	if (geteuid() == 0)
		return "mount -o remount,rw /sys/fs/cgroup (in a container: start it with a writable /sys/fs/cgroup)";
	if (has_v1)
		return "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line, "
		       "or run atoll as root";
	if (has_systemd && !capability->systemd_user_scope)
		return "sudo apt-get install dbus-user-session && sudo loginctl enable-linger \"$USER\", "
		       "then log in again";
	return "";
}

static void describe(struct limit_capability *capability, const struct limit_group *group)
{
	const char *place = NULL;

	for (size_t i = 0; !place && i < CGROUP_KIND_COUNT; i++)
		place = group->dirs[i].path;
	if (group->detail[0])
		say(capability->detail, sizeof capability->detail, "%s", group->detail);
	else if (place)
		say(capability->detail, sizeof capability->detail, "groups are made like %s", place);
	else
		say(capability->detail, sizeof capability->detail, "no cgroup hierarchy is mounted");
}

void limit_probe(const char *cgroup_root, const char *scope_program, const char *runtime_dir,
		 struct limit_capability *ret_capability)
{
	cleanup_cgroup_layout struct cgroup_layout layout = { 0 };
	struct limit_capability capability = { 0 };
	struct limit_group *group = NULL;
	char session[SESSION_ID_SIZE], path[PATH_MAX];
	struct limit_request request = {
		.session = session, .memory_bytes = 64 << 20, .millicpus = 500, .processes = 64,
		.cgroup_root = cgroup_root, .scope_program = scope_program,
		.runtime_dir = runtime_dir,
	};
	struct err err = { 0 };
	bool has_v1 = false, has_v2 = false;
	size_t top;

	if (cgroup_layout_load(&layout, cgroup_root) == 0) {
		has_v1 = cgroup_layout_own(&layout, CGROUP_MEMORY, path, &top) == 0;
		has_v2 = cgroup_layout_own(&layout, CGROUP_V2, path, &top) == 0;
	}
	if (random_session_id(session) < 0 || limit_group_new(&group, &request, &err) < 0) {
		say(capability.detail, sizeof capability.detail, "%s", err.message);
		capability.memory = LIMIT_SUPERVISED;
		capability.processes = rlimit_tasks_holder();
		capability.cpus = LIMIT_BY_NOTHING;
		*ret_capability = capability;
		return;
	}
	capability.backend = group->backend;
	capability.memory = group->memory;
	capability.processes = group->tasks;
	capability.cpus = group->cpus;
	capability.systemd_user_scope = group->is_scoped;
	describe(&capability, group);
	say(capability.fix, sizeof capability.fix, "%s", fix_for(&capability, has_v2, has_v1));
	limit_group_free(group);
	*ret_capability = capability;
}
