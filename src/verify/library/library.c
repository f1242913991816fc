/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/library/library.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/command/effect.h"
#include "verify/script/text.h"

/* getattr(os, name)(…), child_process[name](…): what it does cannot be known. */
static const struct value *call_unknown(struct script *script, struct call *call)
{
	const char *name = call->callee->name;
	size_t size = strlen(name);
	uint32_t index;

	if (size < 2 || strcmp(name + size - 2, ".?") != 0 || !library_is_grave(script, name, size - 2))
		return NULL;
	index = script_add(script, call, OP_EVALUATE, value_text(script->arena, name, size - 1, 0), 0);
	for (size_t i = 0; i < call->count; i++)
		script_add_word(script, call, index, call->arguments[i]);
	script_add_flow(script, call->callee, index);
	return library_result(script, call, index, NULL);
}

static library_handler handler_of(enum effect_kind kind)
{
	const library_handler *const handlers[] = {
		library_file_handlers, library_process_handlers, library_code_handlers, library_network_handlers,
	};

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
		if (handlers[i][kind])
			return handlers[i][kind];
	return NULL;
}

static const struct effect *row_of(struct script *script, const struct call *call)
{
	const struct effect *row = call->callee->name ? library_find(script, call->callee->name) : NULL;
	const char *name;

	if (!row && call->callee->name &&
	    (str_has_prefix(call->callee->name, "sh.") || str_has_prefix(call->callee->name, "plumbum.cmd.")))
		return library_find(script, "sh.*");
	if (row || !call->method || !call->self)
		return row;
	/* A file system of memory. */
	if (call->self->name &&
	    (str_has_prefix(call->self->name, "memfs") || str_has_prefix(call->self->name, "mock-fs")))
		return NULL;
	/* A method of the file's own is no method of a library. */
	if (!call->self->name && script_method(script, call->method))
		return NULL;
	name = value_name_join(script->arena, "*", ".", call->method);
	return name ? library_find(script, name) : NULL;
}

static const struct value *library_call(struct script *script, struct call *call)
{
	const struct effect *row = row_of(script, call);
	const struct value *result;
	library_handler handler;

	if (!row)
		return call->callee->name ? call_unknown(script, call) : NULL;
	handler = handler_of(row->kind);
	result = handler ? handler(script, call, row) : NULL;
	/* Who is told that a connection is there is called when everybody has it: script_run_uncalled(). */
	if (result && row->kind <= EFFECT_RECEIVE && row->kind != EFFECT_CONNECT)
		script_run_callbacks(script, call, value_taint(script->arena, result));
	return result;
}

static bool library_is_callable(struct script *script, const struct value *value)
{
	const struct effect *row = value->name ? library_find(script, value->name) : NULL;

	return row && row->kind != EFFECT_NONE;
}

static bool is_environment(const struct script *script, const struct value *object)
{
	return object->name && str_equal(object->name, script->language->environment);
}

static const struct value *library_member(struct script *script, const struct value *object, const char *name,
				   uint32_t node)
{
	bool is_spec = object->name && str_has_suffix(object->name, "find_spec()");

	if (is_environment(script, object) && script->language->index_is_member)
		return library_environment(script, name, node);
	if (object->name && str_equal(object->name, "document") && str_equal(name, "cookie"))
		return library_environment(script, "COOKIE", node);
	/* requests.__file__: where installed modules are. */
	if (object->name && !script->language->index_is_member &&
	    (str_equal(name, "__file__") || (is_spec && str_equal(name, "origin"))))
		return text_module_file(script, "/usr/lib/python3/dist-packages/",
					   is_spec ? object->subject : value_text(script->arena, object->name,
										  strlen(object->name), 0));
	return NULL;
}

/* sys.argv[n]: the file itself, or what was given to it. */
static const struct value *argument_of_program(struct script *script, const struct value *object,
					       const struct value *index)
{
	const struct walk *walk = script->walk;
	const struct word *word;

	if (!object->name || !str_equal(object->name, script->language->arguments) ||
	    index->kind != VALUE_NUMBER)
		return NULL;
	if (index->number == (script->language->index_is_member ? 1 : 0) && !walk->argument_count)
		return value_named(script->arena, "__file__");
	if (index->number < 1 || (uint64_t)index->number > walk->argument_count)
		return NULL;
	word = &walk->arguments[index->number - 1];
	return value_text_holes(script->arena, word->text, word->size, word->flags & ~(uint32_t)WORD_EXACT);
}

static const struct value *library_index(struct script *script, const struct value *object,
				  const struct value *index, const char *key, uint32_t node)
{
	const struct value *argument = argument_of_program(script, object, index);

	if (argument)
		return argument;
	if (key && object->name)
		library_hidden_name(script, index, node);
	if (is_environment(script, object))
		return key ? library_environment(script, key, node)
			   : value_also_from(script->arena, library_environment(script, "?", node), index);
	return script->language->index ? script->language->index(script, object, key) : NULL;
}

static const struct value *library_used(struct script *script, const struct value *value, uint32_t node)
{
	bool is_storage = value->name &&
			  (str_equal(value->name, "localStorage") || str_equal(value->name, "sessionStorage"));

	if (is_storage)
		return value_also_from(script->arena, value, library_environment(script, "COOKIE", node));
	if (!is_environment(script, value))
		return value;
	return value_also_from(script->arena, value, library_environment(script, "*", node));
}

static void library_lifecycle(struct script *script, const char *how, const char *name, const struct value *value,
		       uint32_t node)
{
	static const char *const names[] = { "install", "postinstall", "preinstall", "prepare", "prepublish" };
	struct call call = { .node = node };
	uint32_t index;

	if (value->kind != VALUE_TEXT || names_find(names, ARRAY_SIZE(names), name) < 0)
		return;
	index = script_add(script, &call, OP_CALL, value_text(script->arena, how, strlen(how), 0), 0);
	script_add_word(script, &call, index, value_text(script->arena, name, strlen(name), 0));
	script_add_word(script, &call, index, value);
}

/* new Image().src = URL, location.href = URL: the page asks for it. */
static bool assign_address(struct script *script, const struct call *call, const struct value *object,
			   const struct value *key, const struct value *value)
{
	static const char *const objects[] = { "Image()", "document", "document.createElement()", "document.location",
					       "location", "window", "window.location" };
	static const char *const keys[] = { "href", "location", "src" };
	struct origins origins = { 0 };
	uint32_t size, index;

	if (!object->name || names_find(objects, ARRAY_SIZE(objects), object->name) < 0 || !value_is_exact(key) ||
	    names_find(keys, ARRAY_SIZE(keys), value_chars(script->arena, key, &size)) < 0)
		return false;
	value_origins(value, &origins);
	index = script_add(script, call, OP_NETWORK, value, origins.count ? TRAIT_SENDS : 0);
	script_add_flow(script, value, index);
	return true;
}

static bool library_assign(struct script *script, const struct value *object, const struct value *key,
		    const struct value *value, uint32_t node)
{
	struct call call = { .node = node };
	uint32_t index, size;

	if (value_is_exact(key))
		library_lifecycle(script, "(assign)", value_chars(script->arena, key, &size), value, node);
	if (assign_address(script, &call, object, key, value))
		return true;
	if (!is_environment(script, object))
		return false;
	index = script_add(script, &call, OP_ENVIRONMENT, key, 0);
	script_add_word(script, &call, index, value);
	return true;
}

const struct library_ops library_ops = {
	.call = library_call,
	.other_call = library_other_call,
	.is_callable = library_is_callable,
	.take_in = library_take_in,
	.used = library_used,
	.member = library_member,
	.index = library_index,
	.assign = library_assign,
	.lifecycle = library_lifecycle,
};
