/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config/config.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "oci/config/check.h"

/*
 * The fields of config.json, from the inside out. What the specification has and this runtime cannot do is
 * FIELD_REFUSED: a limit that is not in force must not look as if it were.
 */

#define FIELDS(type, ...)                                                                      \
	static const struct field type##_fields[] = { __VA_ARGS__ };                           \
	static const struct field_table type##_table = { type##_fields, ARRAY_SIZE(type##_fields), \
							 sizeof(struct type) };
#define AT(member) .offset = offsetof(struct THIS, member)
#define TEXT(json, member) { json, FIELD_TEXT, AT(member) }
#define NEEDED(json, member) { json, FIELD_TEXT, true, AT(member) }
#define BOOL(json, member) { json, FIELD_BOOL, AT(member) }
#define TEXTS(json, member) { json, FIELD_TEXTS, AT(member) }
#define MAP(json, member) { json, FIELD_MAP, AT(member) }
#define NUMBER(json, member, low, high, none) \
	{ json, FIELD_NUMBER, AT(member), .min = (low), .max = (high), .fallback = (none) }
#define OBJECT(json, member, type) { json, FIELD_OBJECT, AT(member), .table = &type##_table }
#define LIST(json, member, type) { json, FIELD_LIST, AT(member), .table = &type##_table }
#define REFUSED(json) { json, FIELD_REFUSED }
#define ID_MAX 0xfffffffeLL

#define THIS oci_user
FIELDS(oci_user, NUMBER("uid", uid, 0, ID_MAX, 0), NUMBER("gid", gid, 0, ID_MAX, 0),
       NUMBER("umask", umask, 0, 0777, FIELD_NONE),
       { "additionalGids", FIELD_NUMBERS, AT(additional_gids), .max = ID_MAX })
#undef THIS

#define THIS oci_capabilities
FIELDS(oci_capabilities, TEXTS("bounding", bounding), TEXTS("effective", effective), TEXTS("permitted", permitted),
       TEXTS("inheritable", inheritable), TEXTS("ambient", ambient))
#undef THIS

#define THIS oci_rlimit
FIELDS(oci_rlimit, NEEDED("type", type), NUMBER("soft", soft, 0, INT64_MAX, 0), NUMBER("hard", hard, 0, INT64_MAX, 0))
#undef THIS


#define THIS oci_process
static const struct field console_fields[] = {
	NUMBER("height", console_height, 0, 0xffff, 0), NUMBER("width", console_width, 0, 0xffff, 0),
};
/* Its members are those of the process: the offset of the object is 0. */
static const struct field_table console_table = { console_fields, ARRAY_SIZE(console_fields), 0 };
FIELDS(oci_process, BOOL("terminal", is_terminal), BOOL("noNewPrivileges", no_new_privileges),
       { "consoleSize", FIELD_OBJECT, .table = &console_table },
       NUMBER("oomScoreAdj", oom_score_adj, -1000, 1000, FIELD_NONE), OBJECT("user", user, oci_user),
       NEEDED("cwd", cwd), TEXT("apparmorProfile", apparmor_profile), TEXT("selinuxLabel", selinux_label),
       TEXTS("env", env), TEXTS("args", args), OBJECT("capabilities", capabilities, oci_capabilities),
       LIST("rlimits", rlimits, oci_rlimit), REFUSED("ioPriority"), REFUSED("scheduler"),
       REFUSED("execCPUAffinity"))
#undef THIS

#define THIS oci_id_map
FIELDS(oci_id_map, NUMBER("containerID", inside, 0, ID_MAX, 0), NUMBER("hostID", outside, 0, ID_MAX, 0),
       NUMBER("size", size, 0, 0xffffffffLL, 0))
#undef THIS

#define THIS oci_mount
FIELDS(oci_mount, NEEDED("destination", destination), TEXT("type", type), TEXT("source", source),
       TEXTS("options", options), LIST("uidMappings", uid_maps, oci_id_map),
       LIST("gidMappings", gid_maps, oci_id_map))
#undef THIS

#define THIS oci_namespace
FIELDS(oci_namespace, NEEDED("type", type), TEXT("path", path))
#undef THIS

#define THIS oci_device
FIELDS(oci_device, TEXT("type", type), NEEDED("path", path), NUMBER("major", major, 0, 0xfff, 0),
       NUMBER("minor", minor, 0, 0xfffff, 0), NUMBER("fileMode", mode, 0, 0177777, 0666),
       NUMBER("uid", uid, 0, ID_MAX, 0), NUMBER("gid", gid, 0, ID_MAX, 0))
static const struct field device_rule_fields[] = {
	BOOL("allow", is_allowed), TEXT("type", type), TEXT("access", access),
	NUMBER("major", major, -1, 0xfff, -1), NUMBER("minor", minor, -1, 0xfffff, -1),
};
static const struct field_table device_rule_table = { device_rule_fields, ARRAY_SIZE(device_rule_fields),
						      sizeof(struct oci_device) };
#undef THIS

#define THIS oci_hook
FIELDS(oci_hook, NEEDED("path", path), TEXTS("args", args), TEXTS("env", env),
       NUMBER("timeout", timeout_s, 1, 86400, FIELD_NONE))
#undef THIS

#define THIS oci_resources
#define BYTES(json, member) NUMBER(json, member, -1, INT64_MAX, FIELD_NONE)
static const struct field memory_fields[] = {
	BYTES("limit", memory_limit), BYTES("reservation", memory_reservation), BYTES("swap", memory_swap),
	NUMBER("swappiness", memory_swappiness, 0, 100, FIELD_NONE), BOOL("disableOOMKiller", memory_no_oom_kill),
};
static const struct field cpu_fields[] = {
	NUMBER("shares", cpu_shares, 0, INT64_MAX, FIELD_NONE), NUMBER("quota", cpu_quota, -1, INT64_MAX, FIELD_NONE),
	NUMBER("period", cpu_period, 0, INT64_MAX, FIELD_NONE), TEXT("cpus", cpu_cpus), TEXT("mems", cpu_mems),
};
static const struct field pids_fields[] = { NUMBER("limit", pids_limit, -1, INT64_MAX, FIELD_NONE) };
static const struct field_table memory_table = { memory_fields, ARRAY_SIZE(memory_fields), 0 };
static const struct field_table cpu_table = { cpu_fields, ARRAY_SIZE(cpu_fields), 0 };
static const struct field_table pids_table = { pids_fields, ARRAY_SIZE(pids_fields), 0 };
FIELDS(oci_resources, { "memory", FIELD_OBJECT, .table = &memory_table }, { "cpu", FIELD_OBJECT, .table = &cpu_table },
       { "pids", FIELD_OBJECT, .table = &pids_table },
       { "devices", FIELD_LIST, AT(devices), .table = &device_rule_table }, MAP("unified", unified),
       REFUSED("blockIO"), REFUSED("hugepageLimits"), REFUSED("network"), REFUSED("rdma"))
#undef THIS

#define THIS oci_seccomp_arg
FIELDS(oci_seccomp_arg, NUMBER("index", index, 0, 5, 0), NUMBER("value", value, 0, INT64_MAX - 1, 0),
       NUMBER("valueTwo", value_two, 0, INT64_MAX - 1, 0), NEEDED("op", op))
#undef THIS

#define THIS oci_seccomp_call
FIELDS(oci_seccomp_call, TEXTS("names", names), NEEDED("action", action),
       NUMBER("errnoRet", errno_code, 0, 4095, FIELD_NONE), LIST("args", args, oci_seccomp_arg))
#undef THIS

#define THIS oci_seccomp
FIELDS(oci_seccomp, NEEDED("defaultAction", default_action),
       NUMBER("defaultErrnoRet", default_errno, 0, 4095, FIELD_NONE), TEXTS("architectures", architectures),
       TEXTS("flags", flags), LIST("syscalls", calls, oci_seccomp_call), REFUSED("listenerPath"))
#undef THIS

#define THIS oci_linux
FIELDS(oci_linux, LIST("namespaces", namespaces, oci_namespace), LIST("uidMappings", uid_maps, oci_id_map),
       LIST("gidMappings", gid_maps, oci_id_map), LIST("devices", devices, oci_device),
       TEXT("cgroupsPath", cgroups_path), TEXT("rootfsPropagation", rootfs_propagation), MAP("sysctl", sysctl),
       OBJECT("resources", resources, oci_resources), OBJECT("seccomp", seccomp, oci_seccomp),
       TEXTS("maskedPaths", masked_paths), TEXTS("readonlyPaths", readonly_paths), TEXT("mountLabel", mount_label),
       REFUSED("intelRdt"), REFUSED("personality"), REFUSED("timeOffsets"), REFUSED("netDevices"))
#undef THIS

#define THIS oci_config
static const struct field root_fields[] = { NEEDED("path", root_path), BOOL("readonly", is_root_readonly) };
static const struct field_table root_table = { root_fields, ARRAY_SIZE(root_fields), 0 };
#define HOOK(json, kind) { json, FIELD_LIST, AT(hooks[kind]), .table = &oci_hook_table }
static const struct field hook_fields[] = {
	HOOK("prestart", OCI_HOOK_PRESTART), HOOK("createRuntime", OCI_HOOK_CREATE_RUNTIME),
	HOOK("createContainer", OCI_HOOK_CREATE_CONTAINER), HOOK("startContainer", OCI_HOOK_START_CONTAINER),
	HOOK("poststart", OCI_HOOK_POSTSTART), HOOK("poststop", OCI_HOOK_POSTSTOP),
};
static const struct field_table hooks_table = { hook_fields, ARRAY_SIZE(hook_fields), 0 };
FIELDS(oci_config, NEEDED("ociVersion", version), { "root", FIELD_OBJECT, true, .table = &root_table },
       TEXT("hostname", hostname), TEXT("domainname", domainname), OBJECT("process", process, oci_process),
       LIST("mounts", mounts, oci_mount), { "hooks", FIELD_OBJECT, .table = &hooks_table },
       MAP("annotations", annotations), OBJECT("linux", linux_part, oci_linux), REFUSED("vm"))
#undef THIS

/* jansson takes no number of 2^63 and more, but a limit without end is written as 2^64 - 1. Those become 2^63 - 1. */
static void bound_numbers(char *text, size_t size)
{
	static const char most[] = "9223372036854775807";
	bool is_text = false;

	for (size_t i = 0; i < size; i++) {
		size_t digits = 0;

		if (text[i] == '"')
			is_text = !is_text;
		else if (is_text && text[i] == '\\')
			i++;
		while (!is_text && i + digits < size && isdigit((unsigned char)text[i + digits]))
			digits++;
		if (digits == 20 || (digits == 19 && memcmp(text + i, most, 19) > 0)) {
			memset(text + i, ' ', digits);
			memcpy(text + i, most, 19);
		}
		i += digits ? digits - 1 : 0;
	}
}

static int read_json(const char *text, size_t size, json_t **ret_json, struct err *err)
{
	cleanup_free char *copy = malloc(size + 1);
	json_error_t why;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, size);
	bound_numbers(copy, size);
	*ret_json = json_loadb(copy, size, JSON_REJECT_DUPLICATES, &why);
	if (!*ret_json)
		return err_set(err, ERR_USAGE, EINVAL, "config", "line %d, column %d: %s", why.line, why.column,
			       why.text);
	if (!json_is_object(*ret_json))
		return err_set(err, ERR_USAGE, EINVAL, "config", "there must be one object of JSON");
	return 0;
}

int oci_config_parse(struct oci_config *ret_config, const char *text, size_t size, struct err *err)
{
	int r;

	memset(ret_config, 0, sizeof *ret_config);
	r = read_json(text, size, &ret_config->json, err);
	if (r == 0)
		r = field_read(&oci_config_table, ret_config->json, ret_config, "", err);
	return r == 0 ? oci_config_check(ret_config, err) : r;
}

int oci_process_parse(struct oci_process *ret_process, json_t **ret_json, const char *text, size_t size,
		      struct err *err)
{
	int r;

	memset(ret_process, 0, sizeof *ret_process);
	*ret_json = NULL;
	r = read_json(text, size, ret_json, err);
	if (r == 0)
		r = field_read(&oci_process_table, *ret_json, ret_process, "process", err);
	return r == 0 ? oci_process_check(ret_process, err) : r;
}

int oci_resources_parse(struct oci_resources *ret_resources, json_t **ret_json, const char *text, size_t size,
			struct err *err)
{
	int r;

	memset(ret_resources, 0, sizeof *ret_resources);
	*ret_json = NULL;
	r = read_json(text, size, ret_json, err);
	return r == 0 ? field_read(&oci_resources_table, *ret_json, ret_resources, "resources", err) : r;
}

void oci_config_done(struct oci_config *config)
{
	json_t *json = config->json;

	field_done(&oci_config_table, config);
	json_decref(json);
}

void oci_process_done(struct oci_process *process, json_t **json)
{
	field_done(&oci_process_table, process);
	json_decref(*json);
	*json = NULL;
}

void oci_resources_done(struct oci_resources *resources, json_t **json)
{
	field_done(&oci_resources_table, resources);
	json_decref(*json);
	*json = NULL;
}
