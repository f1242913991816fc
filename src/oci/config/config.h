/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * config.json of a bundle (OCI runtime specification 1.3, config.md and config-linux.md): read by one table of
 * fields, then judged as a whole. It opens no file and knows nothing of the machine. Used by atoll-oci.
 */

#include <stdbool.h>
#include <stdint.h>

#include "oci/config/field.h"

#define OCI_VERSION "1.3.0"

struct oci_user {
	int64_t uid, gid, umask; /* umask FIELD_NONE: not said */
	json_t *additional_gids;
};

struct oci_capabilities {
	struct field_texts bounding, effective, permitted, inheritable, ambient;
};

struct oci_rlimit {
	const char *type;
	int64_t soft, hard;
};

struct oci_process {
	bool is_terminal, no_new_privileges;
	int64_t console_height, console_width, oom_score_adj;
	struct oci_user user;
	const char *cwd, *apparmor_profile, *selinux_label;
	struct field_texts env, args;
	struct oci_capabilities capabilities;
	struct field_list rlimits; /* of struct oci_rlimit */
};

struct oci_id_map {
	int64_t inside, outside, size;
};

struct oci_mount {
	const char *destination, *type, *source;
	struct field_texts options;
	struct field_list uid_maps, gid_maps; /* of struct oci_id_map */
};

struct oci_namespace {
	const char *type, *path;
};

struct oci_device {
	const char *type, *path, *access; /* access and allow: of a rule of the control group */
	int64_t major, minor, mode, uid, gid;
	bool is_allowed;
};

struct oci_hook {
	const char *path;
	struct field_texts args, env;
	int64_t timeout_s;
};

enum oci_hook_kind {
	OCI_HOOK_PRESTART, OCI_HOOK_CREATE_RUNTIME, OCI_HOOK_CREATE_CONTAINER, OCI_HOOK_START_CONTAINER,
	OCI_HOOK_POSTSTART, OCI_HOOK_POSTSTOP, OCI_HOOK_COUNT,
};

struct oci_resources {
	int64_t memory_limit, memory_reservation, memory_swap, memory_swappiness;
	bool memory_no_oom_kill;
	int64_t cpu_shares, cpu_quota, cpu_period;
	const char *cpu_cpus, *cpu_mems;
	int64_t pids_limit;
	struct field_list devices; /* of struct oci_device */
	json_t *unified;
};

struct oci_seccomp_arg {
	int64_t index, value, value_two;
	const char *op;
};

struct oci_seccomp_call {
	struct field_texts names;
	const char *action;
	int64_t errno_code;
	struct field_list args; /* of struct oci_seccomp_arg */
};

struct oci_seccomp {
	const char *default_action;
	int64_t default_errno;
	struct field_texts architectures, flags;
	struct field_list calls; /* of struct oci_seccomp_call */
};

struct oci_linux {
	struct field_list namespaces, uid_maps, gid_maps, devices;
	const char *cgroups_path, *rootfs_propagation, *mount_label;
	json_t *sysctl;
	struct oci_resources resources;
	struct oci_seccomp seccomp;
	struct field_texts masked_paths, readonly_paths;
};

struct oci_config {
	json_t *json; /* owned: what all texts are borrowed from */
	const char *version, *root_path, *hostname, *domainname;
	bool is_root_readonly;
	struct oci_process process;
	struct field_list mounts; /* of struct oci_mount */
	struct field_list hooks[OCI_HOOK_COUNT]; /* of struct oci_hook */
	json_t *annotations;
	struct oci_linux linux_part;
};

/* "prestart", "createRuntime", …; "pid", "network", … with the CLONE_NEW* flag of each. */
extern const char *const oci_hook_names[OCI_HOOK_COUNT];
extern const struct oci_namespace_kind {
	const char *name, *file; /* file: below /proc/PID/ns */
	uint64_t flag;
} oci_namespace_kinds[];
enum { OCI_NAMESPACE_COUNT = 8 };

/* Reads the text of a config.json, and judges it. -EINVAL with *err says the first wrong field; oci_config_done(). */
int oci_config_parse(struct oci_config *ret_config, const char *text, size_t size, struct err *err) MUST_USE;

/* The same of a process alone (exec --process); *ret_json is what it borrows from; both as below. */
int oci_process_parse(struct oci_process *ret_process, json_t **ret_json, const char *text, size_t size,
		      struct err *err) MUST_USE;

/* What `update --resources` reads, likewise. */
int oci_resources_parse(struct oci_resources *ret_resources, json_t **ret_json, const char *text, size_t size,
			struct err *err) MUST_USE;

/* Free what the three have filled, also after an error. */
void oci_config_done(struct oci_config *config);
void oci_process_done(struct oci_process *process, json_t **json);
void oci_resources_done(struct oci_resources *resources, json_t **json);

/* The namespace of this CLONE_NEW* flag that the bundle asks for, or NULL. */
const struct oci_namespace *oci_config_namespace(const struct oci_config *config, uint64_t flag);

/* The number of a capability ("CAP_CHOWN") or a limit ("RLIMIT_CPU"), or -1; a name, or NULL behind the last. */
int oci_capability_find(const char *name);
const char *oci_capability_name(int capability);
int oci_rlimit_find(const char *name);
