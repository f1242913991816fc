/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/names.h"
#include "base/str.h"
#include "policy/decide.h"
#include "policy/policy.h"

const char *const verdict_names[VERDICT_COUNT] = {
	[VERDICT_DENY] = "deny",	 [VERDICT_ASK] = "ask",	    [VERDICT_STAGE] = "stage",
	[VERDICT_SIMULATE] = "simulate", [VERDICT_ALLOW] = "allow",
};

const char *const trust_level_names[TRUST_COUNT] = {
	[TRUST_NONE] = "none", [TRUST_LOW] = "low",   [TRUST_MEDIUM] = "medium",
	[TRUST_HIGH] = "high", [TRUST_FULL] = "full",
};

const char *const trust_on_fall_names[TRUST_FALL_COUNT] = {
	[TRUST_FALL_NOTE] = "note", [TRUST_FALL_ASK] = "ask", [TRUST_FALL_TIGHTEN] = "tighten",
	[TRUST_FALL_FREEZE] = "freeze",
};

bool trust_agent_is_valid(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t length = strlen(name);

	return length && length <= TRUST_AGENT_MAX && *name != '.' && *name != '-' && strspn(name, letters) == length;
}

const char *const file_class_names[FILE_CLASS_COUNT] = {
	[FILE_HIDDEN] = "hidden",   [FILE_MASK] = "mask",   [FILE_READ] = "read",
	[FILE_SCRATCH] = "scratch", [FILE_STAGE] = "stage", [FILE_WRITE] = "write",
};

const char *const stage_auto_names[STAGE_AUTO_COUNT] = { [STAGE_AUTO_OFF] = "off", [STAGE_AUTO_EXEC] = "exec" };

const char *const verify_action_names[VERIFY_ACTION_COUNT] = { "off", "note", "dry-run", "ask", "deny" };

const char *const verify_row_names[VERIFY_ROW_COUNT] = {
	[VERIFY_LOW] = "low",	      [VERIFY_MEDIUM] = "medium",   [VERIFY_HIGH] = "high",
	[VERIFY_CRITICAL] = "critical", [VERIFY_UNKNOWN] = "unknown", [VERIFY_CONTAINED] = "contained",
};

const char *const verify_sureness_names[VERIFY_SURENESS_COUNT] = { "possible", "likely", "certain" };

bool policy_verifies(const struct policy *policy)
{
	for (size_t row = 0; row < VERIFY_CONTAINED; row++)
		for (size_t sureness = 0; sureness < VERIFY_SURENESS_COUNT; sureness++)
			if (policy->verify.of[row][sureness] != VERIFY_OFF)
				return true;
	return false;
}

const char *const monitor_reaction_names[MONITOR_REACTION_COUNT] = {
	[MONITOR_NOTE] = "note",
	[MONITOR_TIGHTEN] = "tighten",
	[MONITOR_FREEZE] = "freeze",
};

const char *const stage_backend_names[STAGE_BACKEND_COUNT] = {
	[STAGE_BY_OVERLAY] = "overlay",
	[STAGE_BY_AUTO] = "auto",
	[STAGE_BY_FUSE] = "fuse",
};

const char *const exec_namespaces_names[EXEC_NAMESPACES_COUNT] = { "false", "true", "mounts" };

const char *const audit_depth_names[AUDIT_DEPTH_COUNT] = {
	[AUDIT_OFF] = "off",
	[AUDIT_WRITES] = "writes",
	[AUDIT_ALL] = "all",
};

const char *const data_action_names[DATA_ACTION_COUNT] = {
	[DATA_OFF] = "off", [DATA_FLAG] = "flag", [DATA_MASK] = "mask", [DATA_DENY] = "deny",
};

const char *const net_limit_names[NET_LIMIT_COUNT] = {
	[NET_LIMIT_RATE] = "rate", [NET_LIMIT_TOTAL] = "total", [NET_LIMIT_IN] = "in", [NET_LIMIT_OUT] = "out",
	[NET_LIMIT_REQUESTS] = "requests", [NET_LIMIT_NEW_CONNECTIONS] = "new_connections",
	[NET_LIMIT_CONNECTIONS] = "connections", [NET_LIMIT_HOSTS] = "hosts", [NET_LIMIT_LABELS] = "labels",
};

const char *const rate_kind_names[RATE_KIND_COUNT] = {
	[RATE_EXEC] = "exec", [RATE_FILE_READ] = "file.read", [RATE_FILE_WRITE] = "file.write",
};

const bool net_limit_has_period[NET_LIMIT_COUNT] = {
	[NET_LIMIT_RATE] = true, [NET_LIMIT_REQUESTS] = true, [NET_LIMIT_NEW_CONNECTIONS] = true,
};

const bool net_limit_is_bytes[NET_LIMIT_COUNT] = {
	[NET_LIMIT_RATE] = true, [NET_LIMIT_TOTAL] = true, [NET_LIMIT_IN] = true, [NET_LIMIT_OUT] = true,
	[NET_LIMIT_LABELS] = true,
};

const char *const wall_names[WALL_COUNT] = {
	[WALL_USERNS] = "userns",
	[WALL_MOUNTS] = "mounts",
	[WALL_PIDNS] = "pidns",
	[WALL_NETNS] = "netns",
	[WALL_IPC] = "ipc",
	[WALL_UTS] = "uts",
	[WALL_CGROUPNS] = "cgroupns",
	[WALL_LANDLOCK] = "landlock",
	[WALL_LANDLOCK_SCOPE] = "landlock.scope",
	[WALL_SECCOMP] = "seccomp",
	[WALL_CGROUP_MEMORY] = "cgroup.memory",
	[WALL_CGROUP_PIDS] = "cgroup.pids",
	[WALL_CGROUP_CPU] = "cgroup.cpu",
	[WALL_MASK_LATE] = "mask.late",
	[WALL_SPECULATION] = "speculation",
	[WALL_CORE_SCHED] = "core-sched",
	[WALL_DISK] = "disk",
};

const char *const inject_kind_names[INJECT_KIND_COUNT] = {
	[INJECT_NONE] = "",	      [INJECT_RAW] = "raw",	[INJECT_BEARER] = "bearer",
	[INJECT_BASIC] = "basic",     [INJECT_QUERY] = "query", [INJECT_AWS] = "aws",
};

const char *const verify_when_names[VERIFY_WHEN_COUNT] = { [VERIFY_ASKED] = "asked", [VERIFY_ALL] = "all" };

const char *const narrow_names[NARROW_COUNT] = {
	[NARROW_OFF] = "off", [NARROW_ASK] = "ask", [NARROW_AUTO] = "auto", [NARROW_TRY] = "try",
};

const char *const breaker_action_names[BREAKER_ACTION_COUNT] = { [BREAKER_FREEZE] = "freeze", [BREAKER_END] = "end" };

const char *const action_kind_names[ACTION_KIND_COUNT] = {
	[ACTION_FILE_READ] = "file.read",     [ACTION_FILE_WRITE] = "file.write",
	[ACTION_FILE_APPLY] = "file.apply",   [ACTION_EXEC] = "exec",
	[ACTION_NET_CONNECT] = "net.connect", [ACTION_NET_LISTEN] = "net.listen",
	[ACTION_NET_DNS] = "net.dns",	      [ACTION_HTTP_REQUEST] = "http.request",
	[ACTION_DEVICE] = "device",	      [ACTION_ENV] = "env",
	[ACTION_SYSCALL] = "syscall",
	[ACTION_ALERT] = "alert",
};

int trust_level_set_unknown(const char *stage, const char *text, struct err *err)
{
	const char *nearest = names_nearest(trust_level_names, TRUST_COUNT, text);
	char shown[ERR_QUOTE_SIZE];

	err_set(err, ERR_USAGE, EINVAL, stage, "%s is not a trust level", err_quote(shown, text));
	err_hint(err, "%s%s%sthe levels are none, low, medium, high and full", nearest ? "did you mean " : "",
		 nearest ? nearest : "", nearest ? "? " : "");
	return -EINVAL;
}

static size_t add_name(const char *names[POLICY_SECRETS_MAX], size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(names[i], name))
			return count;
	if (count < POLICY_SECRETS_MAX)
		names[count++] = name;
	return count;
}

size_t policy_secrets(const struct policy *policy, const char *names[POLICY_SECRETS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < policy->network.count; i++)
		if (policy->network.rules[i].inject.kind != INJECT_NONE)
			count = add_name(names, count, policy->network.rules[i].inject.secret);
	for (const char *const *canary = policy->data.canaries; canary && *canary; canary++)
		count = add_name(names, count, *canary);
	return count;
}
