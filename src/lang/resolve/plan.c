/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "lang/resolve/chain.h"
#include "policy/decide.h"
#include "policy/glob.h"
#include "policy/order.h"

/*
 * The plan is what the decision function says about every path that a rule names, less what the entry above
 * already gives: it cannot disagree with decisions, and a thousand rules that change nothing cost nothing.
 */

static int compare_text(const void *a, const void *b)
{
	return path_compare(*(const char *const *)a, *(const char *const *)b);
}

static void add_excepts(struct lang *lang, struct vec *paths, const char *const *except)
{
	for (; except && *except; except++)
		if (!glob_is_pattern(*except))
			vec_add_text(&lang->arena, paths, *except);
}

/*
 * A mask of a directory, a slash and one or two stars takes away what is in one directory, by whatever name it comes:
 * in a staged tree that is one opaque directory of the mask layer. *out gets the directory.
 */
static bool contents_of(const struct file_rule *rule, char out[PATH_MAX], bool *ret_is_deep)
{
	const char *pattern = rule->pattern;
	size_t length = strlen(pattern);

	if (rule->class != FILE_MASK || !(rule->flags & FILE_GLOB) || rule->except)
		return false;
	*ret_is_deep = length > 3 && str_equal(pattern + length - 3, "/**");
	if (!*ret_is_deep && (length <= 2 || !str_equal(pattern + length - 2, "/*")))
		return false;
	length -= *ret_is_deep ? 3 : 2;
	return str_format(out, PATH_MAX, "%.*s", (int)length, pattern) == 0 && !glob_is_pattern(out);
}

static void gather_paths(struct lang *lang, const struct policy *policy, struct vec *paths)
{
	for (size_t i = 0; i < policy->files.count; i++) {
		char directory[PATH_MAX];
		bool is_deep;

		if (!(policy->files.rules[i].flags & FILE_GLOB))
			vec_add_text(&lang->arena, paths, policy->files.rules[i].pattern);
		else if (contents_of(&policy->files.rules[i], directory, &is_deep))
			vec_add_text(&lang->arena, paths, arena_text(&lang->arena, directory));
		add_excepts(lang, paths, policy->files.rules[i].except);
	}
	if (paths->count)
		qsort(paths->items, paths->count, sizeof(char *), compare_text);
}

static struct file_plan_entry entry_of(const struct policy *policy, const char *path)
{
	size_t rule;
	enum file_class class = policy_classify(policy, path, &rule);
	struct file_plan_entry entry = { .path = path, .class = class };

	if (rule != SIZE_MAX) {
		entry.rule = (uint32_t)rule;
		entry.flags = policy->files.rules[rule].flags & (FILE_OPTIONAL | FILE_NOEXEC);
		/* Only the path that the rule names has to exist. */
		if (!str_equal(policy->files.rules[rule].pattern, path))
			entry.flags |= FILE_OPTIONAL;
	}
	if (!policy->exec.new_binaries && class >= FILE_SCRATCH)
		entry.flags |= FILE_NOEXEC;
	return entry;
}

/* The rule that masks what is in this directory; SIZE_MAX: none. */
static size_t contents_rule(const struct policy *policy, const char *path)
{
	char directory[PATH_MAX];
	bool is_deep;

	for (size_t i = policy->files.exact_count; i < policy->files.count; i++)
		if (contents_of(&policy->files.rules[i], directory, &is_deep) && str_equal(directory, path))
			return i;
	return SIZE_MAX;
}

/* The mask layer can empty a directory of a staged tree; elsewhere a directory is masked whole or not at all. */
static void mask_contents(const struct policy *policy, struct file_plan_entry *entry,
			  const struct file_plan_entry *above)
{
	size_t rule = above && above->class == FILE_STAGE && (entry->class == FILE_STAGE || entry->class == FILE_MASK) ?
			      contents_rule(policy, entry->path) : SIZE_MAX;
	bool is_by_contents = rule != SIZE_MAX && (entry->class == FILE_STAGE || entry->rule == rule);

	if (!is_by_contents)
		return;
	entry->class = FILE_MASK;
	entry->rule = (uint32_t)rule;
	entry->flags |= FILE_CONTENTS | FILE_OPTIONAL;
}

/* Whether entry changes what the nearest entry above (NULL: nothing) gives. */
static bool is_needed(struct file_plan_entry *entry, const struct file_plan_entry *above)
{
	if (!above)
		return entry->class > FILE_MASK;
	if (above->class == FILE_MASK)
		return false;
	if (entry->class <= FILE_MASK) {
		/* Nothing of the host is in a private directory that would have to be masked. */
		if (above->class == FILE_SCRATCH)
			return false;
		if (entry->class == FILE_HIDDEN)
			entry->rule = above->rule;
		entry->class = FILE_MASK;
		return true;
	}
	return entry->class != above->class || (entry->flags & FILE_NOEXEC) != (above->flags & FILE_NOEXEC);
}

void plan_files(struct lang *lang, struct policy *policy)
{
	struct vec paths = { 0 };
	struct file_plan_entry *plan;
	size_t *above; /* the index of the nearest entry above each entry, SIZE_MAX: none */
	size_t count = 0, top = SIZE_MAX;

	gather_paths(lang, policy, &paths);
	plan = arena_alloc(&lang->arena, paths.count * sizeof *plan);
	above = arena_alloc(&lang->arena, paths.count * sizeof *above);
	if (!plan || !above)
		return;
	DRAFT_EACH(const char *, path, &paths)
	{
		struct file_plan_entry entry = entry_of(policy, *path);

		while (top != SIZE_MAX && !path_is_below(*path, plan[top].path))
			top = above[top];
		mask_contents(policy, &entry, top == SIZE_MAX ? NULL : &plan[top]);
		if ((top != SIZE_MAX && str_equal(plan[top].path, *path)) ||
		    !is_needed(&entry, top == SIZE_MAX ? NULL : &plan[top]))
			continue;
		/* In a tree that the sandbox writes, a link could have been planted for the next run. */
		if (top != SIZE_MAX && plan[top].class >= FILE_STAGE)
			entry.flags |= FILE_NOFOLLOW;
		plan[count] = entry;
		above[count] = top;
		top = count++;
	}
	policy->files.plan = plan;
	policy->files.plan_count = count;
}

static void add(struct lang *lang, struct vec *vec, const char *what, const struct rule_origin *origin)
{
	struct unenforced *item = vec_add(&lang->arena, vec, sizeof *item);

	if (item)
		*item = (struct unenforced){ what, *origin };
}

/* Whether the plan holds what a mask of a directory's contents says. */
static bool is_planned(const struct policy *policy, size_t rule)
{
	char directory[PATH_MAX];
	bool is_deep;

	if (!contents_of(&policy->files.rules[rule], directory, &is_deep))
		return false;
	/* Two stars match the directory itself, so that it is masked like any exact name. */
	if (is_deep)
		return true;
	for (size_t i = 0; i < policy->files.plan_count; i++)
		if (policy->files.plan[i].flags & FILE_CONTENTS && policy->files.plan[i].rule == rule)
			return true;
	return false;
}

/* Masks by glob that no mount can express are for the file gate. */
static void mark_gated(struct lang *lang, struct policy *policy)
{
	struct file_rule *rules = arena_alloc(&lang->arena, policy->files.count * sizeof *rules);

	if (!rules || !policy->files.count)
		return;
	memcpy(rules, policy->files.rules, policy->files.count * sizeof *rules);
	for (size_t i = policy->files.exact_count; i < policy->files.count; i++)
		if (rules[i].class == FILE_MASK && rules[i].flags & FILE_GLOB && !is_planned(policy, i))
			rules[i].flags |= FILE_GATED;
	policy->files.rules = rules;
}

static void add_files(struct lang *lang, const struct policy *policy, struct vec *vec)
{
	for (size_t i = 0; i < policy->files.count; i++) {
		const struct file_rule *rule = &policy->files.rules[i];
		const char *what = NULL;

		if (rule->flags & FILE_GATED)
			continue;
		if (rule->flags & FILE_GLOB && !is_planned(policy, i))
			what = arena_format(&lang->arena, "files.%s glob", file_class_names[rule->class]);
		else if (rule->class == FILE_MASK && rule->except)
			what = "files.mask except";
		for (const char *const *except = rule->except; !what && except && *except; except++)
			if (glob_is_pattern(*except))
				what = "files except glob";
		if (what)
			add(lang, vec, what, &rule->origin);
	}
}

/* A limit counts what the gate sees; of requests, what it reads. */
static void add_limit(struct lang *lang, const struct policy *policy, const struct draft_scalar *scalar,
		      enum net_limit kind, struct vec *vec)
{
	struct rule_origin origin = { "network.limits", scalar->place.file, scalar->place.line };

	if (kind == NET_LIMIT_COUNT)
		return;
	if (policy->network.mode == NETWORK_HOST)
		add(lang, vec, "network.limits with host: true", &origin);
	else if (kind == NET_LIMIT_REQUESTS && !policy_intercepts_any(policy))
		add(lang, vec, "network.limits requests where no rule has http or inject", &origin);
}

static void add_network(struct lang *lang, const struct policy *policy, struct vec *vec)
{
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];

		if (rule->http_count && policy->network.mode == NETWORK_HOST)
			add(lang, vec, arena_format(&lang->arena, "network.%s http with host: true",
						    verdict_names[rule->verdict]), &rule->origin);
		else if (rule->inject.kind != INJECT_NONE && policy->network.mode == NETWORK_HOST)
			add(lang, vec, "network.allow inject with host: true", &rule->origin);
		else if (!rule->http_count && rule->limits && rule->limits->of[NET_LIMIT_REQUESTS].amount)
			add(lang, vec, "network.allow limits requests without http or inject", &rule->origin);
		else if (rule->limits && rule->limits->of[NET_LIMIT_LABELS].amount &&
			 (!rule->host || rule->host[0] != '*'))
			add(lang, vec, "network.allow limits labels without a wildcard", &rule->origin);
		else if (policy->network.mode == NETWORK_HOST && rule->verdict != VERDICT_ALLOW)
			add(lang, vec, arena_format(&lang->arena, "network.%s with host: true",
						    verdict_names[rule->verdict]), &rule->origin);
	}
	for (size_t i = 0; i < NET_LIMIT_COUNT; i++)
		add_limit(lang, policy, &lang->draft.scalars[SCALAR_NETWORK_LIMITS + i],
			  policy->network.limits.of[i].amount ? (enum net_limit)i : NET_LIMIT_COUNT, vec);
	if (policy->network.mode == NETWORK_HOST && policy->network.publish_count)
		add(lang, vec, "network.publish with host: true", &policy->network.publish[0].origin);
	if (policy->network.mode == NETWORK_HOST && policy->network.host_port_count)
		add(lang, vec, "network.host_ports with host: true", &policy->network.host_ports[0].origin);
}

void plan_unenforced(struct lang *lang, struct policy *policy)
{
	static const struct {
		unsigned kind;
		const char *what;
	} scalars[] = {
		{ SCALAR_DATA_SECRETS, "data.secrets" },
		{ SCALAR_DATA_PII, "data.pii" },
		{ SCALAR_DATA_INJECTION, "data.injection" },
	};
	struct vec vec = { 0 };

	mark_gated(lang, policy);
	add_files(lang, policy, &vec);
	add_network(lang, policy, &vec);
	for (size_t i = 0; i < ARRAY_SIZE(scalars); i++) {
		const struct draft_scalar *scalar = &lang->draft.scalars[scalars[i].kind];
		struct rule_origin origin = { scalars[i].what, scalar->place.file, scalar->place.line };

		/* "off" and "false" are 0. */
		if (scalar->is_set && scalar->value)
			add(lang, &vec, scalars[i].what, &origin);
	}
	policy->unenforced = vec.items;
	policy->unenforced_count = vec.count;
}
