/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "verify/script/script.h"

/* What stands behind a name, a dot or in brackets: of values that are known, of the language, of its libraries. */

const struct value *script_named(struct script *script, const char *name)
{
	const struct name_alias *alias =
		name ? TABLES_FIND(struct name_alias, &script->tables->aliases, name) : NULL;

	return value_named(script->arena, alias ? alias->means : name);
}

static const struct value *member_of_one(struct script *script, const struct value *object, const char *name,
					 uint32_t node)
{
	const struct value *found = object->kind == VALUE_MAP ? value_item(object, name) : NULL;
	const struct value *named;

	if (found)
		return found;
	found = script->language->member(script, object, name);
	if (found)
		return found;
	found = script->language->library->member(script, object, name, node);
	if (found)
		return found;
	if (!object->name)
		return value_taint(script->arena, object);
	named = script_named(script, value_name_join(script->arena, object->name, ".", name));
	named = value_also_from(script->arena, named, object);
	return object->subject ? value_with_subject(script->arena, named, object->subject) : named;
}

const struct value *script_member(struct script *script, const struct value *object, const char *name,
				  uint32_t node)
{
	const struct value *all = NULL;

	for (const struct value *one = object; one && *name; one = one->other) {
		const struct value *member =
			member_of_one(script, value_alone(script->arena, one), name, node);

		all = all ? value_either(script->arena, all, member) : member;
	}
	return all ? all : &value_nothing;
}

const char *script_dotted(struct script *script, uint32_t node)
{
	uint32_t at = node;

	for (unsigned i = 0; i < VALUE_OTHERS_MAX && script->syntax.nodes[at].kind == NODE_MEMBER; i++)
		at = syntax_child(&script->syntax, at, FIELD_VALUE);
	if (!at || at == node ||
	    script->syntax.nodes[node].end - script->syntax.nodes[node].start > VALUE_NAME_MAX)
		return NULL;
	if (script->syntax.nodes[at].kind != NODE_NAME && script->syntax.nodes[at].kind != NODE_THIS)
		return NULL;
	return script_text(script, node);
}

/* Some item of a list, where it is not known which one. */
static const struct value *any_item(struct script *script, const struct value *list)
{
	const struct value *all = NULL;

	for (uint32_t i = 0; i < list->count && i < VALUE_OTHERS_MAX; i++)
		all = all ? value_either(script->arena, all, list->items[i]) : list->items[i];
	return all ? value_also_from(script->arena, all, list) : value_taint(script->arena, list);
}

static const struct value *item_at(struct script *script, const struct value *object, int64_t at)
{
	int64_t size = object->kind == VALUE_TEXT ? object->size : object->count;

	if (at < 0)
		at += size;
	if (at < 0 || at >= size)
		return value_taint(script->arena, object);
	if (object->kind == VALUE_TEXT)
		return value_also_from(script->arena,
				       value_text_holes(script->arena, object->text + at, 1, object->flags),
				       object);
	return object->items[at];
}

static const struct value *index_of_one(struct script *script, const struct value *object,
					const struct value *index, uint32_t node)
{
	uint32_t size;
	const char *key = value_is_exact(index) ? value_chars(script->arena, index, &size) : NULL;
	const struct value *found;

	if ((object->kind == VALUE_LIST || object->kind == VALUE_TEXT) && index->kind == VALUE_NUMBER)
		return item_at(script, object, index->number);
	if (key && object->kind == VALUE_MAP && value_item(object, key))
		return value_item(object, key);
	found = script->language->library->index(script, object, index, key, node);
	if (found)
		return found;
	if (key && script->language->index_is_member)
		return member_of_one(script, object, key, node);
	if (object->count && !key)
		return any_item(script, object);
	/* Something of a library, but nobody can say what. */
	if (object->name && !key && index->kind != VALUE_NUMBER)
		return value_also_from(
			script->arena,
			value_also_from(script->arena,
					script_named(script, value_name_join(script->arena, object->name, ".", "?")),
					object),
			index);
	return value_taint(script->arena, object);
}

const struct value *script_index(struct script *script, const struct value *object, const struct value *index,
				 uint32_t node)
{
	const struct value *all = NULL;

	for (const struct value *one = object; one; one = one->other) {
		const struct value *item = index_of_one(script, value_alone(script->arena, one),
							value_alone(script->arena, index), node);

		all = all ? value_either(script->arena, all, item) : item;
	}
	return all;
}
