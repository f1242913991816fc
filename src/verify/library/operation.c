/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/library/library.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

/* What the handlers share: the row of a name, what a call gives to it, and the operations that are made of both. */

enum {
	OTHER_CALLS_MAX = 5000,
	SAME_CALL_MAX = 64,
	NAMED_FILES_MAX = 4,
	FLATTENED_MAX = 64,
	FLATTENED_SIZE_MAX = 8192,
	FLATTENED_DEPTH = 5,
	PARENTS_MAX = 16,
	CONDITION_TEXTS_MAX = 8,
};

const struct effect *library_find(const struct script *script, const char *name)
{
	return TABLES_FIND(struct effect, &script->tables->calls, name);
}

bool library_is_grave(const struct script *script, const char *module, size_t size)
{
	for (size_t i = 0; i < script->tables->grave.count; i++) {
		const char *grave = ((const char *const *)script->tables->grave.items)[i];

		if (strlen(grave) == size && memcmp(grave, module, size) == 0)
			return true;
	}
	return false;
}

const struct value *library_target(const struct call *call, const struct effect *effect)
{
	const struct value *value = NULL;

	if (effect->target == TARGET_SELF)
		return call->self && call->self->subject ? call->self->subject
		       : call->self			 ? call->self
							 : &value_nothing;
	if (effect->target == TARGET_LAST)
		value = call->count ? call->arguments[call->count - 1] : NULL;
	else if (effect->target >= 0 || effect->keyword)
		value = call_argument(call, effect->target, effect->keyword);
	return value ? value : &value_nothing;
}

const struct value *library_second(const struct call *call, const struct effect *effect)
{
	const struct value *value;

	if (effect->second == TARGET_SELF)
		return call->self ? call->self : &value_nothing;
	value = effect->second >= 0 || effect->second_keyword
			? call_argument(call, effect->second, effect->second_keyword)
			: NULL;
	return value ? value : &value_nothing;
}

const struct value *library_result(struct script *script, const struct call *call, uint32_t operation,
				   const struct value *subject)
{
	const struct value *result = &value_nothing;

	for (size_t i = 0; i < call->count; i++)
		result = value_also_from(script->arena, result, call->arguments[i]);
	result = value_with_origin(script->arena, result, operation);
	if (call->callee && call->callee->name)
		result = value_with_name(script->arena, result,
					 value_name_join(script->arena, call->callee->name, "()", ""));
	return subject ? value_with_subject(script->arena, result, subject) : result;
}

static const struct value *flatten(struct script *script, const struct value *all, const struct value *value,
				   unsigned depth)
{
	struct arena *arena = script->arena;

	if (value->kind != VALUE_LIST && value->kind != VALUE_MAP)
		return value_concat(arena, all, value_alone(arena, value));
	for (uint32_t i = 0; depth && i < value->count && i < FLATTENED_MAX && all->size < FLATTENED_SIZE_MAX; i++) {
		const char *key = value->kind == VALUE_MAP ? value->keys[i] : NULL;

		if (key)
			all = value_concat(arena, all, value_text(arena, key, strlen(key), 0));
		all = value_concat(arena, all, value_text(arena, key ? ":" : "", key ? 1 : 0, 0));
		all = flatten(script, all, value->items[i], depth - 1);
		all = value_concat(arena, all, value_text(arena, ",", 1, 0));
	}
	return all;
}

const struct value *library_flatten(struct script *script, const struct value *value)
{
	const struct value *text;

	if (value->kind == VALUE_MAP && !value->count && !value->is_cut)
		return value_text(script->arena, "{}", 2, 0);
	if ((value->kind != VALUE_LIST && value->kind != VALUE_MAP) || value->other || !value->count)
		return value;
	text = flatten(script, value_text(script->arena, "", 0, 0), value, FLATTENED_DEPTH);
	return value_also_from(script->arena, text, value);
}

void library_keep_content(struct script *script, const struct value *content, uint32_t operation)
{
	struct operation *to = operations_get(script->walk->operations, operation);
	struct word *kept;

	content = library_flatten(script, content);
	to = operations_get(script->walk->operations, operation);
	if (!to || to->document || content->kind != VALUE_TEXT)
		return;
	kept = arena_alloc(script->arena, sizeof *kept);
	if (!kept)
		return;
	*kept = value_word(script->arena, content, to->span);
	to->document = kept;
}

const struct value *library_nested(struct script *script, const struct call *call,
				   enum verify_language language, const struct value *code)
{
	struct walk *walk = script->walk;
	uint32_t outer_context = walk->context;
	struct value *result = value_new(script->arena, VALUE_UNKNOWN);

	walk->context |= script->context;

	for (const struct value *one = code; one; one = one->other) {
		struct word word = value_word(script->arena, one, script_span(script, call->node));
		struct nested nested = {
			.language = language,
			.code = &word,
			.context = script->context,
			.parent = walk->parent,
		};

		if (script->is_wired && script->connection != OPERATION_NONE)
			origins_add(&nested.input, script->connection);
		walk_nested(walk, &nested);
		if (result)
			origins_join(&result->origins, &nested.output);
	}
	walk->context = outer_context;
	if (!result)
		return &value_nothing;
	if (call->callee && call->callee->name)
		result->name = value_name_join(script->arena, call->callee->name, "()", "");
	return result;
}

/*
 * A method of what a function returned that a row knows (open(), fetch()) says nothing that the row does not;
 * nor does one of what the language itself makes.
 */
static bool is_of_known_result(const struct script *script, const char *name)
{
	size_t size = strcspn(name, "(");
	char base[VALUE_NAME_MAX + 1];

	if (!name[size] || size >= sizeof base)
		return name[size] != '\0';
	memcpy(base, name, size);
	base[size] = '\0';
	if (library_find(script, base))
		return true;
	return !strchr(base, '.') && (!script->language->index_is_member || !islower((unsigned char)base[0]));
}

/* Files of the machine that a library is told of which nothing is known: it most likely reads them. */
static void add_named_file(struct script *script, const struct call *call, const struct value *path, uint32_t index,
			   unsigned depth)
{
	uint32_t read;

	for (uint32_t i = 0; path->kind != VALUE_TEXT && i < path->count && i < NAMED_FILES_MAX && depth; i++)
		add_named_file(script, call, path->items[i], index, depth - 1);
	if (!value_is_exact(path) || path->size < 2 || memchr(path->text, ' ', path->size) ||
	    !(path->text[0] == '/' || memcmp(path->text, "~/", 2) == 0 || memcmp(path->text, ".e", 2) == 0))
		return;
	read = script_add(script, call, OP_READ, path, 0);
	operations_add_flow(script->walk->operations, read, index);
}

void library_named_files(struct script *script, const struct call *call, uint32_t index)
{
	for (size_t i = 0; i < call->count && i < NAMED_FILES_MAX; i++)
		add_named_file(script, call, call->arguments[i], index, 3);
}

/* Only what a module has: methods of results and functions of the language itself would be most of all calls.
 */
uint32_t library_add_call(struct script *script, const struct call *call, const char *name, uint32_t traits)
{
	uint32_t index = script_add(script, call, OP_CALL, value_text(script->arena, name, strlen(name), 0), traits);

	if (script->tests && operations_get(script->walk->operations, index))
		operations_get(script->walk->operations, index)->context |= CONTEXT_CONTAINED;
	for (size_t i = 0; i < call->count; i++)
		script_add_word(script, call, index, library_flatten(script, call->arguments[i]));
	if (call->self)
		script_add_flow(script, call->self, index);
	return index;
}

/* The same call again, of which nothing more is known, says nothing more; nor does one that a loop goes on with. */
static bool is_told_enough(struct script *script, const struct call *call)
{
	struct syntax_node *node = &script->syntax.nodes[call->node];

	if (node->kind != NODE_CALL)
		return false;
	if (node->note && (call_is_blank(call) || (script->bounds.repeating && node->note >= SAME_CALL_MAX)))
		return true;
	node->note++;
	return false;
}

uint32_t library_other_call(struct script *script, const struct call *call)
{
	const char *name = call->callee->name;
	const struct effect *row = library_find(script, name);
	uint32_t index;

	if ((row && row->kind == EFFECT_NONE) || !strpbrk(name, ".-/") || is_of_known_result(script, name))
		return OPERATION_NONE;
	for (size_t i = 0; i < script->tables->quiet.count; i++)
		if (str_has_prefix(name, ((const char *const *)script->tables->quiet.items)[i]))
			return OPERATION_NONE;
	if (is_told_enough(script, call))
		return OPERATION_NONE;
	if (++script->bounds.other_calls > OTHER_CALLS_MAX) {
		if (script->bounds.other_calls == OTHER_CALLS_MAX + 1)
			operations_doubt(script->walk->operations, DOUBT_SIZE,
					 script_span(script, call->node));
		return OPERATION_NONE;
	}
	index = library_add_call(script, call, name, 0);
	library_named_files(script, call, index);
	return index;
}

/*
 * A variable that is read is an OP_READ of "$NAME", all of them of "$*": where it goes is then a flow like
 * that of a file.
 */
const struct value *library_environment(struct script *script, const char *name, uint32_t node)
{
	struct call call = { .node = node };
	const struct value *path, *result;

	if (str_equal(name, "HOME") || str_equal(name, "USERPROFILE"))
		return value_text(script->arena, "~", 1, 0);
	path = value_concat(script->arena, value_text(script->arena, "$", 1, 0),
			    *name == '?' ? &value_nothing : value_text(script->arena, name, strlen(name), 0));
	result = value_with_flags(script->arena, &value_nothing, WORD_FROM_ENVIRONMENT);
	return value_with_origin(script->arena, result, script_add(script, &call, OP_READ, path, 0));
}

void library_hidden_name(struct script *script, const struct value *name, uint32_t node)
{
	struct call call = { .node = node };

	if (value_is_exact(name) && name->flags & (WORD_OBSCURED | WORD_FROM_DECODED))
		script_add(script, &call, OP_EVALUATE, name, 0);
}

/* The texts that a condition compares something with, as words of the operation. */
static void add_condition(struct script *script, const struct call *call, uint32_t condition, uint32_t index)
{
	uint32_t end = syntax_behind(&script->syntax, condition);
	unsigned added = 0;

	for (uint32_t at = condition; at < end && added < CONDITION_TEXTS_MAX; at++) {
		const struct value *value = NULL;

		if (script->syntax.nodes[at].kind == NODE_TEXT)
			value = script->language->text(script, at);
		else if (script->syntax.nodes[at].kind == NODE_NAME)
			value = script_lookup(script, script_text(script, at));
		if (!value_is_exact(value))
			continue;
		script_add_word(script, call, index, value);
		added++;
	}
}

/* if "cupsd" in process.name(): process.kill() says which one is meant by what stands around it alone. */
void library_add_conditions(struct script *script, const struct call *call, uint32_t index)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t node = call->node;

	for (unsigned i = 0; node && syntax->nodes[node].kind != NODE_FUNCTION && i < PARENTS_MAX; i++) {
		uint32_t condition;

		node = syntax->nodes[node].parent;
		condition = syntax_child(syntax, node, FIELD_CONDITION);
		if (condition)
			add_condition(script, call, condition, index);
	}
}
