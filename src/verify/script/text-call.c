/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "verify/script/text.h"

static script_function find_function(const char *name)
{
	size_t low = 0, high = text_function_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, text_functions[middle].name);

		if (!order)
			return text_functions[middle].function;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* What it is asked of may be several things: each of them, and so is the answer. */
static const struct value *for_each(struct script *script, struct call *call, script_function function,
				    const struct value **subject)
{
	const struct value *whole = *subject, *all = NULL;

	for (const struct value *one = whole; one; one = one->other) {
		const struct value *made;

		*subject = value_alone(script->arena, one);
		made = function(script, call);
		if (made)
			all = all ? value_either(script->arena, all, made) : made;
	}
	*subject = whole;
	return all;
}

const struct value *text_call(struct script *script, struct call *call)
{
	script_function function = call->callee->name ? find_function(call->callee->name) : NULL;
	char name[VALUE_NAME_MAX];

	if (function)
		return call->count ? for_each(script, call, function, &call->arguments[0])
				   : function(script, call);
	if (!call->self || !call->method || str_format(name, sizeof name, ".%s", call->method) < 0)
		return NULL;
	function = find_function(name);
	return function ? for_each(script, call, function, &call->self) : NULL;
}

/* The bound that stands in bytes of the slice before its next ":"; what is computed is not known. */
static bool read_bound(struct script *script, uint32_t *child, uint32_t until, int64_t *ret_bound,
		       bool *ret_is_given)
{
	const struct syntax_node *node = *child ? &script->syntax.nodes[*child] : NULL;
	const struct value *value;

	*ret_is_given = false;
	if (!node || node->start >= until)
		return true;
	value = script_value(script, *child);
	*child = script->syntax.nodes[*child].next;
	*ret_is_given = true;
	*ret_bound = value->number;
	return value->kind == VALUE_NUMBER && !value->other;
}

/* Where the next ":" is that stands in the slice itself, not in what is computed in it. */
static uint32_t next_colon(const struct script *script, uint32_t from, uint32_t end, uint32_t child)
{
	while (from < end) {
		if (child && from >= script->syntax.nodes[child].start &&
		    from < script->syntax.nodes[child].end) {
			from = script->syntax.nodes[child].end;
			child = script->syntax.nodes[child].next;
			continue;
		}
		if (script->syntax.text[from] == ':')
			return from;
		from++;
	}
	return end;
}

static const struct value *slice_text(struct script *script, const struct value *value,
				      const int64_t bounds[3], const bool given[3])
{
	int64_t size = value->size, step = given[2] ? bounds[2] : 1, start, end;
	char *text = arena_alloc(script->arena, value->size + 1);
	uint32_t made = 0;

	if (!text || !step)
		return value_taint(script->arena, value);
	start = given[0] ? bounds[0] : step > 0 ? 0 : size - 1;
	end = given[1] ? bounds[1] : step > 0 ? size : -1 - size;
	start = start < 0 && given[0] ? start + size : start;
	end = end < 0 && given[1] ? end + size : end;
	if (start < 0)
		start = step > 0 ? 0 : -1;
	if (start >= size)
		start = step > 0 ? size : size - 1;
	for (int64_t i = start; i >= 0 && i < size && (step > 0 ? i < end : i > end) && made < value->size;
	     i += step)
		text[made++] = value->text[i];
	return value_also_from(script->arena,
			       value_text_holes(script->arena, text, made,
						value->flags | (step < 0 ? WORD_FROM_DECODED : 0)),
			       value);
}

static const struct value *slice_list(struct script *script, const struct value *list,
				      const int64_t bounds[3], const bool given[3])
{
	int64_t size = list->count, start = given[0] ? bounds[0] : 0, end = given[1] ? bounds[1] : size;

	if (given[2] && bounds[2] != 1)
		return value_taint(script->arena, list);
	start = start < 0 ? start + size : start;
	end = end < 0 ? end + size : end;
	start = start < 0 ? 0 : start > size ? size : start;
	end = end < start ? start : end > size ? size : end;
	return value_list(script->arena, list->items + start, (size_t)(end - start));
}

const struct value *text_slice(struct script *script, const struct value *value, uint32_t slice)
{
	const struct syntax_node *node = &script->syntax.nodes[slice];
	uint32_t at = node->start,
		 end = node->end > script->syntax.size ? (uint32_t)script->syntax.size : node->end;
	uint32_t child = node->first;
	int64_t bounds[3] = { 0 };
	bool given[3] = { false };

	for (unsigned i = 0; i < 3 && at <= end; i++) {
		uint32_t until = next_colon(script, at, end, child);

		if (!read_bound(script, &child, until, &bounds[i], &given[i]) || bounds[i] > INT32_MAX ||
		    bounds[i] < INT32_MIN)
			return value_taint(script->arena, value);
		at = until + 1;
	}
	if (value->kind == VALUE_LIST && !value->other)
		return slice_list(script, value, bounds, given);
	return value->kind == VALUE_TEXT && !value->other ? slice_text(script, value, bounds, given)
							  : value_taint(script->arena, value);
}
