/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/rules/tables.h"

#include <string.h>

#include "base/names.h"
#include "base/str.h"

/* What is made of rules when all of them are there: lists by name, and what can be told before they are matched. */

struct vec *condition_patterns(struct condition *condition, size_t at)
{
	static const uint16_t offsets[CONDITION_PATTERNS] = {
		offsetof(struct condition, programs), offsetof(struct condition, operands),
		offsetof(struct condition, arguments), offsetof(struct condition, without_arguments),
		offsetof(struct condition, text), offsetof(struct condition, without_text),
		offsetof(struct condition, values), offsetof(struct condition, hosts),
		offsetof(struct condition, without_hosts), offsetof(struct condition, flags),
		offsetof(struct condition, without_flags),
	};

	return (struct vec *)((char *)condition + offsets[at]);
}

struct vec *condition_nested(struct condition *condition, size_t at)
{
	static const uint16_t offsets[CONDITION_NESTED] = {
		offsetof(struct condition, from), offsetof(struct condition, without_from),
		offsetof(struct condition, within),
	};

	return (struct vec *)((char *)condition + offsets[at]);
}

static const struct named_list *find_list(struct rules *rules, struct diags *diags, struct place place,
					  const char *name)
{
	const struct named_list *list = rules_find_list(rules, name);
	const char *names[RULE_LISTS_MAX], *nearest;

	if (list)
		return list;
	for (size_t at = 0; at < rules->lists.count; at++)
		names[at] = ((struct named_list *)rules->lists.items)[at].name;
	nearest = names_nearest(names, rules->lists.count, name);
	diag_add(diags, place, "there is no list @%s%s%s%s", name, nearest ? "; did you mean \"@" : "",
		 nearest ? nearest : "", nearest ? "\"?" : "");
	return NULL;
}

/*
 * "@name" becomes what the list has. A list alone is lent as it is, which is most of them: the same memory then, for
 * whoever looks whether two vectors are the same.
 */
static void resolve(struct rules *rules, struct diags *diags, struct place place, struct vec *patterns)
{
	struct vec resolved = { 0 };
	const char *const *items = patterns->items;
	const struct named_list *list = NULL;
	size_t plain = 0;

	while (plain < patterns->count && items[plain][0] != '@')
		plain++;
	if (plain == patterns->count)
		return;
	for (size_t i = 0; i < patterns->count; i++) {
		list = items[i][0] == '@' ? find_list(rules, diags, place, items[i] + 1) : NULL;
		if (list && patterns->count == 1) {
			*patterns = list->patterns;
			return;
		}
		if (items[i][0] != '@')
			vec_add_text(&rules->arena, &resolved, items[i]);
		for (size_t at = 0; list && at < list->patterns.count; at++)
			vec_add_text(&rules->arena, &resolved, ((const char **)list->patterns.items)[at]);
	}
	*patterns = resolved;
}

static void resolve_conditions(struct rules *rules, struct diags *diags, struct place place, struct vec *conditions)
{
	struct condition *items = conditions->items;

	for (size_t i = 0; i < conditions->count; i++) {
		struct condition *condition = &items[i];

		for (size_t at = 0; at < CONDITION_PATTERNS; at++)
			resolve(rules, diags, place, condition_patterns(condition, at));
		for (size_t at = 0; at < CONDITION_NESTED; at++)
			resolve_conditions(rules, diags, place, condition_nested(condition, at));
	}
}

static void note_needs(struct rules *rules, struct condition *condition)
{
	struct vec first = condition->operands;
	const struct vec *const vecs[CONDITION_NEEDS] = {
		[NEED_PROGRAM] = &condition->programs, [NEED_OPERAND] = &first, [NEED_ARGUMENT] = &condition->arguments,
		[NEED_TEXT] = &condition->text, [NEED_VALUE] = &condition->values, [NEED_HOST] = &condition->hosts,
	};

	first.count = first.count ? 1 : 0;
	for (size_t i = 0; i < CONDITION_NEEDS; i++)
		condition->needs[i] = filter_add(&rules->filter, &rules->arena, vecs[i]);
	condition->need_not = filter_add(&rules->filter, &rules->arena, &condition->without_arguments);
}

static void note_all_needs(struct rules *rules, struct vec *conditions)
{
	struct condition *items = conditions->items;

	for (size_t i = 0; i < conditions->count; i++) {
		note_needs(rules, &items[i]);
		for (size_t at = 0; at < CONDITION_NESTED; at++)
			note_all_needs(rules, condition_nested(&items[i], at));
	}
}

/* That of texts is none: it may come in as well. */
static uint16_t first_need(const struct condition *condition)
{
	static const enum condition_need order[] = { NEED_PROGRAM, NEED_ARGUMENT, NEED_OPERAND, NEED_VALUE, NEED_HOST };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (condition->needs[order[i]] != FILTER_ALWAYS)
			return condition->needs[order[i]];
	return FILTER_ALWAYS;
}

static void index_condition(struct rules *rules, uint32_t at, const struct condition *condition)
{
	for (unsigned kind = 0; kind < OPERATION_KIND_COUNT; kind++) {
		struct rule_entry *entry;

		if (condition->kinds && !(condition->kinds & 1U << kind))
			continue;
		entry = vec_add(&rules->arena, &rules->by_kind[kind], sizeof *entry);
		if (!entry)
			return;
		*entry = (struct rule_entry){ .rule = at, .condition = condition, .need = first_need(condition) };
	}
}

static void index_rule(struct rules *rules, uint32_t at, struct rule *rule)
{
	const struct condition *items = rule->match.items;

	for (size_t i = 0; i < rule->match.count; i++) {
		rule->is_contained |= (items[i].context & CONTEXT_CONTAINED) != 0;
		index_condition(rules, at, &items[i]);
	}
}

void rules_index(struct rules *rules)
{
	struct rule *items = rules->rules.items;

	for (size_t i = 0; i < rules->rules.count; i++) {
		note_all_needs(rules, &items[i].match);
		note_all_needs(rules, &items[i].except);
		index_rule(rules, (uint32_t)i, &items[i]);
	}
}

bool rules_finish(struct rules *rules, struct diags *diags)
{
	size_t errors = diags->count;
	struct named_list *lists = rules->lists.items;
	struct rule *items = rules->rules.items;

	/* Lists in lists, one level: what is named stands in some file. */
	for (size_t i = 0; i < rules->lists.count; i++)
		resolve(rules, diags, lists[i].place, &lists[i].patterns);
	for (size_t i = 0; i < rules->rules.count; i++) {
		resolve_conditions(rules, diags, items[i].place, &items[i].match);
		resolve_conditions(rules, diags, items[i].place, &items[i].except);
	}
	tables_finish(&rules->tables, diags);
	rules_index(rules);
	return diags->count == errors && !rules->arena.has_failed;
}
