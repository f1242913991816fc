/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decide-exec.h"

#include <string.h>

#include "base/str.h"
#include "policy/glob.h"
#include "policy/order.h"

/*
 * Where the caller has looked what the file is (action->names), a rule that takes away covers the program by its path
 * and by every name that it is known as: a copy, a link and a renamed file are the program. A rule that gives covers
 * an exact path only as long as the file there is the program that it was when the sandbox began: what was put into
 * its place is another.
 */

static bool is_named(const char *const *names, const char *path)
{
	for (; names && *names; names++)
		if (str_equal(*names, path))
			return true;
	return false;
}

static bool takes_program(const struct exec_rule *rule, const struct action *action)
{
	bool is_glob = rule->program_flags & FILE_GLOB;

	if (is_glob ? glob_match(rule->program, action->subject) : str_equal(rule->program, action->subject))
		return true;
	for (const char *const *name = action->names; name && *name; name++)
		if (is_glob ? glob_match(rule->program, *name) : str_equal(rule->program, *name))
			return true;
	return false;
}

static bool gives_program(const struct exec_rule *rule, const struct action *action)
{
	if (rule->program_flags & FILE_GLOB)
		return glob_match(rule->program, action->subject);
	return action->names ? is_named(action->names, rule->program) : str_equal(rule->program, action->subject);
}

/* A path in `except` is a program, or a directory of programs. */
static bool is_excepted(const char *const *except, const struct action *action)
{
	for (; except && *except; except++) {
		if (glob_is_pattern(*except)) {
			if (glob_match_below(*except, action->subject) >= 0)
				return true;
			continue;
		}
		if (is_named(action->names, *except))
			return true;
		if (path_is_below(action->subject, *except) &&
		    (!action->names || !str_equal(action->subject, *except)))
			return true;
	}
	return false;
}

/*
 * The first word: "git" is git by whatever path it was called, and whatever it was told that its name is. For a rule
 * that gives, what the caller put there counts for nothing.
 */
static bool command_matches(const struct exec_rule *rule, const char *pattern, const struct action *action)
{
	bool is_given = rule->verdict == VERDICT_ALLOW && !rule->program;

	if (!is_given && (glob_match(pattern, action->argv[0]) || glob_match(pattern, path_basename(action->argv[0]))))
		return true;
	if (glob_match(pattern, path_basename(action->subject)))
		return true;
	for (const char *const *name = action->names; name && *name; name++)
		if (glob_match(pattern, path_basename(*name)))
			return true;
	return false;
}

/* Element by element; "**" stands for any number of arguments. */
static bool rest_matches(const char *const *patterns, const char *const *argv)
{
	const char *const *star = NULL, *const *star_argv = NULL;

	while (*argv) {
		if (*patterns && str_equal(*patterns, "**")) {
			star = ++patterns;
			star_argv = argv;
		} else if (*patterns && glob_match(*patterns, *argv)) {
			patterns++;
			argv++;
		} else if (star) {
			patterns = star;
			argv = ++star_argv;
		} else {
			return false;
		}
	}
	while (*patterns && str_equal(*patterns, "**"))
		patterns++;
	return !*patterns;
}

static bool argv_matches(const struct exec_rule *rule, const struct action *action)
{
	if (!rule->argv || !rule->argv[0])
		return true;
	if (!action->argv)
		return false;
	/* What was left out can be anything: a rule that takes away covers it, one that gives does not. */
	if (action->is_cut)
		return rule->verdict != VERDICT_ALLOW &&
		       (str_equal(rule->argv[0], "**") || command_matches(rule, rule->argv[0], action));
	if (str_equal(rule->argv[0], "**") || !action->argv[0])
		return rest_matches(rule->argv, action->argv);
	return command_matches(rule, rule->argv[0], action) && rest_matches(rule->argv + 1, action->argv + 1);
}

static bool rule_matches(const struct exec_rule *rule, const struct action *action)
{
	bool is_about = !rule->program || (rule->verdict == VERDICT_ALLOW ? gives_program(rule, action)
									  : takes_program(rule, action));

	return is_about && argv_matches(rule, action) && !is_excepted(rule->except, action);
}

static void consider(const struct exec_rule **best, const struct exec_rule *rule, const struct action *action)
{
	if ((!*best || rule->verdict < (*best)->verdict) && rule_matches(rule, action))
		*best = rule;
}

static void consider_exact(const struct policy *policy, const struct exec_rule **best, const char *path,
			   const struct action *action)
{
	size_t low = 0, high = policy->exec.exact_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(policy->exec.rules[middle].program, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < policy->exec.exact_count && str_equal(policy->exec.rules[low].program, path); low++)
		consider(best, &policy->exec.rules[low], action);
}

const struct exec_rule *policy_find_exec_rule(const struct policy *policy, const struct action *action)
{
	const struct exec_rule *best = NULL;

	consider_exact(policy, &best, action->subject, action);
	for (const char *const *name = action->names; name && *name; name++)
		consider_exact(policy, &best, *name, action);
	for (size_t i = policy->exec.exact_count; i < policy->exec.count; i++)
		consider(&best, &policy->exec.rules[i], action);
	return best;
}

const char *const policy_loaders[] = {
#if defined(__x86_64__)
	"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux.so.2", "/libx32/ld-linux-x32.so.2", "/lib/ld-musl-x86_64.so.1",
#elif defined(__aarch64__)
	"/lib/ld-linux-aarch64.so.1", "/lib/ld-linux-armhf.so.3", "/lib/ld-musl-aarch64.so.1",
#endif
	NULL,
};

bool policy_is_loader(const struct action *action)
{
	static const char *const patterns[] = { "ld-linux*.so.*", "ld-musl-*.so.1", "ld-2.*.so", "ld.so" };

	for (const char *const *loader = policy_loaders; *loader; loader++)
		if (is_named(action->names, *loader))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if (glob_match(patterns[i], path_basename(action->subject)))
			return true;
	return false;
}

bool exec_rule_is_mounted(const struct exec_rule *rule)
{
	return rule->verdict == VERDICT_DENY && rule->program && !(rule->program_flags & FILE_GLOB) &&
	       !(rule->argv && rule->argv[0]) && !(rule->except && rule->except[0]);
}

bool policy_judges_programs(const struct policy *policy)
{
	if (policy->exec.default_verdict != VERDICT_ALLOW ||
	    (external_is_given(&policy->external) && policy->external.when == VERIFY_ALL))
		return true;
	for (size_t i = 0; i < policy->exec.count; i++)
		if (policy->exec.rules[i].verdict != VERDICT_ALLOW &&
		    !(exec_rule_is_mounted(&policy->exec.rules[i]) &&
		      policy->exec.rules[i].program_flags & FILE_OPTIONAL))
			return true;
	return false;
}

bool policy_judges_arguments(const struct policy *policy)
{
	for (size_t i = policy->exec.exact_count; i < policy->exec.count; i++)
		if (policy->exec.rules[i].argv && policy->exec.rules[i].argv[0])
			return true;
	return false;
}
