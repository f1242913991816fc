/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/script/expression.h"

#include <string.h>

#include "base/str.h"
#include "verify/script/text.h"

/* A list as it is put together. */
struct items {
	const struct value *items[VALUE_ITEMS_MAX];
	const char *keys[VALUE_ITEMS_MAX];
	size_t count;
	bool is_cut;
};

/* The arrays are written before they are read, and too long to be cleared for each list. */
static struct items *items_new(void)
{
	struct items *items = malloc(sizeof *items);

	if (items) {
		items->count = 0;
		items->is_cut = false;
	}
	return items;
}

static const struct value *expression_name(struct script *script, uint32_t node)
{
	const char *name = script_text(script, node);
	const struct value *value = script_lookup(script, name);

	return value ? value : script->language->unbound(script, name, node);
}

static const struct value *expression_text(struct script *script, uint32_t node)
{
	return script->language->text(script, node);
}

static const struct value *expression_texts(struct script *script, uint32_t node)
{
	const struct value *all = NULL;

	for (uint32_t child = script->syntax.nodes[node].first; child;
	     child = script->syntax.nodes[child].next) {
		const struct value *one = script_value(script, child);

		all = all ? script_binary(script, "+", all, one, child) : one;
	}
	return all;
}

static const struct value *expression_part(struct script *script, uint32_t node)
{
	uint32_t value = syntax_child(&script->syntax, node, FIELD_VALUE);

	return value ? script_value(script, value) : script_children(script, node);
}

static const struct value *expression_number(struct script *script, uint32_t node)
{
	return text_number(script, script_text(script, node));
}

static const struct value *expression_true(struct script *script, uint32_t node)
{
	return value_number(script->arena, 1);
}

static const struct value *expression_false(struct script *script, uint32_t node)
{
	return value_number(script->arena, 0);
}

static const struct value *expression_none(struct script *script, uint32_t node)
{
	return &value_nothing;
}

static void put_item(struct items *items, const char *key, const struct value *value)
{
	if (items->count >= VALUE_ITEMS_MAX) {
		items->is_cut = true;
		return;
	}
	items->keys[items->count] = key;
	items->items[items->count++] = value;
}

static void put_all(struct items *items, const struct value *value)
{
	for (uint32_t i = 0; i < value->count; i++)
		put_item(items, value->kind == VALUE_MAP ? value->keys[i] : NULL, value->items[i]);
	items->is_cut |= value->is_cut;
}

static void put_element(struct script *script, struct items *items, uint32_t child)
{
	const struct value *value = script_value(script, child);

	if (script->syntax.nodes[child].kind != NODE_SPREAD) {
		put_item(items, NULL, value);
	} else if (value->kind == VALUE_LIST && !value->other) {
		put_all(items, value);
	} else {
		put_item(items, NULL, value_taint(script->arena, value));
		items->is_cut = true;
	}
}

static const struct value *make_list(struct script *script, const struct items *items)
{
	struct value *list = value_new(script->arena, VALUE_LIST);
	const struct value *made = value_list(script->arena, items->items, items->count);

	if (!list || made->kind != VALUE_LIST)
		return &value_nothing;
	*list = *made;
	list->is_cut |= items->is_cut;
	return list;
}

static const struct value *expression_list(struct script *script, uint32_t node)
{
	struct items *items = items_new();
	const struct value *list;

	if (!items)
		return script_other(script, node);
	for (uint32_t child = script->syntax.nodes[node].first; child;
	     child = script->syntax.nodes[child].next)
		put_element(script, items, child);
	list = make_list(script, items);
	free(items);
	return list;
}

/* The key of a pair; NULL where it is not known. */
static const char *pair_key(struct script *script, uint32_t pair)
{
	uint32_t key = syntax_child(&script->syntax, pair, FIELD_KEY);
	const struct value *value;
	uint32_t size;

	if (!key)
		return NULL;
	/* A name is itself in JavaScript, where the property's kind says so, and a variable in Python. */
	if (script->syntax.nodes[key].kind == NODE_KEY)
		return script_text(script, key);
	value = script_value(script, key);
	return value_is_exact(value) || value->kind == VALUE_NUMBER ? value_chars(script->arena, value, &size)
								    : NULL;
}

static void put_pair(struct script *script, struct items *items, uint32_t child)
{
	const struct syntax_node *at = &script->syntax.nodes[child];
	uint32_t value_node = syntax_child(&script->syntax, child, FIELD_VALUE);
	const struct value *value;

	if (at->kind == NODE_PAIR) {
		const char *key = pair_key(script, child);

		value = value_node ? script_value(script, value_node) : &value_nothing;
		if (key)
			script->language->library->lifecycle(script, "(pair)", key, value, child);
		put_item(items, key, script->language->library->used(script, value, child));
	} else if (at->kind == NODE_SHORT) {
		put_item(items, script_text(script, child), expression_name(script, child));
	} else if (at->kind == NODE_FUNCTION) {
		uint32_t name = syntax_child(&script->syntax, child, FIELD_TARGET);

		put_item(items, name ? script_text(script, name) : NULL, script_make_function(script, child));
	} else {
		value = script->language->library->used(script, script_value(script, child), child);
		if (value->kind == VALUE_MAP)
			put_all(items, value);
		else
			put_item(items, NULL, value);
		items->is_cut |= value->kind != VALUE_MAP;
	}
}

static const struct value *expression_map(struct script *script, uint32_t node)
{
	struct items *items = items_new();
	struct value *map = value_new(script->arena, VALUE_MAP);
	const struct value *list;
	const char **keys;

	if (!items || !map) {
		free(items);
		return script_other(script, node);
	}
	for (uint32_t child = script->syntax.nodes[node].first; child;
	     child = script->syntax.nodes[child].next)
		put_pair(script, items, child);
	keys = arena_alloc(script->arena, items->count * sizeof *keys + 1);
	if (keys) {
		memcpy(keys, items->keys, items->count * sizeof *keys);
		list = value_list(script->arena, items->items, items->count);
		map->items = list->items;
		map->gathered = list->gathered;
		map->keys = keys;
		map->count = list->count;
		map->is_cut = items->is_cut || list->is_cut;
	}
	free(items);
	return map;
}

static const struct value *expression_member(struct script *script, uint32_t node)
{
	uint32_t object = syntax_child(&script->syntax, node, FIELD_VALUE);
	uint32_t name = syntax_child(&script->syntax, node, FIELD_MEMBER);
	const char *dotted = script_dotted(script, node);
	const struct value *value = dotted ? script_lookup(script, dotted) : NULL;

	if (value)
		return value;
	if (!object || !name)
		return script_other(script, node);
	return script_member(script, script_value(script, object), script_text(script, name), node);
}

static const struct value *expression_index(struct script *script, uint32_t node)
{
	uint32_t object = syntax_child(&script->syntax, node, FIELD_VALUE);
	uint32_t index = syntax_child(&script->syntax, node, FIELD_INDEX);
	const struct value *value;

	if (!object || !index)
		return script_other(script, node);
	value = script_value(script, object);
	if (script->syntax.nodes[index].kind == NODE_SLICE)
		return text_slice(script, value, index);
	return script_index(script, value, script_value(script, index), node);
}

/* a + b + c + … stands as deep as it is long, so it is gone through from the inside without going down. */
static const struct value *expression_binary(struct script *script, uint32_t node)
{
	uint32_t at = node, left = syntax_child(&script->syntax, node, FIELD_TARGET);
	const struct value *value;

	while (left && script->syntax.nodes[left].kind == NODE_BINARY) {
		at = left;
		left = syntax_child(&script->syntax, at, FIELD_TARGET);
	}
	value = left ? script_value(script, left) : &value_nothing;
	for (;; at = script->syntax.nodes[at].parent) {
		uint32_t operator= syntax_child(&script->syntax, at, FIELD_OPERATOR);
		uint32_t right = syntax_child(&script->syntax, at, FIELD_VALUE);

		if (!script_step(script))
			return &value_nothing;
		value = script_binary(script, operator? script_text(script, operator) : "?", value,
				      right ? script_value(script, right) : &value_nothing, at);
		if (at == node)
			return value;
	}
}

static const struct value *expression_unary(struct script *script, uint32_t node)
{
	uint32_t operator= syntax_child(&script->syntax, node, FIELD_OPERATOR);
	uint32_t argument = syntax_child(&script->syntax, node, FIELD_VALUE);
	const struct value *value = argument ? script_value(script, argument) : script_children(script, node);

	if (operator&& value->kind == VALUE_NUMBER && value->number != INT64_MIN) {
		if (script_is(script, operator, "-"))
			return value_number(script->arena, -value->number);
		if (script_is(script, operator, "~"))
			return value_number(script->arena, ~value->number);
		if (script_is(script, operator, "+"))
			return value;
	}
	return operator&& script_is(script, operator, "+") ? value_taint(script->arena, value)
							   : &value_nothing;
}

/* Python writes the value before the condition, and neither has a field. */
static const struct value *expression_choice(struct script *script, uint32_t node)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t body = syntax_child(syntax, node, FIELD_BODY),
		 other = syntax_child(syntax, node, FIELD_ELSE);
	uint32_t condition = syntax_child(syntax, node, FIELD_CONDITION);
	const struct value *value;

	if (!condition) {
		body = syntax->nodes[node].first;
		condition = body ? syntax->nodes[body].next : 0;
		other = condition ? syntax->nodes[condition].next : 0;
	}
	if (condition)
		script_value(script, condition);
	value = body ? script_branch(script, body, CONTEXT_CONDITION) : &value_nothing;
	return other ? value_either(script->arena, value, script_branch(script, other, CONTEXT_CONDITION))
		     : value;
}

static const struct value *expression_compare(struct script *script, uint32_t node)
{
	uint32_t operator= syntax_child(&script->syntax, node, FIELD_OPERATOR);
	uint32_t left = script->syntax.nodes[node].first, right = syntax_last(&script->syntax, node);

	if (operator&& left && left != right && script->syntax.nodes[left].next == operator&&
	    script->syntax.nodes[operator].next == right)
		return script_binary(script, script_text(script, operator), script_value(script, left),
				     script_value(script, right), node);
	script_children(script, node);
	return &value_nothing;
}

static const struct value *expression_function(struct script *script, uint32_t node)
{
	uint32_t name = syntax_child(&script->syntax, node, FIELD_TARGET);
	const struct value *function = script_make_function(script, node);

	if (name)
		script_declare(script, script_text(script, name), function);
	return function;
}

static const struct value *expression_import(struct script *script, uint32_t node)
{
	script->language->import(script, node);
	return &value_nothing;
}

static const struct value *expression_this(struct script *script, uint32_t node)
{
	const struct value *value = script_lookup(script, "this");

	return value ? value : &value_nothing;
}

const script_handler expression_handlers[NODE_KIND_COUNT] = {
	[NODE_BLOCK] = script_children,
	[NODE_SAME] = script_children,
	[NODE_NAME] = expression_name,
	[NODE_SHORT] = expression_name,
	[NODE_TEXT] = expression_text,
	[NODE_TEXTS] = expression_texts,
	[NODE_PART] = expression_part,
	[NODE_NUMBER] = expression_number,
	[NODE_TRUE] = expression_true,
	[NODE_FALSE] = expression_false,
	[NODE_NONE] = expression_none,
	[NODE_KEY] = expression_none,
	[NODE_LIST] = expression_list,
	[NODE_MAP] = expression_map,
	[NODE_SPREAD] = script_children,
	[NODE_SPREAD_MAP] = script_children,
	[NODE_KEYWORD] = expression_part,
	[NODE_MEMBER] = expression_member,
	[NODE_INDEX] = expression_index,
	[NODE_CALL] = script_call,
	[NODE_NEW] = script_call,
	[NODE_BINARY] = expression_binary,
	[NODE_UNARY] = expression_unary,
	[NODE_CHOICE] = expression_choice,
	[NODE_COMPARE] = expression_compare,
	[NODE_ASSIGN] = statement_assign,
	[NODE_DECLARE] = statement_declare,
	[NODE_AUGMENT] = statement_augment,
	[NODE_AS] = statement_as,
	[NODE_FUNCTION] = expression_function,
	[NODE_CLASS] = statement_class,
	[NODE_RETURN] = statement_return,
	[NODE_GLOBAL] = statement_global,
	[NODE_IF] = statement_if,
	[NODE_BRANCH] = statement_branch,
	[NODE_LOOP] = statement_loop,
	[NODE_EACH] = statement_each,
	[NODE_COMPREHENSION] = statement_comprehension,
	[NODE_IMPORT] = expression_import,
	[NODE_IMPORT_FROM] = expression_import,
	[NODE_THIS] = expression_this,
};
