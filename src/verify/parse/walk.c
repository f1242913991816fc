/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/parse/walk.h"

#include <string.h>

#include "os/clock.h"
#include "verify/model/words.h"
#include "verify/parse/judge.h"

bool walk_enter(struct walk *walk, TSNode node)
{
	if (walk_is_over(walk))
		return false;
	if (walk->depth >= WALK_DEPTH_MAX) {
		operations_doubt(walk->operations, DOUBT_DEPTH, walk_span(walk, node));
		return false;
	}
	walk->depth++;
	return true;
}

void walk_leave(struct walk *walk)
{
	walk->depth--;
}

bool walk_is_over(struct walk *walk)
{
	struct judgement *judgement = walk->judgement;

	if (judgement->is_over)
		return true;
	if (operations_count(walk->operations) >= OPERATIONS_MAX || walk->operations->arena->has_failed ||
	    walk->operations->arena->size > judgement->memory_max) {
		operations_doubt(walk->operations, DOUBT_SIZE, walk->outer);
		judgement->is_over = true;
	} else if (++judgement->looks > judgement->looks_max ||
		   (judgement->looks % 64 == 0 && clock_computed_ns() > judgement->deadline_ns)) {
		operations_doubt(walk->operations, DOUBT_TIME, walk->outer);
		judgement->is_over = true;
	}
	return judgement->is_over;
}

struct span walk_span_of(const struct walk *walk, uint32_t start, uint32_t end)
{
	if (!walk->is_verbatim)
		return walk->outer;
	return (struct span){ walk->outer.start + start, walk->outer.start + end };
}

struct span walk_span(const struct walk *walk, TSNode node)
{
	return walk_span_of(walk, ts_node_start_byte(node), ts_node_end_byte(node));
}

const char *walk_text(const struct walk *walk, TSNode node, uint32_t *ret_size)
{
	uint32_t start = ts_node_is_null(node) ? 0 : ts_node_start_byte(node);
	uint32_t end = ts_node_is_null(node) ? 0 : ts_node_end_byte(node);

	if (end > walk->size)
		end = walk->size;
	if (start > end)
		start = end;
	*ret_size = end - start;
	return walk->text + start;
}

const char *walk_copy(const struct walk *walk, TSNode node)
{
	uint32_t size;
	const char *text = walk_text(walk, node, &size);
	const char *copy = arena_text_n(walk->operations->arena, text, size);

	return copy ? copy : "";
}

bool node_is(TSNode node, const char *type)
{
	return !ts_node_is_null(node) && strcmp(ts_node_type(node), type) == 0;
}

TSNode node_field(TSNode node, const char *field)
{
	return ts_node_child_by_field_name(node, field, (uint32_t)strlen(field));
}

uint32_t walk_add(struct walk *walk, enum operation_kind kind, struct span span, uint32_t context)
{
	uint32_t index = operations_add(walk->operations, kind, span, walk->context | context);
	struct operation *operation = operations_get(walk->operations, index);

	if (operation)
		operation->parent = walk->parent;
	return index;
}

uint32_t walk_add_word(struct walk *walk, enum operation_kind kind, struct span span, const struct word *word)
{
	uint32_t index = walk_add(walk, kind, span, 0);

	operations_add_word(walk->operations, index, word);
	return index;
}

struct each each_child(struct walk *walk, TSNode node)
{
	return (struct each){ .walk = walk, .cursor = ts_tree_cursor_new(node) };
}

bool each_next(struct each *each)
{
	bool is_there;

	if (walk_is_over(each->walk))
		return false;
	is_there = each->is_begun ? ts_tree_cursor_goto_next_sibling(&each->cursor)
				  : ts_tree_cursor_goto_first_child(&each->cursor);
	each->at = each->is_begun ? each->at + 1 : 0;
	each->is_begun = true;
	if (is_there)
		each->node = ts_tree_cursor_current_node(&each->cursor);
	return is_there;
}

void each_done(struct each *each)
{
	ts_tree_cursor_delete(&each->cursor);
}

/* Code that is not all known is walked as far as it is: an unknown part stands there as a name. */
static const char *code_text(struct arena *arena, const struct word *code)
{
	char *text = arena_text_n(arena, code->text, code->size);

	for (char *at = text; at && *at; at++) {
		if (*at == WORD_UNKNOWN)
			*at = '_';
	}
	return text;
}

void walk_nested(struct walk *walk, struct nested *nested)
{
	struct judgement *judgement = walk->judgement;
	const struct word *code = nested->code;
	uint32_t hidden;
	struct walk inner = {
		.judgement = judgement, .operations = walk->operations, .language = nested->language,
		.size = code->size, .outer = code->span, .is_verbatim = nested->is_verbatim && walk->is_verbatim,
		.context = walk->context | nested->context | CONTEXT_NESTED, .parent = nested->parent,
		.input = nested->input, .arguments = nested->arguments, .argument_count = nested->argument_count,
		.nesting = walk->nesting + 1, .directory = walk->directory, .shell = walk->shell,
		.is_same_shell = nested->is_same_shell,
	};

	if (code->flags & WORD_FROM_DECODED)
		inner.context |= CONTEXT_DECODED;
	/* Hidden code is hidden, whatever it does. */
	hidden = nested->language == LANGUAGE_SHELL ? WORD_FROM_DECODED : WORD_FROM_DECODED | WORD_OBSCURED;
	if (!word_is_exact(code) || code->flags & hidden) {
		uint32_t index = walk_add_word(walk, OP_EVALUATE, code->span, code);

		operations_add_flows(walk->operations, &code->origins, index);
		if (code->size == 1)
			operations_add_traits(walk->operations, index, TRAIT_STARTS);
	}
	if (walk_is_over(walk))
		return;
	judgement->nested_size += code->size;
	if (inner.nesting > NESTED_MAX || ++judgement->nested_count > NESTED_TEXTS_MAX ||
	    judgement->nested_size > NESTED_SIZE_MAX) {
		operations_doubt(walk->operations, DOUBT_DEPTH, code->span);
		return;
	}
	inner.text = code_text(walk->operations->arena, code);
	if (!inner.text)
		return;
	inner.depth = walk->depth;
	judge_walk(&inner);
	nested->output = inner.output;
}
