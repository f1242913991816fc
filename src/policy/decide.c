/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decide.h"

#include <string.h>

#include "base/str.h"
#include "policy/certificate-files.h"
#include "policy/decide-exec.h"
#include "policy/decide-net.h"
#include "policy/git-data.h"
#include "policy/glob.h"
#include "policy/order.h"

/*
 * The exact file rules are sorted, and each knows the nearest rule above it: the rule before the place
 * where the path would stand shares its nearest ancestor rule with the path, so one binary search and a
 * walk upwards find every exact rule that covers the path. Globs are few (the compiler bounds them)
 * and are tried one by one.
 */

/* What the sandbox itself provides, whatever the rules say; the plan of the jail makes the same. */
static const struct {
	const char *path;
	bool can_write;
} jail_paths[] = {
	{ "/dev", true },
	{ "/proc", true },
	{ "/run/atoll/limits.md", false },
	{ "/run/atoll/denials.jsonl", false },
	{ "/run/atoll/ask.sock", false },
	{ "/run/atoll/bin", false },
	{ "/etc/passwd", false },
	{ "/etc/group", false },
	{ "/etc/hosts", false },
	{ "/etc/hostname", false },
	{ "/etc/resolv.conf", false },
};

/* Directories with nothing in them, where the kernel lists devices. */
static const char *const jail_lists[] = { "/sys/block", "/sys/class", "/sys/dev/block", "/sys/dev/char" };

static const char files_default[] = "files.default";

static const char *const jail_devices[] = {
	"null", "zero", "full", "random", "urandom", "tty",    "ptmx",
	"pts",	"shm",	"mqueue", "fd",	"stdin",  "stdout",  "stderr",
};

static struct decision builtin(enum verdict verdict, const char *id, const char *reason, const char *hint)
{
	return (struct decision){ verdict, { id, "", 0 }, reason, hint };
}

static struct decision by_rule(enum verdict verdict, const struct rule_origin *rule, const char *reason,
			       const char *hint)
{
	return (struct decision){ verdict, *rule, reason, hint };
}

static bool path_is_valid(const char *path)
{
	return path && *path == '/' && strlen(path) <= 4096 && path_is_normal(path);
}

static bool is_excepted(const char *const *except, const char *path)
{
	for (; except && *except; except++)
		if (glob_is_pattern(*except) ? glob_match_below(*except, path) >= 0
					     : path_is_below(path, *except))
			return true;
	return false;
}

static size_t nearest_exact(const struct policy *policy, const char *path)
{
	uint32_t at = (uint32_t)path_count_up_to(policy->files.rules, policy->files.exact_count, path) - 1;

	while (at != UINT32_MAX && !path_is_below(path, policy->files.rules[at].pattern))
		at = policy->files.parents[at];
	return at == UINT32_MAX ? SIZE_MAX : at;
}

struct best {
	size_t rule;
	int depth;
};

/* The linear part: globs, and exact rules of policies that were not sorted. True when a mask decides. */
static int match_depth(const struct file_rule *rule, const char *path, const struct glob_endings *endings)
{
	if (!(rule->flags & FILE_GLOB))
		return path_is_below(path, rule->pattern) ? path_depth(rule->pattern) : -1;
	if (!glob_may_match_below(rule->ending, endings))
		return -1;
	/* A mask, which wins however deep it lies. */
	if (rule->flags & FILE_GATED)
		return glob_matches_caseless(rule->pattern, path) ? 0 : -1;
	return glob_match_below(rule->pattern, path);
}

static bool classify_rest(const struct policy *policy, const char *path, struct best *best)
{
	struct glob_endings endings;

	if (policy->files.exact_count < policy->files.count)
		glob_endings_of(path, &endings);
	for (size_t i = policy->files.exact_count; i < policy->files.count; i++) {
		const struct file_rule *rule = &policy->files.rules[i];
		int depth = match_depth(rule, path, &endings);

		if (depth < 0 || is_excepted(rule->except, path))
			continue;
		if (rule->class == FILE_MASK) {
			best->rule = i;
			return true;
		}
		if (depth > best->depth || (depth == best->depth && best->rule >= policy->files.exact_count &&
					    rule->class < policy->files.rules[best->rule].class))
			*best = (struct best){ i, depth };
	}
	return false;
}

enum file_class policy_classify(const struct policy *policy, const char *path, size_t *ret_rule)
{
	struct best best = { SIZE_MAX, -1 };

	for (size_t i = nearest_exact(policy, path); i != SIZE_MAX;
	     i = policy->files.parents[i] == UINT32_MAX ? SIZE_MAX : policy->files.parents[i]) {
		const struct file_rule *rule = &policy->files.rules[i];

		if (is_excepted(rule->except, path))
			continue;
		if (rule->class == FILE_MASK) {
			*ret_rule = i;
			return FILE_MASK;
		}
		if (best.rule == SIZE_MAX)
			best = (struct best){ i, path_depth(rule->pattern) };
	}
	if (classify_rest(policy, path, &best)) {
		*ret_rule = best.rule;
		return FILE_MASK;
	}
	*ret_rule = best.rule;
	return best.rule == SIZE_MAX ? FILE_HIDDEN : policy->files.rules[best.rule].class;
}

/* How many components of path the rule names; -1: it does not cover it. */
static int depth_of(const struct path_rule *rule, const char *path)
{
	if (rule->flags & PATH_FILE && !(rule->flags & FILE_GLOB ? glob_match(rule->pattern, path)
								 : str_equal(rule->pattern, path)))
		return -1;
	if (rule->flags & FILE_GLOB)
		return glob_match_below(rule->pattern, path);
	return path_is_below(path, rule->pattern) ? path_depth(rule->pattern) : -1;
}

/* The offset of the slash behind the first components of an absolute path, or of its end. */
static size_t end_of_components(const char *path, int count)
{
	const char *at = path;

	for (; count > 0 && *at; count--)
		at += 1 + strcspn(at + 1, "/");
	return (size_t)(at - path);
}

/* As seen from each directory above that the rule names: `.git/hooks/.git/HEAD` is data of the inner one alone. */
static bool is_git_data(const struct path_rule *rule, const char *path, bool in_place)
{
	char above[4096 + 1];
	int depth;

	if (str_copy(above, sizeof above, path) < 0)
		return false;
	while ((depth = depth_of(rule, above)) > 0) {
		const char *inside = path + end_of_components(path, depth);

		if (!git_is_data_by_name(*inside ? inside + 1 : inside, in_place))
			return false;
		above[end_of_components(path, depth - 1)] = 0;
	}
	return true;
}

/* without: as of policy_find_protect(); who leaves builds aside asks about trees that are written in place. */
static const struct path_rule *find_path_rule(const struct path_rule *rules, size_t count, const char *path,
					      uint32_t without)
{
	struct glob_endings endings;

	if (count)
		glob_endings_of(path, &endings);
	for (size_t i = 0; i < count; i++) {
		if (rules[i].flags & without || !glob_may_match_below(rules[i].ending, &endings))
			continue;
		if (depth_of(&rules[i], path) >= 0 && !is_excepted(rules[i].except, path) &&
		    !(rules[i].flags & PATH_GIT && is_git_data(&rules[i], path, without & PATH_BUILD)))
			return &rules[i];
	}
	return NULL;
}

const struct path_rule *policy_find_protect(const struct policy *policy, const char *path, uint32_t without)
{
	size_t count;
	const struct path_rule *rules = policy_protects(policy, &count);

	return find_path_rule(rules, count, path, without);
}

static struct decision decide_hidden(const struct policy *policy, const struct action *action)
{
	for (size_t i = 0; i < ARRAY_SIZE(jail_paths); i++) {
		if (!path_is_below(action->subject, jail_paths[i].path) || action->kind == ACTION_FILE_APPLY)
			continue;
		if (action->kind == ACTION_FILE_READ || jail_paths[i].can_write)
			return builtin(VERDICT_ALLOW, "builtin.jail", "the sandbox provides its own", "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(jail_lists) && action->kind == ACTION_FILE_READ; i++)
		if (str_equal(action->subject, jail_lists[i]))
			return builtin(VERDICT_ALLOW, "builtin.jail", "the sandbox provides its own, empty", "");
	for (size_t i = 0; i < CERTIFICATE_FILE_COUNT && action->kind == ACTION_FILE_READ; i++)
		if (policy_intercepts_any(policy) && str_equal(action->subject, certificate_file_paths[i]))
			return builtin(VERDICT_ALLOW, "builtin.trust", "the certificate of the network gate", "");
	return builtin(VERDICT_DENY, files_default, "no rule lists this path, so it does not exist inside",
		       "list it under files.read or files.write of your policy");
}

static struct decision decide_apply(const struct policy *policy, const struct action *action,
				    const struct file_rule *rule)
{
	const struct path_rule *protect = policy_find_protect(policy, action->subject, 0);

	if (rule->class != FILE_STAGE && rule->class != FILE_WRITE)
		return by_rule(VERDICT_DENY, &rule->origin, "nothing from this path reaches the host", "");
	if (protect)
		return by_rule(VERDICT_ASK, &protect->origin,
			       protect->when ? protect->when
					     : "a protected path reaches the host only by an explicit yes",
			       "review the change, then name the path to apply");
	return by_rule(VERDICT_ALLOW, &rule->origin, "changes of this path may reach the host", "");
}

/* In place nobody looks at a change before it counts, so what others run is asked about before it is made. */
static const struct path_rule *find_guard(const struct policy *policy, const struct action *action,
					  const struct file_rule *rule)
{
	if (action->kind != ACTION_FILE_WRITE || !(rule->flags & FILE_GUARDED))
		return NULL;
	return policy_find_protect(policy, action->subject, PATH_BUILD | PATH_PACKAGE);
}

/*
 * What is put into the directory that every policy masks, and that directory, which lists it: /run/atoll of the host
 * holds atoll's own.
 */
static bool is_for_the_agent(const struct action *action)
{
	static const char directory[] = "/run/atoll";

	if (action->kind != ACTION_FILE_READ || !path_is_below(action->subject, directory))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(jail_paths); i++)
		if (path_is_below(jail_paths[i].path, directory) && path_is_below(action->subject, jail_paths[i].path))
			return true;
	for (size_t i = 0; i < CERTIFICATE_FILE_COUNT; i++)
		if (str_equal(action->subject, certificate_file_paths[i]))
			return true;
	return str_equal(action->subject, directory);
}

/* Whether the project's own file masks it, in whatever words, which no option and no policy of a person shows. */
static bool is_masked_by_project(const struct policy *policy, const char *path)
{
	struct glob_endings endings;

	glob_endings_of(path, &endings);
	for (size_t i = 0; i < policy->files.count; i++) {
		const struct file_rule *rule = &policy->files.rules[i];

		if (rule->class == FILE_MASK && rule->origin.line && !is_excepted(rule->except, path) &&
		    str_equal(path_basename(rule->origin.file), ".atoll.yaml") &&
		    match_depth(rule, path, &endings) >= 0)
			return true;
	}
	return false;
}

/* A way that works for this path. */
static const char *masked_hint(const struct policy *policy, const struct file_rule *rule, const char *path)
{
	if (str_equal(rule->origin.id, "builtin.state"))
		return "atoll's own files are out of reach for every policy";
	if (is_masked_by_project(policy, path))
		return "the project's own .atoll.yaml masks it, and stands above every other policy";
	/* The rest of the home, for one, is not there without its mask either. */
	if (rule->flags & FILE_GLOB || !policy->project || !*policy->project ||
	    !path_is_below(rule->pattern, policy->project))
		return "only a policy of a person's own shows it: `drop:` with the path or pattern that the rule "
		       "masks, and this path under `files: {read: …}`";
	return str_equal(path, rule->pattern) ?
		       "a person shows it for one run with `atoll run --unmask PATH`, or by a policy: `drop: [PATH]`" :
		       "its directory is masked: a person shows that for one run with `atoll run --unmask DIRECTORY`";
}

static struct decision decide_masked(const struct policy *policy, const struct file_rule *rule, const char *path)
{
	struct decision decision = by_rule(VERDICT_DENY, &rule->origin,
					   "the path is masked: it looks absent or empty inside",
					   masked_hint(policy, rule, path));

	decision.is_masked = true;
	return decision;
}

static struct decision decide_file(const struct policy *policy, const struct action *action)
{
	static const char *const reasons[FILE_CLASS_COUNT] = {
		[FILE_READ] = "the path is readable",
		[FILE_STAGE] = "writes are staged and reach the host only by apply",
		[FILE_WRITE] = "the path is written straight to the host",
	};
	const struct path_rule *ask, *guard;
	const struct file_rule *rule;
	enum file_class class;
	size_t index;

	if (!path_is_valid(action->subject))
		return builtin(VERDICT_DENY, "builtin.subject", "the path is not absolute and normalised",
			       "give the real path");
	class = policy_classify(policy, action->subject, &index);
	rule = index == SIZE_MAX ? NULL : &policy->files.rules[index];
	if (class == FILE_MASK && is_for_the_agent(action))
		return builtin(VERDICT_ALLOW, "builtin.jail", "the sandbox provides its own", "");
	if (class == FILE_MASK)
		return decide_masked(policy, rule, action->subject);
	ask = find_path_rule(policy->files.asks, policy->files.ask_count, action->subject, 0);
	if (ask)
		return by_rule(VERDICT_ASK, &ask->origin, "the policy asks a person for this path", "");
	if (!rule || class == FILE_HIDDEN)
		return decide_hidden(policy, action);
	if (action->kind == ACTION_FILE_APPLY)
		return decide_apply(policy, action, rule);
	/* Neither is the host's file seen nor does it change: this is no permission to do either. */
	if (class == FILE_SCRATCH)
		return by_rule(VERDICT_SIMULATE, &rule->origin,
			       "the sandbox has a private, empty place here; what is written is thrown away "
			       "at its end",
			       "");
	if (action->kind == ACTION_FILE_WRITE && class == FILE_READ)
		return by_rule(
			VERDICT_DENY, &rule->origin, "the path is read-only",
			"write inside the project or /tmp, or list it under files.write of your policy");
	guard = find_guard(policy, action, rule);
	if (guard)
		return by_rule(VERDICT_ASK, &guard->origin,
			       guard->when ? guard->when : "a protected path is written only by an explicit yes", "");
	if (action->kind == ACTION_FILE_WRITE && class == FILE_STAGE)
		return by_rule(VERDICT_STAGE, &rule->origin, reasons[class], "");
	return by_rule(VERDICT_ALLOW, &rule->origin, reasons[class], "");
}

static struct decision exec_by_default(const struct policy *policy)
{
	static const char *const reasons[VERDICT_COUNT] = {
		[VERDICT_DENY] = "no rule allows this program",
		[VERDICT_ASK] = "a person is asked for programs that no rule allows",
		[VERDICT_ALLOW] = "no rule denies this program",
	};
	const char *reason = reasons[policy->exec.default_verdict];

	return by_rule(policy->exec.default_verdict, &policy->exec.default_origin,
		       reason ? reason : reasons[VERDICT_DENY],
		       policy->exec.default_verdict == VERDICT_DENY ? "use the programs that /run/atoll/limits.md lists"
								    : "");
}

/* Where the file lies: whether it is there to be read, and whether anything there may be executed. */
static struct decision exec_by_place(const struct policy *policy, const struct action *action)
{
	struct action read = { .kind = ACTION_FILE_READ, .subject = action->subject };
	struct decision file = decide_file(policy, &read);
	enum file_class class;
	size_t index;

	if (file.verdict != VERDICT_ALLOW && file.verdict != VERDICT_SIMULATE)
		return file;
	class = policy_classify(policy, action->subject, &index);
	if (index != SIZE_MAX && policy->files.rules[index].flags & FILE_NOEXEC)
		return by_rule(VERDICT_DENY, &policy->files.rules[index].origin,
			       "no program below this path may be executed", "");
	if (!policy->exec.new_binaries && class >= FILE_SCRATCH)
		return builtin(VERDICT_DENY, "exec.new_binaries",
			       "what can be written inside cannot be executed at this level",
			       "run a script by its interpreter, or use level medium");
	return builtin(VERDICT_ALLOW, "builtin.place", "programs here may be executed", "");
}

/* A memfd, or a file that has been removed: nobody has put it on a list, and it was made inside. */
static struct decision exec_unnamed(const struct policy *policy)
{
	if (!policy->exec.new_binaries || policy->exec.default_verdict != VERDICT_ALLOW)
		return builtin(VERDICT_DENY, "builtin.unnamed",
			       "a program that is given as an open file or has no path cannot be on a list",
			       "run a program by its path");
	return builtin(VERDICT_ALLOW, "builtin.place", "programs without a path may be executed", "");
}

static struct decision decide_exec(const struct policy *policy, const struct action *action)
{
	struct decision place = action->is_unnamed ? exec_unnamed(policy) : exec_by_place(policy, action);
	const struct exec_rule *rule;

	if (place.verdict != VERDICT_ALLOW)
		return place;
	rule = policy_find_exec_rule(policy, action);
	if (policy_is_loader(action) && policy_judges_programs(policy) &&
	    !(rule && rule->verdict == VERDICT_ALLOW && rule->program && !(rule->program_flags & FILE_GLOB)))
		return builtin(VERDICT_DENY, "builtin.loader",
			       "the dynamic loader runs any program that it is given, past the rules for programs",
			       "run the program itself");
	if (!rule)
		return exec_by_default(policy);
	if (rule->verdict == VERDICT_DENY)
		return by_rule(VERDICT_DENY, &rule->origin,
			       rule->argv && rule->argv[0] ? "the policy denies this program with these arguments"
							   : "the policy denies this program", "");
	if (rule->verdict == VERDICT_ASK)
		return by_rule(VERDICT_ASK, &rule->origin, "the policy asks a person for this program", "");
	return by_rule(VERDICT_ALLOW, &rule->origin, "the policy allows this program", "");
}

static struct decision decide_device(const struct policy *policy, const struct action *action)
{
	for (size_t i = 0; i < ARRAY_SIZE(jail_devices); i++)
		if (str_equal(jail_devices[i], action->subject))
			return builtin(VERDICT_ALLOW, "builtin.jail", "every sandbox has this device", "");
	for (size_t i = 0; i < policy->device_count; i++)
		if (str_equal(policy->devices[i].name, action->subject))
			return by_rule(VERDICT_ALLOW, &policy->devices[i].origin,
				       "the policy lists this device", "");
	return builtin(VERDICT_DENY, "devices.default", "no rule lists this device",
		       "list it under devices of your policy");
}

static bool env_matches(const char *pattern, const char *name)
{
	size_t length = strlen(pattern);

	if (length && pattern[length - 1] == '*')
		return strncmp(pattern, name, length - 1) == 0;
	return str_equal(pattern, name);
}

static struct decision decide_env(const struct policy *policy, const struct action *action)
{
	for (size_t i = 0; i < policy->env.set_count; i++)
		if (str_equal(policy->env.set[i].name, action->subject))
			return by_rule(VERDICT_ALLOW, &policy->env.set[i].origin,
				       "the policy sets this variable", "");
	for (size_t i = 0; i < policy->env.pass_count; i++)
		if (env_matches(policy->env.pass[i].pattern, action->subject))
			return by_rule(VERDICT_ALLOW, &policy->env.pass[i].origin,
				       "the policy passes this variable", "");
	return builtin(VERDICT_DENY, "env.default", "no rule passes this variable",
		       "list it under env.pass of your policy");
}

struct decision policy_decide(const struct policy *policy, const struct action *action)
{
	if (!action->subject || !*action->subject)
		return builtin(VERDICT_DENY, "builtin.subject", "nothing was asked about", "");
	switch (action->kind) {
	case ACTION_FILE_READ:
	case ACTION_FILE_WRITE:
	case ACTION_FILE_APPLY:
		return decide_file(policy, action);
	case ACTION_EXEC:
		return decide_exec(policy, action);
	case ACTION_NET_CONNECT:
	case ACTION_NET_LISTEN:
	case ACTION_NET_DNS:
	case ACTION_HTTP_REQUEST:
		return policy_decide_net(policy, action);
	case ACTION_DEVICE:
		return decide_device(policy, action);
	case ACTION_ENV:
		return decide_env(policy, action);
	case ACTION_SYSCALL:
		return builtin(VERDICT_DENY, "builtin.syscall", "a system call that has to ask is refused",
			       "");
	case ACTION_ALERT:
		return builtin(VERDICT_DENY, "builtin.alert", "after an alert only a person says how it goes on", "");
	case ACTION_KIND_COUNT:
		break;
	}
	return builtin(VERDICT_DENY, "builtin.kind", "this kind of action is not known", "");
}

bool policy_takes_grants(const struct policy *policy)
{
	return policy->level != TRUST_NONE || policy->files.ask_count;
}

bool policy_hears_requests(const struct policy *policy)
{
	return policy_takes_grants(policy) || policy->network.default_verdict == VERDICT_ASK;
}

bool policy_may_be_asked(const struct policy *policy, const struct action *action, const struct decision *decision)
{
	bool is_file = action->kind == ACTION_FILE_READ || action->kind == ACTION_FILE_WRITE;

	if (decision->verdict == VERDICT_ASK)
		return true;
	if (!is_file || policy->level == TRUST_NONE)
		return false;
	return decision->verdict == VERDICT_SIMULATE ||
	       (decision->verdict == VERDICT_DENY && str_equal(decision->rule.id, files_default));
}

static bool is_moved_out(const char *pattern, uint32_t flags, const char *from, const char *to)
{
	if (flags & FILE_GLOB)
		return !glob_keeps_below(pattern, from, to);
	return path_is_below(pattern, from) && !str_equal(pattern, from);
}

static struct decision refuse_move(const struct rule_origin *rule)
{
	return by_rule(VERDICT_DENY, rule, "what this rule names by its path would lie below another one",
		       "move what is in the directory, one by one");
}

static struct decision keeps_rules(void)
{
	return builtin(VERDICT_ALLOW, "files.default", "no rule about paths below is evaded", "");
}

static bool is_guarded(const struct policy *policy, const char *path)
{
	size_t rule;

	return policy_classify(policy, path, &rule) == FILE_WRITE && policy->files.rules[rule].flags & FILE_GUARDED;
}

/* Of a file of this name, wherever it lies: no directory on the way to it says anything. */
static bool is_plain_name(const struct path_rule *rule)
{
	return rule->flags & PATH_FILE && str_has_prefix(rule->pattern, "/**/") && !strchr(rule->pattern + 4, '/');
}

/* Who fills a directory of another name and then moves it has made a protected file as well. */
static struct decision decide_guarded_move(const struct policy *policy, const char *from, const char *to)
{
	size_t count;
	const struct path_rule *protects = policy_protects(policy, &count);

	for (size_t i = 0; i < count; i++) {
		const struct path_rule *rule = &protects[i];

		if (!(rule->flags & (PATH_BUILD | PATH_PACKAGE)) && !is_plain_name(rule) &&
		    (is_moved_out(rule->pattern, rule->flags, from, to) ||
		     is_moved_out(rule->pattern, rule->flags, to, from)))
			return refuse_move(&rule->origin);
	}
	return keeps_rules();
}

struct decision policy_decide_move(const struct policy *policy, const char *from, const char *to)
{
	for (size_t i = policy->files.exact_count; i < policy->files.count; i++) {
		const struct file_rule *rule = &policy->files.rules[i];

		if (rule->flags & FILE_GATED && is_moved_out(rule->pattern, rule->flags, from, to))
			return refuse_move(&rule->origin);
	}
	for (size_t i = 0; i < policy->files.ask_count; i++) {
		const struct path_rule *rule = &policy->files.asks[i];

		if (is_moved_out(rule->pattern, rule->flags, from, to))
			return refuse_move(&rule->origin);
	}
	return is_guarded(policy, from) || is_guarded(policy, to) ? decide_guarded_move(policy, from, to)
								  : keeps_rules();
}

bool policy_gates_reads(const struct policy *policy)
{
	/* The compiler bounds globs. */
	for (size_t i = policy->files.exact_count; i < policy->files.count; i++)
		if (policy->files.rules[i].flags & FILE_GATED)
			return true;
	return policy->files.ask_count > 0;
}

bool policy_gates_writes(const struct policy *policy)
{
	for (size_t i = 0; i < policy->files.count; i++)
		if (policy->files.rules[i].class == FILE_WRITE && policy->files.rules[i].flags & FILE_GUARDED)
			return true;
	return false;
}

bool policy_stages_any(const struct policy *policy)
{
	for (size_t i = 0; i < policy->files.plan_count; i++)
		if (policy->files.plan[i].class == FILE_STAGE)
			return true;
	return false;
}

bool policy_stages_system(const struct policy *policy)
{
	for (size_t i = 0; i < policy->files.plan_count; i++)
		if (policy->files.plan[i].class == FILE_STAGE && str_equal(policy->files.plan[i].path, "/"))
			return true;
	return false;
}
