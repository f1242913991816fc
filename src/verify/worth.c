/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/worth.h"

#include <string.h>

#include "base/str.h"
#include "verify/command/unwrap.h"
#include "verify/model/language.h"
#include "verify/rules/compiled.h"

/*
 * A command alone, of a program that no table knows, is one OP_COMMAND: all words exact, in no context, with no traits,
 * fed by nothing, started by nothing. Conditions that want more than that can hold in a script only, and what is a
 * script, or may start something, is judged always. So the question is which programs and arguments the others want.
 */

enum { TABLE_MAX = 512 };

static bool is_all(const char *pattern)
{
	return pattern[strspn(pattern, "*")] == '\0';
}

static void add(struct arena *arena, struct vec *out, const char *text)
{
	if (*text)
		vec_add_text(arena, out, text);
}

static void add_table(struct arena *arena, struct vec *out, size_t (*table)(const char **names, size_t max))
{
	const char *names[TABLE_MAX];
	size_t count = table(names, TABLE_MAX);

	for (size_t i = 0; i < count; i++)
		add(arena, out, names[i]);
}

/* Reading alone is never worth a look: what it leads to is another command. */
static void add_rows(struct arena *arena, struct vec *out, const struct tables *tables)
{
	const struct program_effect *programs = tables->programs.items;
	const struct wrapper *wrappers = tables->wrappers.items;

	for (size_t i = 0; i < tables->programs.count; i++)
		if (programs[i].like || programs[i].kind != OP_READ)
			add(arena, out, programs[i].name);
	for (size_t i = 0; i < tables->wrappers.count; i++)
		add(arena, out, wrappers[i].name);
}

static size_t others(const char **names, size_t max)
{
	/* What command.c looks into beyond its tables. */
	static const char *const known[] = { "awk", "gawk", "git", "mawk", "mkfs.*", "nawk", "ssh" };
	size_t count = 0;

	while (count < ARRAY_SIZE(known) && count < max) {
		names[count] = known[count];
		count++;
	}
	return count;
}

/* Whether it can hold for an operation of this kind that a command alone may be, or have. */
static bool may_be_alone(const struct condition *condition, enum operation_kind kind)
{
	return (!condition->kinds || condition->kinds & 1U << kind) && !condition->context && !condition->traits &&
	       !(condition->words & ~(uint32_t)WORD_EXACT) && !condition->is_unknown && !condition->from.count &&
	       !condition->within.count;
}

/* "~" is any home, and where it is nobody knows here; what is not known is no argument of a command that is. */
static void add_word(struct arena *arena, struct vec *words, const char *pattern)
{
	if (!strchr(pattern, WORD_UNKNOWN))
		add(arena, words, *pattern == '~' ? arena_format(arena, "*%s", pattern + 1) : pattern);
}

static void add_words(struct arena *arena, struct vec *words, const struct vec *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		add_word(arena, words, ((const char *const *)patterns->items)[i]);
}

/* The words that a command of any program must have. False: it need not have any. */
static bool add_wanted_words(struct arena *arena, struct vec *words, const struct condition *condition)
{
	const struct vec *wanted[] = { &condition->text, &condition->arguments };

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (wanted[i]->count) {
			add_words(arena, words, wanted[i]);
			return true;
		}
	}
	if (condition->operands.count)
		add_word(arena, words, ((const char *const *)condition->operands.items)[0]);
	return condition->operands.count > 0;
}

static void add_condition(struct worth *worth, struct arena *arena, const struct condition *condition)
{
	bool is_any = !condition->programs.count;

	/* Programs that only read stand in no table here: there are many, and what they read says it. */
	if (condition->kinds & 1U << OP_READ && may_be_alone(condition, OP_READ))
		add_words(arena, &worth->words, &condition->arguments);
	if (!may_be_alone(condition, OP_COMMAND))
		return;
	for (size_t i = 0; i < condition->programs.count; i++) {
		const char *pattern = ((const char *const *)condition->programs.items)[i];

		if (is_all(pattern))
			is_any = true;
		else if (strchr(pattern, '/'))
			add_word(arena, &worth->words, pattern);
		else
			add(arena, &worth->programs, pattern);
	}
	if (is_any && !add_wanted_words(arena, &worth->words, condition))
		add(arena, &worth->programs, "*");
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_once(struct vec *texts)
{
	const char **items = texts->items;
	size_t count = 0;

	if (!texts->count)
		return;
	qsort(items, texts->count, sizeof *items, compare_texts);
	for (size_t i = 0; i < texts->count; i++)
		if (!count || !str_equal(items[count - 1], items[i]))
			items[count++] = items[i];
	texts->count = count;
}

struct worth worth_of(const struct rules *rules, struct arena *arena)
{
	const struct rule *items = rules->rules.items;
	struct worth worth = { 0 };

	add_table(arena, &worth.programs, language_interpreters);
	add_table(arena, &worth.programs, unwrap_programs);
	add_table(arena, &worth.programs, others);
	add_rows(arena, &worth.programs, &rules->tables);
	for (size_t i = 0; i < rules->rules.count; i++)
		for (size_t at = 0; at < items[i].match.count; at++)
			add_condition(&worth, arena, &((const struct condition *)items[i].match.items)[at]);
	sort_once(&worth.programs);
	sort_once(&worth.words);
	return worth;
}
