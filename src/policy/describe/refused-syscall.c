/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/describe/refused-syscall.h"

#include "base/names.h"
#include "base/str.h"

/* The kernel keeps 15 characters of a name; what an agent is told keeps 160 of a hint. */
static const struct {
	const char *program, *hint;
} own_sandboxes[] = {
	{ "bwrap", "bwrap: a policy with exec: {namespaces: mounts}; or switch it off: codex: sandbox_mode = "
		   "\"danger-full-access\"; Claude Code: \"sandbox\": {\"enabled\": false}" },
	{ "codex", "sandbox_mode = \"danger-full-access\", which the policy codex sets inside; or codex --sandbox "
		   "danger-full-access" },
	{ "codex-linux-san", "sandbox_mode = \"danger-full-access\", which the policy codex sets inside; or codex "
			     "--sandbox danger-full-access" },
	{ "chromium", "chromium --no-sandbox, or a policy with exec: {namespaces: true}" },
	{ "chrome", "chrome --no-sandbox, or a policy with exec: {namespaces: true}" },
	{ "chrome-headless", "--no-sandbox, or a policy with exec: {namespaces: true}" },
	{ "headless_shell", "--no-sandbox, or a policy with exec: {namespaces: true}" },
	{ "electron", "electron --no-sandbox, or a policy with exec: {namespaces: true}" },
	{ "flatpak", "run the program itself, or a policy with exec: {namespaces: mounts}" },
	{ "snap-confine", "run the program itself: snap needs mounts of its own" },
	{ "podman", "containers cannot be run here: run podman on the host" },
	{ "docker", "containers cannot be run here: run docker on the host" },
	{ "dockerd", "containers cannot be run here: run docker on the host" },
	{ "runc", "containers cannot be run here: run them on the host" },
	{ "crun", "containers cannot be run here: run them on the host" },
	{ "unshare", "run the command itself: atoll is its sandbox" },
};

static bool makes_sandboxes(const char *call)
{
	static const char *const calls[] = { "clone", "unshare", "setns", "mount", "umount2", "pivot_root", "chroot" };

	return names_find(calls, ARRAY_SIZE(calls), call) >= 0;
}

static const char *find_hint(const struct policy *policy, const struct action *action)
{
	if (policy->exec.namespaces == EXEC_NAMESPACES_MOUNTS)
		return "bwrap's and flatpak's mounts work; those of container engines do not: run these on the host";
	for (size_t i = 0; action->argv && action->argv[0] && i < ARRAY_SIZE(own_sandboxes); i++)
		if (str_equal(own_sandboxes[i].program, action->argv[0]))
			return own_sandboxes[i].hint;
	return "switch its own sandbox off (often --no-sandbox), for atoll is one; or exec: {namespaces: true} for "
	       "browsers, {namespaces: mounts} for bwrap";
}

struct decision policy_refuse_syscall(const struct policy *policy, const struct action *action)
{
	static const struct rule_origin own = { "builtin.namespaces", "", 0 };
	static const char *const reasons[EXEC_NAMESPACES_COUNT] = {
		[EXEC_NAMESPACES_NONE] = "a sandbox of a program's own cannot be made inside this one",
		[EXEC_NAMESPACES_PLAIN] = "programs may make namespaces here, and neither mounts nor roots",
		[EXEC_NAMESPACES_MOUNTS] =
			"programs may bind what they see here, and mount tmpfs, proc, devpts and mqueue",
	};

	if (!makes_sandboxes(action->subject))
		return policy_decide(policy, action);
	return (struct decision){ .verdict = VERDICT_DENY, .rule = own, .hint = find_hint(policy, action),
				  .reason = reasons[policy->exec.namespaces] };
}
