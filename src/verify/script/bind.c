/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "verify/script/expression.h"

static void bind_variable(struct script *script, const char *name, const struct value *value, bool declare)
{
	if (declare)
		script_declare(script, name, value);
	else
		script_assign(script, name, value);
}

/* Item i of what is taken apart. */
static const struct value *part_of(struct script *script, const struct value *value, uint32_t i)
{
	if (value->kind == VALUE_LIST && i < value->count)
		return value->items[i];
	return value_taint(script->arena, value);
}

static void bind_list(struct script *script, uint32_t target, const struct value *value, bool declare)
{
	uint32_t i = 0;

	for (uint32_t at = script->syntax.nodes[target].first; at; at = script->syntax.nodes[at].next, i++) {
		if (script->syntax.nodes[at].kind == NODE_SPREAD) {
			const struct value *rest =
				value->kind == VALUE_LIST && i <= value->count
					? value_list(script->arena, value->items + i, value->count - i)
					: value_taint(script->arena, value);

			script_bind(script, script->syntax.nodes[at].first, rest, declare);
		} else {
			script_bind(script, at, part_of(script, value, i), declare);
		}
	}
}

/* {a, b: c, d = 1, ...rest} = value */
static void bind_map(struct script *script, uint32_t target, const struct value *value, bool declare)
{
	const struct syntax *syntax = &script->syntax;

	for (uint32_t at = syntax->nodes[target].first; at; at = syntax->nodes[at].next) {
		uint32_t key = syntax_child(syntax, at, FIELD_KEY),
			 inner = syntax_child(syntax, at, FIELD_VALUE);
		uint32_t name = at;

		if (syntax->nodes[at].kind == NODE_PAIR && key && inner) {
			const char *text =
				syntax->nodes[key].kind == NODE_KEY ? script_text(script, key) : NULL;
			const struct value *of =
				text ? script_member(script, value, text, at)
				     : script_index(script, value, script_value(script, key), at);

			script_bind(script, inner, of, declare);
			continue;
		}
		if (syntax->nodes[at].kind == NODE_SPREAD) {
			script_bind(script, syntax->nodes[at].first, value_taint(script->arena, value),
				    declare);
			continue;
		}
		if (syntax->nodes[at].kind == NODE_DEFAULT)
			name = syntax_child(syntax, at, FIELD_TARGET);
		if (name)
			bind_variable(script, script_text(script, name),
				      script_member(script, value, script_text(script, name), at), declare);
	}
}

/* A map with one more key, or what is in it as something unknown. */
static const struct value *with_item(struct script *script, const struct value *map, const char *key,
				     const struct value *value)
{
	struct value *made = value_new(script->arena, VALUE_MAP);
	const struct value **items = arena_alloc(script->arena, (map->count + 1) * sizeof *items);
	const char **keys = arena_alloc(script->arena, (map->count + 1) * sizeof *keys);

	if (!made || !items || !keys)
		return map;
	*made = *map;
	if (map->count) {
		memcpy(items, map->items, map->count * sizeof *items);
		memcpy(keys, map->keys, map->count * sizeof *keys);
	}
	items[map->count] = value;
	keys[map->count] = key;
	made->items = items;
	made->gathered = NULL;
	made->keys = keys;
	made->count++;
	return made;
}

void script_replace(struct script *script, uint32_t place, const struct value *value)
{
	const char *dotted = script_dotted(script, place), *root;
	const struct value *old;

	if (script->syntax.nodes[place].kind == NODE_NAME)
		script_assign(script, script_text(script, place), value);
	if (!dotted)
		return;
	script_assign(script, dotted, value);
	root = arena_text_n(script->arena, dotted, strcspn(dotted, "."));
	old = root && !str_equal(root, "self") && !str_equal(root, "this") ? script_lookup(script, root) : NULL;
	if (old && old->kind != VALUE_FUNCTION)
		script_assign(script, root, value_also_from(script->arena, old, value_taint(script->arena, value)));
}

static void bind_index(struct script *script, uint32_t target, const struct value *value)
{
	uint32_t object = syntax_child(&script->syntax, target, FIELD_VALUE), size;
	uint32_t index = syntax_child(&script->syntax, target, FIELD_INDEX);
	const struct value *old = object ? script_value(script, object) : &value_nothing;
	const struct value *key = index ? script_value(script, index) : &value_nothing;
	const char *text = value_is_exact(key) ? value_chars(script->arena, key, &size) : NULL;

	if (script->language->library->assign(script, old, key, value, target) || !object)
		return;
	if (text && old->kind == VALUE_MAP && !old->other && old->count < SCRIPT_REPEAT_MAX)
		value = with_item(script, old, text, value);
	else
		value = value_also_from(script->arena, old, value);
	script_replace(script, object, value);
}

static void bind_member(struct script *script, uint32_t target, const struct value *value)
{
	uint32_t object = syntax_child(&script->syntax, target, FIELD_VALUE);
	uint32_t name = syntax_child(&script->syntax, target, FIELD_MEMBER);
	const char *dotted = script_dotted(script, target), *text;
	const struct value *old = object ? script_value(script, object) : &value_nothing;

	if (!name)
		return;
	text = script_text(script, name);
	if (script->language->library->assign(script, old, value_text(script->arena, text, strlen(text), 0), value,
					      target))
		return;
	if (dotted)
		script_assign(script, dotted, value);
}

void script_bind(struct script *script, uint32_t target, const struct value *value, bool declare)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t inner;

	if (!target || !script_step(script) || script->bounds.depth >= script->bounds.depth_max)
		return;
	script->bounds.depth++;
	switch (syntax->nodes[target].kind) {
	case NODE_NAME:
	case NODE_SHORT:
	case NODE_KEY:
		bind_variable(script, script_text(script, target), value, declare);
		break;
	case NODE_MEMBER:
		bind_member(script, target, value);
		break;
	case NODE_INDEX:
		bind_index(script, target, value);
		break;
	case NODE_LIST:
		bind_list(script, target, value, declare);
		break;
	case NODE_MAP:
		bind_map(script, target, value, declare);
		break;
	case NODE_DEFAULT:
		inner = syntax_child(syntax, target, FIELD_VALUE);
		if (inner && value->kind == VALUE_UNKNOWN && !value->name)
			value = value_either(script->arena, script_value(script, inner), value);
		script_bind(script, syntax_child(syntax, target, FIELD_TARGET), value, declare);
		break;
	default:
		/* Types, splats, parentheses: what is inside. */
		inner = syntax_child(syntax, target, FIELD_TARGET);
		script_bind(script, inner ? inner : syntax->nodes[target].first, value, declare);
		break;
	}
	script->bounds.depth--;
}

static const struct value *assign(struct script *script, uint32_t node, bool declare)
{
	uint32_t target = syntax_child(&script->syntax, node, FIELD_TARGET);
	uint32_t from = syntax_child(&script->syntax, node, FIELD_VALUE);
	const struct value *value = from ? script_value(script, from) : &value_nothing;

	/* A field of a class is a property of each of its objects. */
	if (!target)
		target = syntax_child(&script->syntax, node, FIELD_MEMBER);
	script_bind(script, target, value, declare);
	return value;
}

const struct value *statement_assign(struct script *script, uint32_t node)
{
	return assign(script, node, false);
}

const struct value *statement_declare(struct script *script, uint32_t node)
{
	return assign(script, node, true);
}

/* i++ has no value of its own, and `+=` is `+` with the sign cut off. */
const struct value *statement_augment(struct script *script, uint32_t node)
{
	uint32_t target = syntax_child(&script->syntax, node, FIELD_TARGET);
	uint32_t from = syntax_child(&script->syntax, node, FIELD_VALUE);
	uint32_t operator= syntax_child(&script->syntax, node, FIELD_OPERATOR);
	const struct value *old, *value;
	char *text = arena_text(script->arena, operator? script_text(script, operator) : "?");

	if (!target && !from)
		return &value_nothing;
	old = script_value(script, target ? target : from);
	value = target && from ? script_value(script, from) : value_number(script->arena, 1);
	if (text && *text)
		text[target ? strlen(text) - 1 : 1] = '\0';
	value = script_binary(script, text ? text : "?", old, value, node);
	script_bind(script, target ? target : from, value, !script->language->assigns_outward);
	return value;
}
