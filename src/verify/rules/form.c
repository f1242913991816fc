/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/rules/tables.h"

#include <stdlib.h>
#include <string.h>

#include "wire/verify.h"

/*
 * Rules as bytes (doc/format/verify-rules.md). Vectors of patterns are written once each and named by number: lists
 * make most of them the same. Read with the bounds of every frame; what does not fit is refused as a whole. Strings
 * stay where they are in the bytes.
 */

enum { FORM_VERSION = 5 };

struct condition_form {
	uint32_t kinds, context, without_context, traits, without_traits, words, without_words, is_unknown;
	uint32_t patterns[CONDITION_PATTERNS]; /* numbers of vectors; 0: none */
};

struct rule_form {
	uint32_t class, severity, confidence_max, leaves;
};

/* The least that one takes: a tag and a size, and what stands behind them. */
enum {
	STRING_SIZE_MIN = 6, COUNT_SIZE = 5, FORM_EXTRA = 5,
	CONDITION_SIZE_MIN = FORM_EXTRA + sizeof(struct condition_form) + CONDITION_NESTED * COUNT_SIZE,
	RULE_SIZE_MIN = 3 * STRING_SIZE_MIN + FORM_EXTRA + sizeof(struct rule_form) + 2 * COUNT_SIZE,
};

/* ---- to bytes ---- */

struct writer {
	struct buf *out;
	struct arena arena;
	struct vec vectors;            /* of struct vec: each with its number less one */
	struct vec by_condition;       /* of uint32_t: numbers, in the order in which conditions are written */
	size_t at;                     /* in that */
};

static uint32_t vector_number(struct writer *writer, const struct vec *patterns)
{
	struct vec *vectors = writer->vectors.items, *added;

	if (!patterns->count)
		return 0;
	/* Lists lend their texts, so the same list is the same pointers. */
	for (size_t i = 0; i < writer->vectors.count; i++)
		if (vectors[i].count == patterns->count &&
		    memcmp(vectors[i].items, patterns->items, patterns->count * sizeof(char *)) == 0)
			return (uint32_t)i + 1;
	added = vec_add(&writer->arena, &writer->vectors, sizeof *added);
	if (added)
		*added = *patterns;
	return (uint32_t)writer->vectors.count;
}

static void number_conditions(struct writer *writer, const struct vec *conditions)
{
	struct condition *items = conditions->items;

	for (size_t i = 0; i < conditions->count; i++) {
		for (size_t at = 0; at < CONDITION_PATTERNS; at++) {
			uint32_t number = vector_number(writer, condition_patterns(&items[i], at));
			uint32_t *kept = vec_add(&writer->arena, &writer->by_condition, sizeof *kept);

			if (kept)
				*kept = number;
		}
		for (size_t at = 0; at < CONDITION_NESTED; at++)
			number_conditions(writer, condition_nested(&items[i], at));
	}
}

static void put_conditions(struct writer *writer, const struct vec *conditions)
{
	struct condition *items = conditions->items;

	frame_put_u32(writer->out, (uint32_t)conditions->count);
	for (size_t i = 0; i < conditions->count; i++) {
		const struct condition *item = &items[i];
		struct condition_form form = {
			.kinds = item->kinds, .context = item->context, .without_context = item->without_context,
			.traits = item->traits, .without_traits = item->without_traits, .words = item->words,
			.without_words = item->without_words, .is_unknown = item->is_unknown,
		};

		memcpy(form.patterns, (const uint32_t *)writer->by_condition.items + writer->at, sizeof form.patterns);
		writer->at += CONDITION_PATTERNS;
		frame_put_bytes(writer->out, &form, sizeof form);
		for (size_t at = 0; at < CONDITION_NESTED; at++)
			put_conditions(writer, condition_nested(&items[i], at));
	}
}

static void put_vectors(struct writer *writer)
{
	const struct vec *vectors = writer->vectors.items;

	frame_put_u32(writer->out, (uint32_t)writer->vectors.count);
	for (size_t i = 0; i < writer->vectors.count; i++) {
		frame_put_u32(writer->out, (uint32_t)vectors[i].count);
		for (size_t at = 0; at < vectors[i].count; at++)
			frame_put_string(writer->out, ((const char *const *)vectors[i].items)[at]);
	}
}

static void put_rule(struct writer *writer, const struct rule *rule)
{
	struct rule_form form = { rule->class, rule->severity, rule->confidence_max, rule->leaves };

	frame_put_string(writer->out, rule->id);
	frame_put_string(writer->out, rule->reason);
	frame_put_string(writer->out, rule->instead);
	frame_put_bytes(writer->out, &form, sizeof form);
	put_conditions(writer, &rule->match);
	put_conditions(writer, &rule->except);
}

int rules_store(const struct rules *rules, struct buf *out)
{
	const struct rule *items = rules->rules.items;
	struct writer writer = { .out = out };
	bool has_failed;

	for (size_t i = 0; i < rules->rules.count; i++) {
		number_conditions(&writer, &items[i].match);
		number_conditions(&writer, &items[i].except);
	}
	has_failed = writer.arena.has_failed;
	frame_begin(out, VERIFY_COMPILED);
	frame_put_u32(out, FORM_VERSION);
	if (!has_failed)
		put_vectors(&writer);
	frame_put_u32(out, (uint32_t)rules->rules.count);
	for (size_t i = 0; i < rules->rules.count && !has_failed; i++)
		put_rule(&writer, &items[i]);
	tables_put(out, &rules->tables);
	arena_done(&writer.arena);
	return has_failed ? -ENOMEM : frame_end(out);
}

/* ---- from bytes ---- */

struct reader {
	struct frame frame;
	struct rules *rules;
	struct vec *vectors;           /* number 0 is the empty one */
	uint32_t vector_count;
};

static bool fail(struct reader *reader)
{
	reader->frame.error = reader->frame.error ? reader->frame.error : -EBADMSG;
	return false;
}

/* How many of what takes at least size bytes each: more than there can be is refused before memory is taken for it. */
static uint32_t get_count(struct reader *reader, size_t size)
{
	uint32_t count = frame_get_u32(&reader->frame);

	if (count > (reader->frame.size - reader->frame.at) / size) {
		(void)!fail(reader);
		return 0;
	}
	return count;
}

static bool get_form(struct reader *reader, void *form, size_t size)
{
	size_t given;
	const void *bytes = frame_get_bytes(&reader->frame, &given);

	if (!bytes || given != size)
		return fail(reader);
	memcpy(form, bytes, size);
	return true;
}

static bool get_vector(struct reader *reader, struct vec *vector)
{
	uint32_t count = get_count(reader, STRING_SIZE_MIN);
	const char **texts = arena_alloc(&reader->rules->arena, count * sizeof *texts);

	if (!count || !texts)
		return fail(reader);
	for (uint32_t i = 0; i < count; i++) {
		texts[i] = frame_get_string(&reader->frame);
		if (!texts[i])
			return fail(reader);
	}
	*vector = (struct vec){ texts, count, count };
	return true;
}

static bool get_vectors(struct reader *reader)
{
	uint32_t count = get_count(reader, COUNT_SIZE + STRING_SIZE_MIN);

	reader->vectors = arena_alloc(&reader->rules->arena, (count + 1) * sizeof *reader->vectors);
	if (!reader->vectors)
		return fail(reader);
	reader->vector_count = count + 1;
	for (uint32_t i = 1; i <= count; i++)
		if (!get_vector(reader, &reader->vectors[i]))
			return false;
	return true;
}

static bool get_conditions(struct reader *reader, unsigned depth, struct vec *out);

static bool get_condition(struct reader *reader, unsigned depth, struct condition *condition)
{
	struct condition_form form;

	if (!get_form(reader, &form, sizeof form) || form.kinds >> OPERATION_KIND_COUNT || form.is_unknown > 1)
		return fail(reader);
	*condition = (struct condition){
		.kinds = form.kinds, .context = form.context, .without_context = form.without_context,
		.traits = form.traits, .without_traits = form.without_traits, .words = form.words,
		.without_words = form.without_words, .is_unknown = form.is_unknown == 1,
	};
	for (size_t i = 0; i < CONDITION_PATTERNS; i++) {
		if (form.patterns[i] >= reader->vector_count)
			return fail(reader);
		*condition_patterns(condition, i) = reader->vectors[form.patterns[i]];
	}
	for (size_t i = 0; i < CONDITION_NESTED; i++)
		if (!get_conditions(reader, depth + 1, condition_nested(condition, i)))
			return false;
	return true;
}

static bool get_conditions(struct reader *reader, unsigned depth, struct vec *out)
{
	uint32_t count = get_count(reader, CONDITION_SIZE_MIN);
	struct condition *items;

	if (!count)
		return !reader->frame.error;
	if (depth > RULE_DEPTH_MAX)
		return fail(reader);
	items = arena_alloc(&reader->rules->arena, count * sizeof *items);
	if (!items)
		return fail(reader);
	for (uint32_t i = 0; i < count; i++)
		if (!get_condition(reader, depth, &items[i]))
			return false;
	*out = (struct vec){ items, count, count };
	return true;
}

static bool get_rule(struct reader *reader, struct rule *rule)
{
	struct rule_form form;

	rule->id = frame_get_string(&reader->frame);
	rule->reason = frame_get_string(&reader->frame);
	rule->instead = frame_get_string(&reader->frame);
	if (!rule->id || !rule->reason || !rule->instead || !get_form(reader, &form, sizeof form))
		return fail(reader);
	if (form.class >= CLASS_COUNT || form.severity >= SEVERITY_COUNT || form.confidence_max >= CONFIDENCE_COUNT ||
	    form.leaves > 1)
		return fail(reader);
	rule->class = (enum finding_class)form.class;
	rule->severity = (enum severity)form.severity;
	rule->confidence_max = (enum confidence)form.confidence_max;
	rule->leaves = form.leaves == 1;
	return get_conditions(reader, 1, &rule->match) && get_conditions(reader, 1, &rule->except);
}

static bool get_rules(struct reader *reader)
{
	struct rules *rules = reader->rules;
	uint32_t count;

	if (frame_get_u32(&reader->frame) != FORM_VERSION || !get_vectors(reader))
		return fail(reader);
	count = get_count(reader, RULE_SIZE_MIN);
	/* None at all would find nothing, and say nothing of it. */
	if (!count || count > RULES_MAX)
		return fail(reader);
	for (uint32_t i = 0; i < count; i++) {
		struct rule *rule = vec_add(&rules->arena, &rules->rules, sizeof *rule);

		if (!rule || !get_rule(reader, rule))
			return fail(reader);
	}
	return tables_get(&reader->frame, &rules->arena, &rules->tables) && rules_are_whole(rules) &&
	       frame_finish(&reader->frame) == 0;
}

struct rules *rules_restore(void *bytes, size_t size)
{
	struct reader reader = { .rules = rules_new() };

	if (!reader.rules || frame_open(&reader.frame, bytes, size) < 0 || reader.frame.type != VERIFY_COMPILED ||
	    !get_rules(&reader)) {
		rules_free(reader.rules);
		return NULL;
	}
	rules_index(reader.rules);
	if (!reader.rules->arena.has_failed)
		return reader.rules;
	rules_free(reader.rules);
	return NULL;
}
