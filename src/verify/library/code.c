/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "verify/library/library.h"
#include "verify/script/text.h"

/* Calls that run code of the same language: evaluated, imported, called by name, called later. */

enum { INTERVAL_MIN_MS = 50 };

/*
 * Function("return process")(), [].at.constructor("return this")(): a maker of functions that is reached by what
 * it made is hidden, and so is what the name of a module or of all that there is stands in code for.
 */
static void tell_maker(struct script *script, const struct call *call, const struct value *code)
{
	static const char *const telling[] = { "child_process", "import(", "mainModule", "process", "require" };
	uint32_t callee = syntax_child(&script->syntax, call->node, FIELD_FUNCTION), size;
	const char *name = call->callee->name, *text;
	bool is_hidden;

	if (!name || (!str_equal(name, "Function") && !str_equal(name, "(constructor)")) || !value_is_exact(code))
		return;
	text = value_chars(script->arena, code, &size);
	is_hidden = callee && !script_is(script, callee, "Function") && str_has_prefix(text, "return");
	for (size_t i = 0; i < ARRAY_SIZE(telling); i++)
		is_hidden |= strstr(text, telling[i]) != NULL;
	if (is_hidden)
		script_add(script, call, OP_EVALUATE, value_with_flags(script->arena, code, WORD_OBSCURED), 0);
}

/* eval("os.system") is that function. */
static const struct value *named_by(struct script *script, const struct value *code, const struct value *result)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	const char *text = value_is_exact(code) && code->size <= VALUE_NAME_MAX ? code->text : "";
	const struct value *named = NULL;
	char *name;

	if (!code->size || *text == '.' || strspn(text, letters) < code->size)
		return result;
	name = arena_text_n(script->arena, text, code->size);
	if (name)
		named = strchr(name, '.') ? script_named(script, name) : script_lookup(script, name);
	return named ? value_also_from(script->arena, named, result) : result;
}

static const struct value *do_evaluate(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *code = library_target(call, effect), *result;

	/* x.constructor("text") of an unknown x may be Function, and most often is not. */
	if (call->callee->name && str_equal(call->callee->name, "(constructor)") && !value_is_exact(code))
		return NULL;
	if (code->kind == VALUE_FUNCTION)
		return script_call_back(script, code, &value_nothing, call->node);
	tell_maker(script, call, code);
	result = value_with_subject(script->arena, library_nested(script, call, script->walk->language, code), code);
	return named_by(script, code, result);
}

/* Data that may bring code along is no worry where it is the program's own: only where it came from
 * elsewhere. */
static const struct value *do_load(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *data = library_target(call, effect);
	struct origins origins = { 0 };
	uint32_t flags = value_origins(data, &origins), index;
	bool is_foreign = flags & WORD_FROM_INPUT;

	/* What was packed is no worry either, but a text that stands there is. */
	is_foreign |= flags & WORD_FROM_DECODED && (data->flags & WORD_OBSCURED || value_is_exact(data));

	for (uint32_t i = 0; i < origins.count; i++) {
		const struct operation *from = operations_get(script->walk->operations, origins.at[i]);

		is_foreign |= from && from->kind == OP_NETWORK;
	}
	if (is_foreign) {
		index = script_add(script, call, OP_EVALUATE, value_taint(script->arena, data),
				    TRAIT_STARTS);
		script_add_flow(script, data, index);
	}
	library_other_call(script, call);
	return library_result(script, call, OPERATION_NONE, NULL);
}

/* import("data:text/javascript;base64,…") */
static const struct value *import_data(struct script *script, const struct call *call, const char *url)
{
	const char *code = strchr(url, ',');
	struct call decode = { .node = call->node, .callee = &value_nothing };

	if (!code)
		return &value_nothing;
	decode.arguments[decode.count++] = value_text(script->arena, code + 1, strlen(code + 1), 0);
	return library_nested(script, call, script->walk->language,
			      strstr(url, ";base64,") ? text_from_base64(script, &decode)
						      : text_from_percent(script, &decode));
}

/* import("https://host/x.js") */
static const struct value *import_address(struct script *script, const struct call *call, const struct value *url)
{
	uint32_t from = script_add(script, call, OP_NETWORK, url, TRAIT_FETCHES);
	uint32_t code = script_add(script, call, OP_EVALUATE, &value_nothing, TRAIT_STARTS);

	operations_add_flow(script->walk->operations, from, code);
	return library_result(script, call, code, NULL);
}

static const struct value *do_import(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *name = library_target(call, effect);
	uint32_t size, index;
	const char *text;

	if (value_is_exact(name)) {
		library_hidden_name(script, name, call->node);
		text = value_chars(script->arena, name, &size);
		if (str_has_prefix(text, "node:"))
			text += strlen("node:");
		if (str_has_prefix(text, "data:"))
			return import_data(script, call, text);
		if (str_has_prefix(text, "http://") || str_has_prefix(text, "https://"))
			return import_address(script, call, name);
		if (call->callee->name && str_equal(call->callee->name, "process.binding"))
			library_other_call(script, call);
		/* A file that may have been written a moment ago. */
		if (*text == '/')
			script_add(script, call, OP_READ, name, TRAIT_STARTS);
		return *text == '.' || *text == '/' ? &value_nothing : script_named(script, text);
	}
	if (name->kind == VALUE_TEXT && !name->flags && !name->origins.count)
		return &value_nothing;
	index = script_add(script, call, OP_EVALUATE, name, 0);
	script_add_flow(script, name, index);
	return library_result(script, call, index, NULL);
}

/* Methods that say by their name what they do, on objects of which nothing is known:
 * cursor.execute(statement). */
static const struct value *do_call(struct script *script, struct call *call, const struct effect *effect)
{
	const char *name = effect->detail ? effect->detail : call->method ? call->method : "?";
	uint32_t index = library_add_call(script, call, name, effect->traits);

	return script_run_callbacks(script, call, library_result(script, call, index, NULL));
}

static const struct value *do_install(struct script *script, struct call *call, const struct effect *effect)
{
	script->installs = true;
	return script_run_callbacks(script, call, library_result(script, call,
		library_add_call(script, call, effect->name, effect->traits), NULL));
}

static const struct value *do_escape(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t index = script_add(script, call, OP_EVALUATE,
				     value_text(script->arena, effect->detail, strlen(effect->detail), 0), 0);

	return library_result(script, call, index, NULL);
}

/* Its arguments are kept as a map, those by place without a key. */
static const struct value *do_partial(struct script *script, struct call *call, const struct effect *effect)
{
	struct value *map = value_new(script->arena, VALUE_MAP);
	const char **keys = arena_alloc(script->arena, (call->count + 1) * sizeof *keys);
	const struct value *list = value_list(script->arena, call->arguments, call->count);

	if (!map || !keys || list->kind != VALUE_LIST || !call->count)
		return &value_nothing;
	memcpy(keys, call->keywords, call->count * sizeof *keys);
	map->name = "functools.partial()";
	map->subject = library_target(call, effect);
	map->items = list->items + 1;
	map->gathered = list->gathered;
	map->keys = keys + 1;
	map->count = list->count - 1;
	return map;
}

static const struct value *do_partial_call(struct script *script, struct call *call,
					   const struct effect *effect)
{
	const struct value *made = call->callee;
	struct call whole = { .node = call->node, .callee = made->subject };

	if (made->kind != VALUE_MAP || !made->subject)
		return NULL;
	for (uint32_t i = 0; i < made->count && whole.count < CALL_ARGUMENTS_MAX; i++) {
		whole.keywords[whole.count] = made->keys[i];
		whole.arguments[whole.count++] = made->items[i];
	}
	for (size_t i = 0; i < call->count && whole.count < CALL_ARGUMENTS_MAX; i++) {
		whole.keywords[whole.count] = call->keywords[i];
		whole.arguments[whole.count++] = call->arguments[i];
	}
	return script_apply(script, &whole);
}

static const struct value *do_attribute(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *object = library_target(call, effect), *name = library_second(call, effect);
	uint32_t size;

	if (value_is_exact(name)) {
		/* getattr(syslog, "LOG_" + name) puts a name together, and hides nothing. */
		if (object->name && (library_is_grave(script, object->name, strlen(object->name)) ||
				     name->flags & WORD_FROM_DECODED))
			library_hidden_name(script, name, call->node);
		return script_member(script, object, value_chars(script->arena, name, &size), call->node);
	}
	if (!object->name)
		return value_taint(script->arena, object);
	return value_also_from(script->arena,
			       script_named(script, value_name_join(script->arena, object->name, ".", "?")),
			       name);
}

/* Thread(target=f, args=(x,)), submit(f, x), setTimeout(f). */
static const struct value *do_later(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *function = library_target(call, effect);
	const struct value *list =
		effect->second_keyword ? call_argument(call, TARGET_NONE, effect->second_keyword) : NULL;
	struct call later = { .node = call->node, .callee = function };
	int place = 0;

	if (function->kind == VALUE_TEXT) {
		uint32_t told = script_add(script, call, OP_CALL, value_text(script->arena, "(timer)", 7, 0), 0);

		script_add_word(script, call, told, function);
		return library_nested(script, call, script->walk->language, function);
	}
	for (uint32_t i = 0; list && list->kind == VALUE_LIST && i < list->count && i < CALL_ARGUMENTS_MAX;
	     i++)
		later.arguments[later.count++] = list->items[i];
	for (size_t i = 0; effect->second >= 0 && i < call->count; i++)
		if (!call->keywords[i] && place++ >= effect->second && later.count < CALL_ARGUMENTS_MAX)
			later.arguments[later.count++] = call->arguments[i];
	if (effect->detail) {
		uint32_t index =
			walk_add(script->walk, OP_PROCESS, script_span(script, call->node),
				 script_context(script, OP_PROCESS));

		operations_add_text(script->walk->operations, index, effect->detail);
	}
	/* setInterval(f, 10): again before it is over. */
	if (str_equal(effect->name, "setInterval")) {
		const struct value *delay = call_argument(call, 1, NULL), *result;
		uint32_t context = script->context;

		script->context |= CONTEXT_LOOP;
		if (!delay || (delay->kind == VALUE_NUMBER && delay->number < INTERVAL_MIN_MS))
			script->context |= CONTEXT_ENDLESS;
		result = script_apply(script, &later);
		script->context = context;
		return result;
	}
	return script_apply(script, &later);
}

/* f.apply(object, [x]), f.call(object, x), Reflect.apply(f, object, [x]) */
static const struct value *do_apply(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *function =
		effect->target == TARGET_SELF ? call->self : library_target(call, effect);
	const struct value *list = library_second(call, effect);
	struct call applied = { .node = call->node, .callee = function };

	if (function->kind != VALUE_FUNCTION && !function->name)
		return NULL;
	for (uint32_t i = 0; effect->detail && i < list->count && i < CALL_ARGUMENTS_MAX; i++)
		applied.arguments[applied.count++] = list->items[i];
	for (size_t i = (size_t)effect->second; !effect->detail && i < call->count; i++)
		applied.arguments[applied.count++] = call->arguments[i];
	return script_apply(script, &applied);
}

static const struct value *do_bind(struct script *script, struct call *call, const struct effect *effect)
{
	return call->self;
}

static const struct value *do_then(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *self = call->self ? call->self : &value_nothing, *all = NULL;

	for (size_t i = 0; i < call->count && i < 2; i++) {
		const struct value *function = call->arguments[i], *made;

		if (function->kind != VALUE_FUNCTION && !function->name)
			continue;
		made = script_call_back(script, function, value_alone(script->arena, self), call->node);
		all = all ? value_either(script->arena, all, made) : made;
	}
	/* Who only catches gets the rest as it is. */
	if (all && !str_has_suffix(effect->name, ".then"))
		all = value_either(script->arena, self, all);
	return all ? all : self;
}

/* new Promise((resolve, reject) => …): what resolve() is given, sooner or later, is what it becomes. */
static const struct value *do_promise(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *function = library_target(call, effect), *outer = script->resolved, *made;
	const struct value *resolve = value_named(script->arena, "(resolve)");
	struct call inner = { .node = call->node, .callee = function, .arguments = { resolve }, .count = 1 };

	if (function->kind != VALUE_FUNCTION)
		return NULL;
	script->resolved = &value_nothing;
	script_invoke(script, function, &inner);
	made = script->resolved;
	script->resolved = outer;
	return made;
}

static const struct value *do_resolve(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *value = library_target(call, effect);

	script->resolved = script->resolved && script->resolved != &value_nothing
				   ? value_either(script->arena, script->resolved, value)
				   : value;
	return &value_nothing;
}

static const struct value *do_returned(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *code = call->callee->subject;
	uint32_t size;
	const char *text = value_is_exact(code) ? value_chars(script->arena, code, &size) : NULL;
	char *name;

	if (!text || !str_has_prefix(text, "return "))
		return NULL;
	text += strlen("return ");
	name = arena_text_n(script->arena, text, strcspn(text, "; \n"));
	if (!name)
		return NULL;
	return script->language->unbound(script, str_equal(name, "this") ? "globalThis" : name, call->node);
}

const library_handler library_code_handlers[EFFECT_KIND_COUNT] = {
	[EFFECT_EVALUATE] = do_evaluate,
	[EFFECT_LOAD] = do_load,
	[EFFECT_IMPORT] = do_import,
	[EFFECT_CALL] = do_call,
	[EFFECT_ESCAPE] = do_escape,
	[EFFECT_INSTALL] = do_install,
	[EFFECT_PARTIAL] = do_partial,
	[EFFECT_PARTIAL_CALL] = do_partial_call,
	[EFFECT_ATTRIBUTE] = do_attribute,
	[EFFECT_LATER] = do_later,
	[EFFECT_THEN] = do_then,
	[EFFECT_PROMISE] = do_promise,
	[EFFECT_RESOLVE] = do_resolve,
	[EFFECT_APPLY] = do_apply,
	[EFFECT_BIND] = do_bind,
	[EFFECT_RETURNED] = do_returned,
};
