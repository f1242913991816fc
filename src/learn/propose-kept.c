/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/propose-kept.h"

#include <string.h>

#include "base/str.h"
#include "lang/print/print.h"
#include "policy/decide.h"
#include "policy/scalars.h"

static void head(const char *name, bool *is_headed, struct buf *out)
{
	if (!*is_headed)
		buf_printf(out, "  %s:\n", name);
	*is_headed = true;
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_vector(const char *const *a, const char *const *b)
{
	size_t i = 0;

	for (; a && b && a[i] && b[i]; i++)
		if (strcmp(a[i], b[i]) != 0)
			return false;
	return !(a && a[i]) && !(b && b[i]);
}

/* ---- files ---- */

/* What of the proposal holds the path: the class that it would have without a rule of its own; hidden: none. */
static enum file_class class_around(const struct proposal *proposal, const char *path)
{
	static const enum file_class trees[] = { FILE_STAGE, FILE_WRITE };
	size_t rule;
	enum file_class class = policy_classify(proposal->request->base, path, &rule), most = FILE_HIDDEN;

	/* What is private holds nothing of the host; without a list of programs, one can be put there and started. */
	if (class == FILE_READ || (class == FILE_SCRATCH && (proposal->new_programs.count ||
							     proposal->programs.left_out)))
		most = FILE_READ;
	for (size_t i = 0; i < proposal->reads.count; i++)
		if (path_is_below(path, proposal->reads.items[i].key))
			most = FILE_READ;
	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		const struct tally *tree = &proposal->trees[trees[i]];

		for (size_t j = 0; j < tree->count; j++)
			if (strpbrk(tree->items[j].key, "*?[\\") || path_is_below(path, tree->items[j].key))
				most = trees[i];
	}
	return most;
}

static bool is_listed(const struct tally *tally, const char *path)
{
	for (size_t i = 0; i < tally->count; i++)
		if (str_equal(tally->items[i].key, path))
			return true;
	return false;
}

static bool has_file(const struct policy *policy, const struct file_rule *rule)
{
	for (size_t i = 0; i < policy->files.count; i++) {
		const struct file_rule *other = &policy->files.rules[i];

		if (other->class == rule->class && strcmp(other->pattern, rule->pattern) == 0 &&
		    is_same_vector(other->except, rule->except) &&
		    (other->flags & FILE_NOEXEC) == (rule->flags & FILE_NOEXEC))
			return true;
	}
	return false;
}

/* Whether the rule takes something away from what the proposal would show without it. */
static bool is_kept_file(const struct proposal *proposal, const struct file_rule *rule)
{
	const struct tally *own = rule->class == FILE_READ ? &proposal->reads : &proposal->trees[rule->class];
	enum file_class around;

	/* Built-in rules come with every policy. */
	if ((!rule->origin.line && !rule->origin.file[0]) || has_file(proposal->request->base, rule) ||
	    is_listed(own, rule->pattern))
		return false;
	/* A pattern may match anywhere. */
	if (rule->flags & FILE_GLOB)
		return rule->class <= FILE_READ || rule->class == FILE_SCRATCH;
	around = class_around(proposal, rule->pattern);
	switch (rule->class) {
	case FILE_MASK:
	case FILE_SCRATCH:
		return around != FILE_HIDDEN;
	case FILE_READ:
		return around > FILE_READ || (around == FILE_READ && rule->flags & FILE_NOEXEC);
	case FILE_STAGE:
		return around == FILE_WRITE;
	default:
		return false;
	}
}

/* A program that the run needed may be below a list that has none executed: the flag is that of the session. */
void kept_put_files(const struct proposal *proposal, enum file_class class, bool is_headed, struct buf *out)
{
	const struct policy *before = proposal->request->before;

	for (size_t i = 0; i < before->files.count; i++) {
		if (before->files.rules[i].class != class || !is_kept_file(proposal, &before->files.rules[i]))
			continue;
		head(file_class_names[class], &is_headed, out);
		print_file_rule(out, &before->files.rules[i]);
	}
}

static bool has_path(const struct path_rule *rules, size_t count, const struct path_rule *rule)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(rules[i].pattern, rule->pattern) == 0 && is_same_vector(rules[i].except, rule->except))
			return true;
	return false;
}

struct path_list {
	const char *name;
	const struct path_rule *rules, *base;
	size_t count, base_count;
};

static bool is_kept_path(const struct proposal *proposal, const struct path_list *list, const struct path_rule *rule)
{
	return !has_path(list->base, list->base_count, rule) &&
	       (rule->flags & FILE_GLOB || class_around(proposal, rule->pattern) != FILE_HIDDEN);
}

/* False: nothing was written, or (out NULL) there is nothing to write. */
static bool put_path_lists(const struct proposal *proposal, struct buf *out)
{
	const struct policy *before = proposal->request->before, *base = proposal->request->base;
	size_t count, base_count;
	const struct path_rule *protects = policy_protects(before, &count),
			       *base_protects = policy_protects(base, &base_count);
	const struct path_list lists[] = {
		{ "ask", before->files.asks, base->files.asks, before->files.ask_count, base->files.ask_count },
		{ "protect", protects, base_protects, count, base_count },
	};
	bool is_any = false;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		bool is_headed = false;

		for (size_t j = 0; j < lists[i].count; j++) {
			if (!is_kept_path(proposal, &lists[i], &lists[i].rules[j]))
				continue;
			is_any = true;
			if (!out)
				return true;
			head(lists[i].name, &is_headed, out);
			print_path_rule(out, &lists[i].rules[j]);
		}
	}
	return is_any;
}

void kept_put_paths(const struct proposal *proposal, struct buf *out)
{
	(void)put_path_lists(proposal, out);
}

bool kept_has_files(const struct proposal *proposal)
{
	const struct policy *before = proposal->request->before;

	for (size_t i = 0; i < before->files.count; i++)
		if (is_kept_file(proposal, &before->files.rules[i]))
			return true;
	return put_path_lists(proposal, NULL);
}

/* ---- network ---- */

static bool covers(const char *pattern, const char *host)
{
	return str_equal(pattern, host) || (str_has_prefix(pattern, "*.") && str_has_suffix(host, pattern + 1));
}

/* Whether something that the proposal lets be reached may be meant; an address may be any host's. */
static bool is_about(const struct proposal *proposal, const struct net_rule *rule)
{
	const struct tally *const reached[] = { &proposal->hosts, &proposal->names };

	for (size_t i = 0; i < ARRAY_SIZE(reached); i++)
		for (size_t j = 0; j < reached[i]->count; j++) {
			char host[512];
			const char *key = reached[i]->items[j].key;

			if (!rule->host)
				return true;
			if (str_format(host, sizeof host, "%.*s", (int)strcspn(key, " "), key) == 0 &&
			    covers(rule->host, host))
				return true;
		}
	return false;
}

static bool has_net(const struct policy *policy, const struct net_rule *rule)
{
	for (size_t i = 0; i < policy->network.count; i++)
		if (policy->network.rules[i].origin.line == rule->origin.line &&
		    strcmp(policy->network.rules[i].origin.file, rule->origin.file) == 0 &&
		    strcmp(policy->network.rules[i].origin.id, rule->origin.id) == 0)
			return true;
	return false;
}

void kept_put_net(const struct proposal *proposal, enum verdict verdict, bool is_headed, struct buf *out)
{
	const struct policy *before = proposal->request->before;

	for (size_t i = 0; i < before->network.count; i++) {
		const struct net_rule *rule = &before->network.rules[i];

		if (rule->verdict != verdict || has_net(proposal->request->base, rule) || !is_about(proposal, rule))
			continue;
		head(verdict_names[verdict], &is_headed, out);
		print_net_rule(out, rule);
	}
}

bool kept_has_net_limits(const struct proposal *proposal)
{
	const struct policy *before = proposal->request->before;
	bool is_any = before->network.cooldown.denials > 0;

	for (size_t i = 0; i < NET_LIMIT_COUNT; i++)
		is_any |= before->network.limits.of[i].amount > 0;
	return is_any;
}

/* ---- exec ---- */

static bool has_exec(const struct policy *policy, const struct exec_rule *rule)
{
	for (size_t i = 0; i < policy->exec.count; i++) {
		const struct exec_rule *other = &policy->exec.rules[i];

		if (other->verdict == rule->verdict && is_same_text(other->program, rule->program) &&
		    is_same_vector(other->argv, rule->argv) && is_same_vector(other->except, rule->except))
			return true;
	}
	return false;
}

void kept_put_exec(const struct proposal *proposal, enum verdict verdict, bool is_headed, struct buf *out)
{
	const struct policy *before = proposal->request->before;

	for (size_t i = 0; i < before->exec.count; i++) {
		const struct exec_rule *rule = &before->exec.rules[i];

		if (rule->verdict != verdict || has_exec(proposal->request->base, rule))
			continue;
		head(verdict_names[verdict], &is_headed, out);
		print_exec_rule(out, rule);
	}
}

/* ---- sections ---- */

static bool has_stricter_data(const struct policy *before, const struct policy *base)
{
	bool is_stricter = before->data.canaries || before->data.canary_files;

	for (enum scalar_id id = SCALAR_DATA_SECRETS; id <= SCALAR_DATA_OUTGOING; id++)
		is_stricter |= scalar_get(id, before) > scalar_get(id, base);
	return is_stricter;
}

static void put_verify(const struct policy *before, const struct policy *base, struct buf *out)
{
	struct verify_settings both = base->verify;
	bool is_stricter = external_is_given(&before->external);

	for (size_t row = 0; row < VERIFY_ROW_COUNT; row++)
		for (size_t i = 0; i < VERIFY_SURENESS_COUNT; i++)
			if (before->verify.of[row][i] > both.of[row][i]) {
				both.of[row][i] = before->verify.of[row][i];
				is_stricter = true;
			}
	if (is_stricter)
		print_verify(out, &both, &before->external);
}

void kept_put_sections(const struct proposal *proposal, struct buf *out)
{
	const struct policy *before = proposal->request->before, *base = proposal->request->base;

	if (has_stricter_data(before, base))
		print_data(out, before);
	put_verify(before, base, out);
	if (!scalars_equal(SCALAR_MONITOR_BASELINE, SCALAR_MONITOR_CANARY, before, base))
		print_monitor(out, before);
}
