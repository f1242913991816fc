/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "lang/print/diff.h"
#include "lang/print/print.h"
#include "policy/decide.h"

/* What two policies decide differently, as lines, as JSON, or in a few lines for whoever is asked about it. */

static void put_change(struct buf *out, const struct change *change)
{
	buf_printf(out, "%c %-12s ", change->allows ? '+' : '-', change->dimension);
	buf_put_escaped(out, change->subject, strlen(change->subject), 0);
	buf_printf(out, "  (%s -> %s)\n", change->from, change->to);
}

/* What was compared is done with: how many changes there were. Without memory nothing may be said to be equal. */
static size_t finish(struct differ *differ, struct buf *out)
{
	if (differ->arena.has_failed)
		out->error = -ENOMEM;
	arena_done(&differ->arena);
	return differ->changes.count;
}

/* Those that allow, or those that do not. How many; out NULL: none are written. */
static size_t put_changes(const struct vec *changes, bool allows, struct buf *out)
{
	const struct change *change = changes->items;
	size_t count = 0;

	for (size_t i = 0; i < changes->count; i++) {
		if (change[i].allows != allows)
			continue;
		count++;
		if (out)
			put_change(out, &change[i]);
	}
	return count;
}

size_t print_diff(const struct policy *a, const struct policy *b, struct buf *out)
{
	struct differ differ = { .a = a, .b = b };

	diff_compare(&differ);
	(void)put_changes(&differ.changes, true, out);
	(void)put_changes(&differ.changes, false, out);
	return finish(&differ, out);
}

size_t print_diff_allows(const struct policy *a, const struct policy *b, struct buf *out)
{
	struct differ differ = { .a = a, .b = b };
	size_t allows;

	diff_compare(&differ);
	allows = put_changes(&differ.changes, true, out);
	if (differ.arena.has_failed)
		allows = SIZE_MAX;
	arena_done(&differ.arena);
	return allows;
}

bool print_diff_has(const struct policy *a, const struct policy *b, const char *dimension)
{
	struct differ differ = { .a = a, .b = b };
	bool has;

	diff_compare(&differ);
	has = differ.arena.has_failed;
	for (size_t i = 0; i < differ.changes.count; i++)
		has |= str_has_prefix(((const struct change *)differ.changes.items)[i].dimension, dimension);
	arena_done(&differ.arena);
	return has;
}

static void changes_to_json(const struct vec *changes, bool allows, struct json *json)
{
	const struct change *change = changes->items;

	json_array_begin(json, allows ? "allows" : "denies");
	for (size_t i = 0; i < changes->count; i++) {
		if (change[i].allows != allows)
			continue;
		json_object_begin(json, NULL);
		json_string(json, "dimension", change[i].dimension);
		json_bytes(json, "subject", change[i].subject, strlen(change[i].subject));
		json_string(json, "from", change[i].from);
		json_string(json, "to", change[i].to);
		json_object_end(json);
	}
	json_array_end(json);
}

size_t print_diff_json(const struct policy *a, const struct policy *b, struct json *json)
{
	struct differ differ = { .a = a, .b = b };

	diff_compare(&differ);
	json_object_begin(json, NULL);
	changes_to_json(&differ.changes, true, json);
	changes_to_json(&differ.changes, false, json);
	json_object_end(json);
	return finish(&differ, json->out);
}

/* ---- in a few lines ---- */

enum { SUBJECTS_MAX = 4 };

static bool is_alike(const struct change *a, const struct change *b)
{
	return str_equal(a->dimension, b->dimension) && str_equal(a->from, b->from) && str_equal(a->to, b->to);
}

/* The first few words of a list, and how many more there are. */
struct few {
	struct buf *out;
	size_t count;
};

static void few_add(struct few *few, const char *word)
{
	if (few->count++ >= SUBJECTS_MAX)
		return;
	buf_put_text(few->out, few->count > 1 ? ", " : " ");
	buf_put_escaped(few->out, word, strlen(word), 0);
}

static void few_end(struct few *few)
{
	if (few->count > SUBJECTS_MAX)
		buf_printf(few->out, " and %zu more", few->count - SUBJECTS_MAX);
	buf_put_text(few->out, few->count ? "\n" : " nothing\n");
}

/* Where nothing may be applied any more, protected paths need no line of their own. */
static bool goes_without_saying(const struct vec *changes, const struct change *change)
{
	const struct change apply = { action_kind_names[ACTION_FILE_APPLY], "", verdict_names[VERDICT_ALLOW],
				      verdict_names[VERDICT_DENY], false };
	const struct change *all = changes->items;

	if (!str_equal(change->dimension, apply.dimension) || !str_equal(change->from, verdict_names[VERDICT_ASK]) ||
	    !str_equal(change->to, apply.to))
		return false;
	for (size_t i = 0; i < changes->count; i++)
		if (is_alike(&all[i], &apply))
			return true;
	return false;
}

/* One line for all that changed from the same to the same, where the first of them stands. */
static void put_alike(struct buf *out, const struct vec *changes, size_t first)
{
	const struct change *change = (const struct change *)changes->items + first;
	struct few few = { .out = out };

	if (goes_without_saying(changes, change))
		return;
	for (size_t i = 0; i < first; i++)
		if (is_alike(change - first + i, change))
			return;
	buf_printf(out, "%c %-12s %s -> %s:", change->allows ? '+' : '-', change->dimension, change->from, change->to);
	for (size_t i = first; i < changes->count; i++)
		if (is_alike(change - first + i, change))
			few_add(&few, change[i - first].subject);
	few_end(&few);
}

static bool has_dimension(const struct differ *differ, const char *dimension)
{
	const struct change *change = differ->changes.items;

	for (size_t i = 0; i < differ->changes.count; i++)
		if (str_equal(change[i].dimension, dimension))
			return true;
	return false;
}

static void put_changeable(const struct policy *policy, struct buf *out)
{
	struct few few = { .out = out };

	buf_printf(out, "= %-12s still:", action_kind_names[ACTION_FILE_WRITE]);
	for (size_t i = 0; i < policy->files.count; i++)
		if (policy->files.rules[i].class == FILE_STAGE || policy->files.rules[i].class == FILE_WRITE)
			few_add(&few, policy->files.rules[i].pattern);
	few_end(&few);
}

/* A rule about the same hosts that denies wins, but for what it leaves out. NULL: there is none. */
static const struct net_rule *find_denial(const struct policy *policy, const struct net_rule *rule)
{
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *other = &policy->network.rules[i];

		if (other->verdict == VERDICT_DENY && !other->port_count &&
		    (rule->host ? str_equal(rule->host, other->host) : str_equal(rule->cidr, other->cidr)))
			return other;
	}
	return NULL;
}

static void put_reachable(const struct policy *policy, struct buf *out)
{
	struct few few = { .out = out };

	buf_printf(out, "= %-12s still:", action_kind_names[ACTION_NET_CONNECT]);
	if (policy->network.default_verdict != VERDICT_DENY)
		few_add(&few, "hosts that no rule lists");
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];
		const struct net_rule *denial = find_denial(policy, rule);

		if (rule->verdict == VERDICT_DENY)
			continue;
		if (!denial)
			few_add(&few, rule->host ? rule->host : rule->cidr);
		for (const char *const *left = denial ? denial->except : NULL; left && *left; left++)
			few_add(&few, *left);
	}
	few_end(&few);
}

size_t print_diff_brief(const struct policy *a, const struct policy *b, struct buf *out)
{
	struct differ differ = { .a = a, .b = b };

	diff_compare(&differ);
	for (size_t i = 0; i < differ.changes.count; i++)
		put_alike(out, &differ.changes, i);
	if (has_dimension(&differ, action_kind_names[ACTION_FILE_WRITE]))
		put_changeable(b, out);
	if (has_dimension(&differ, action_kind_names[ACTION_NET_CONNECT]))
		put_reachable(b, out);
	return finish(&differ, out);
}
