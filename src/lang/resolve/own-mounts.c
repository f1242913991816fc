/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "lang/resolve/chain.h"
#include "policy/decide.h"

/*
 * With mounts of their own (exec.namespaces: mounts), programs choose what a file is called, what lies at a path, and
 * whether code may run from it. So whatever is judged by a path when a file is opened, or rests on such a flag, does
 * not hold there, and stands here.
 */

/* What does not hold, and which rule says it. NULL: all of the policy does. */
static const char *find_unfit(const struct policy *policy, struct rule_origin *ret_origin)
{
	const struct policy_files *files = &policy->files;

	*ret_origin = (struct rule_origin){ "", "", 0 };
	if (files->ask_count) {
		*ret_origin = files->asks[0].origin;
		return "files.ask: a person is asked about a path";
	}
	for (size_t i = 0; i < files->count; i++) {
		const struct file_rule *rule = &files->rules[i];

		*ret_origin = rule->origin;
		if (rule->flags & FILE_GLOB && rule->flags & FILE_GATED)
			return "files.mask with a pattern: its names are judged when they are opened";
		if (rule->class == FILE_WRITE && rule->flags & FILE_GUARDED)
			return "files.write with protect: names in it are judged when they are written";
	}
	*ret_origin = (struct rule_origin){ "", "", 0 };
	if (policy->audit.files != AUDIT_OFF)
		return "audit.files: the log would have the names that the program chose";
	if (policy->rates[RATE_FILE_READ].amount || policy->rates[RATE_FILE_WRITE].amount)
		return "time.rate of files: what is counted is judged by its path";
	if (!policy->exec.new_binaries)
		return "exec.new_binaries: false: a mount of its own can be executed from";
	*ret_origin = policy->exec.default_origin;
	return policy->exec.default_verdict != VERDICT_ALLOW ? "exec.default: what is listed by path can be covered"
							     : NULL;
}

void check_own_mounts(struct lang *lang, const struct policy *policy)
{
	const struct draft_scalar *scalar = &lang->draft.scalars[SCALAR_NAMESPACES];
	struct rule_origin origin;
	const char *unfit = policy->exec.namespaces == EXEC_NAMESPACES_MOUNTS ? find_unfit(policy, &origin) : NULL;

	if (!unfit)
		return;
	diag_add(&lang->diags, scalar->place,
		 "\"namespaces: mounts\" cannot hold %s%s%s; drop that, or write \"namespaces: true\"", unfit,
		 origin.file && origin.file[0] ? " " : "",
		 origin.file && origin.file[0] ?
			 arena_format(&lang->arena, "(%s, %s:%u)", origin.id, origin.file, origin.line) : "");
}
