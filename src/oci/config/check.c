/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config/check.h"

#include <jansson.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "base/names.h"
#include "base/str.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

const char *const oci_hook_names[OCI_HOOK_COUNT] = {
	[OCI_HOOK_PRESTART] = "prestart",
	[OCI_HOOK_CREATE_RUNTIME] = "createRuntime",
	[OCI_HOOK_CREATE_CONTAINER] = "createContainer",
	[OCI_HOOK_START_CONTAINER] = "startContainer",
	[OCI_HOOK_POSTSTART] = "poststart",
	[OCI_HOOK_POSTSTOP] = "poststop",
};

const struct oci_namespace_kind oci_namespace_kinds[OCI_NAMESPACE_COUNT] = {
	{ "user", "user", CLONE_NEWUSER },     { "pid", "pid", CLONE_NEWPID },
	{ "network", "net", CLONE_NEWNET },    { "ipc", "ipc", CLONE_NEWIPC },
	{ "uts", "uts", CLONE_NEWUTS },	       { "mount", "mnt", CLONE_NEWNS },
	{ "cgroup", "cgroup", CLONE_NEWCGROUP }, { "time", "time", CLONE_NEWTIME },
};

static const char *const capability_names[] = {
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID",
	"CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST",
	"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO",
	"CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE",
	"CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE",
	"CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
};

static const char *const rlimit_names[] = {
	[RLIMIT_CPU] = "RLIMIT_CPU",	       [RLIMIT_FSIZE] = "RLIMIT_FSIZE",
	[RLIMIT_DATA] = "RLIMIT_DATA",	       [RLIMIT_STACK] = "RLIMIT_STACK",
	[RLIMIT_CORE] = "RLIMIT_CORE",	       [RLIMIT_RSS] = "RLIMIT_RSS",
	[RLIMIT_NPROC] = "RLIMIT_NPROC",       [RLIMIT_NOFILE] = "RLIMIT_NOFILE",
	[RLIMIT_MEMLOCK] = "RLIMIT_MEMLOCK",   [RLIMIT_AS] = "RLIMIT_AS",
	[RLIMIT_LOCKS] = "RLIMIT_LOCKS",       [RLIMIT_SIGPENDING] = "RLIMIT_SIGPENDING",
	[RLIMIT_MSGQUEUE] = "RLIMIT_MSGQUEUE", [RLIMIT_NICE] = "RLIMIT_NICE",
	[RLIMIT_RTPRIO] = "RLIMIT_RTPRIO",     [RLIMIT_RTTIME] = "RLIMIT_RTTIME",
};

int oci_capability_find(const char *name)
{
	return names_find(capability_names, ARRAY_SIZE(capability_names), name);
}

const char *oci_capability_name(int capability)
{
	return capability >= 0 && capability < (int)ARRAY_SIZE(capability_names) ? capability_names[capability] : NULL;
}

int oci_rlimit_find(const char *name)
{
	return names_find(rlimit_names, ARRAY_SIZE(rlimit_names), name);
}

const struct oci_namespace *oci_config_namespace(const struct oci_config *config, uint64_t flag)
{
	const struct oci_namespace *namespaces = config->linux_part.namespaces.items;

	for (size_t i = 0; i < config->linux_part.namespaces.count; i++)
		for (size_t j = 0; j < OCI_NAMESPACE_COUNT; j++)
			if (oci_namespace_kinds[j].flag == flag &&
			    str_equal(oci_namespace_kinds[j].name, namespaces[i].type))
				return &namespaces[i];
	return NULL;
}

static int refuse(struct err *err, const char *field, const char *value, const char *why)
{
	char quoted[ERR_QUOTE_SIZE];

	return err_set(err, ERR_USAGE, EINVAL, "config", "config.json: %s \"%s\" %s", field, err_quote(quoted, value),
		       why);
}

int oci_process_check(const struct oci_process *process, struct err *err)
{
	const struct oci_rlimit *limits = process->rlimits.items;

	if (process->cwd[0] != '/')
		return refuse(err, "process.cwd", process->cwd, "is not an absolute path");
	if (!process->args.count || !*process->args.items[0])
		return err_set(err, ERR_USAGE, EINVAL, "config", "config.json: process.args must not be empty");
	for (size_t i = 0; i < process->env.count; i++)
		if (!strchr(process->env.items[i], '=') || process->env.items[i][0] == '=')
			return refuse(err, "process.env", process->env.items[i], "is not NAME=value");
	for (size_t i = 0; i < process->rlimits.count; i++) {
		if (oci_rlimit_find(limits[i].type) < 0)
			return refuse(err, "process.rlimits", limits[i].type, "is no limit");
		if (limits[i].soft > limits[i].hard)
			return refuse(err, "process.rlimits", limits[i].type, "has a soft limit above its hard one");
		for (size_t j = 0; j < i; j++)
			if (str_equal(limits[i].type, limits[j].type))
				return refuse(err, "process.rlimits", limits[i].type, "stands there twice");
	}
	/* A capability that no kernel has is none that it could get: it is passed over, as the specification wants. */
	return 0;
}

static int check_namespaces(const struct oci_config *config, struct err *err)
{
	const struct oci_namespace *namespaces = config->linux_part.namespaces.items;
	const struct oci_namespace *user = oci_config_namespace(config, CLONE_NEWUSER);

	for (size_t i = 0; i < config->linux_part.namespaces.count; i++) {
		bool is_known = false;

		for (size_t j = 0; j < OCI_NAMESPACE_COUNT; j++)
			is_known = is_known || str_equal(oci_namespace_kinds[j].name, namespaces[i].type);
		if (!is_known)
			return refuse(err, "linux.namespaces", namespaces[i].type, "is no namespace");
		if (namespaces[i].path && *namespaces[i].path && namespaces[i].path[0] != '/')
			return refuse(err, "linux.namespaces: path", namespaces[i].path, "is not an absolute path");
		for (size_t j = 0; j < i; j++)
			if (str_equal(namespaces[i].type, namespaces[j].type))
				return refuse(err, "linux.namespaces", namespaces[i].type, "stands there twice");
	}
	if (!oci_config_namespace(config, CLONE_NEWNS))
		return err_set(err, ERR_USAGE, EINVAL, "config",
			       "config.json: linux.namespaces has no mount namespace");
	if ((config->linux_part.uid_maps.count || config->linux_part.gid_maps.count) && !user)
		return err_set(err, ERR_USAGE, EINVAL, "config",
			       "config.json: linux.uidMappings need a user namespace");
	if (user && !(user->path && *user->path) &&
	    (!config->linux_part.uid_maps.count || !config->linux_part.gid_maps.count))
		return err_set(err, ERR_USAGE, EINVAL, "config",
			       "config.json: a new user namespace needs linux.uidMappings and linux.gidMappings");
	return 0;
}

static bool is_absolute(const struct field_texts *paths, struct err *err, const char *field)
{
	for (size_t i = 0; i < paths->count; i++)
		if (paths->items[i][0] != '/') {
			refuse(err, field, paths->items[i], "is not an absolute path");
			return false;
		}
	return true;
}

static int check_paths(const struct oci_config *config, struct err *err)
{
	const struct oci_mount *mounts = config->mounts.items;
	const struct oci_device *devices = config->linux_part.devices.items;
	const char *path = config->linux_part.cgroups_path;

	for (size_t i = 0; i < config->mounts.count; i++)
		if (mounts[i].destination[0] != '/')
			return refuse(err, "mounts: destination", mounts[i].destination, "is not an absolute path");
	for (size_t i = 0; i < config->linux_part.devices.count; i++) {
		if (devices[i].path[0] != '/')
			return refuse(err, "linux.devices: path", devices[i].path, "is not an absolute path");
		if (!devices[i].type || !strchr("cbup", devices[i].type[0]) || strlen(devices[i].type) != 1)
			return refuse(err, "linux.devices: type", devices[i].type ? devices[i].type : "",
				      "is not c, b, u or p");
	}
	if (path && strstr(path, ".."))
		return refuse(err, "linux.cgroupsPath", path, "must not have .. in it");
	return is_absolute(&config->linux_part.masked_paths, err, "linux.maskedPaths") &&
			       is_absolute(&config->linux_part.readonly_paths, err, "linux.readonlyPaths")
		       ? 0 : -EINVAL;
}

/* A key that belongs to none of the container's own namespaces would change the host. */
static int check_sysctl(const struct oci_config *config, struct err *err)
{
	static const char *const of_ipc[] = { "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem",
					      "kernel.shmall", "kernel.shmmax", "kernel.shmmni",
					      "kernel.shm_rmid_forced", NULL };
	const char *key;
	json_t *value;

	json_object_foreach(config->linux_part.sysctl, key, value) {
		uint64_t flag = strv_has(of_ipc, key) || str_has_prefix(key, "fs.mqueue.") ? CLONE_NEWIPC
				: str_has_prefix(key, "net.")				   ? CLONE_NEWNET
				: str_equal(key, "kernel.domainname")
					? CLONE_NEWUTS
													    : 0;

		if (strchr(key, '/') || strstr(key, "..") || !flag)
			return refuse(err, "linux.sysctl", key, "is not in a separate kernel namespace");
		if (!oci_config_namespace(config, flag))
			return refuse(err, "linux.sysctl", key, "needs a namespace of the container's own");
	}
	return 0;
}

static int check_hooks(const struct oci_config *config, struct err *err)
{
	for (size_t kind = 0; kind < OCI_HOOK_COUNT; kind++) {
		const struct oci_hook *hooks = config->hooks[kind].items;

		for (size_t i = 0; i < config->hooks[kind].count; i++)
			if (hooks[i].path[0] != '/')
				return refuse(err, "hooks: path", hooks[i].path, "is not an absolute path");
	}
	return 0;
}

int oci_config_check(const struct oci_config *config, struct err *err)
{
	bool has_uts = oci_config_namespace(config, CLONE_NEWUTS);
	int r = str_has_prefix(config->version, "1.") ? 0 : refuse(err, "ociVersion", config->version, "is not 1.x");

	if (r == 0 && !*config->root_path)
		r = refuse(err, "root.path", "", "must not be empty");
	if (r == 0 && ((config->hostname && *config->hostname) || (config->domainname && *config->domainname)) &&
	    !has_uts)
		r = err_set(err, ERR_USAGE, EINVAL, "config",
			    "config.json: hostname and domainname need a uts namespace");
	if (r == 0 && json_object_get(config->json, "process"))
		r = oci_process_check(&config->process, err);
	if (r == 0)
		r = check_namespaces(config, err);
	if (r == 0)
		r = check_paths(config, err);
	if (r == 0)
		r = check_sysctl(config, err);
	return r == 0 ? check_hooks(config, err) : r;
}
