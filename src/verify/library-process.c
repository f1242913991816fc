/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/library.h"
#include "verify/script-text.h"

#define ALLOCATION_MIN (1ll << 30)
enum { INTERVAL_MIN_MS = 50 };

/* argv as it is put together. */
struct words {
	struct word *words;
	size_t count, capacity;
	bool has_self; /* the file itself is one of them */
};

static struct words words_new(struct script *script, size_t capacity)
{
	struct words words = { .words = arena_alloc(script->arena, (capacity + 1) * sizeof(struct word)) };

	words.capacity = words.words ? capacity : 0;
	return words;
}

static void put_word(struct script *script, const struct call *call, struct words *words,
		     const struct value *value)
{
	static const char *const selves[] = { "__file__", "__filename" };

	words->has_self |= value->name && names_find(selves, ARRAY_SIZE(selves), value->name) >= 0;
	if (words->count < words->capacity)
		words->words[words->count++] =
			value_word(script->arena, value, script_span(script, call->node));
}

/* A list's items from the first on; what is no list is one word of unknown many. */
static void put_words(struct script *script, const struct call *call, struct words *words,
		      const struct value *list, uint32_t first)
{
	if (list->kind != VALUE_LIST) {
		put_word(script, call, words, value_taint(script->arena, list));
		return;
	}
	for (uint32_t i = first; i < list->count; i++)
		put_word(script, call, words, value_alone(script->arena, list->items[i]));
	if (list->is_cut)
		put_word(script, call, words, &value_nothing);
}

/* What comes in: stdin=, and what the own input became. */
static void find_input(struct script *script, const struct call *call, struct command *command,
		       struct word *document)
{
	const struct value *input = call_argument(call, TARGET_NONE, "input");
	const struct value *from = call_argument(call, TARGET_NONE, "stdin");

	if (input) {
		*document = value_word(script->arena, input, script_span(script, call->node));
		command->document = document;
		value_origins(input, &command->input);
	}
	if (from) {
		value_origins(from, &command->input);
		if (from->name && strstr(from->name, "socket") && script->connection != OPERATION_NONE)
			origins_add(&command->input, script->connection);
	}
	if (script->is_wired && script->connection != OPERATION_NONE)
		origins_add(&command->input, script->connection);
}

static const struct value *run_words(struct script *script, struct call *call, const struct words *words)
{
	struct word document;
	struct command command = {
		.words = words->words,
		.count = words->count,
		.span = script_span(script, call->node),
		.context = script_context(script, OP_COMMAND),
	};
	struct value *result = value_new(script->arena, VALUE_UNKNOWN);

	/* Itself again, and again. */
	script->self_starts += words->has_self;
	if (words->has_self && (script->context & CONTEXT_LOOP || script->self_starts > 1)) {
		uint32_t index = walk_add(script->walk, OP_PROCESS, command.span, script->context);

		operations_add_text(script->walk->operations, index, "fork");
		operations_add_traits(script->walk->operations, index, TRAIT_MULTIPLIES);
	}
	find_input(script, call, &command, &document);
	walk_command(script->walk, &command);
	if (!result)
		return &value_nothing;
	result->origins = command.output;
	result->name =
		value_name_join(script->arena, call->callee->name ? call->callee->name : "*", "()", "");
	return result;
}

static const struct value *do_shell(struct script *script, struct call *call, const struct effect *effect)
{
	return library_nested(script, call, LANGUAGE_SHELL, library_target(call, effect));
}

/* client.exec_command(TEXT): what it does happens there, and what is in it goes there. */
static const struct value *do_remote(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *code = library_target(call, effect), *result;
	uint32_t context = script->context;

	script->context |= CONTEXT_REMOTE;
	result = library_nested(script, call, LANGUAGE_SHELL, code);
	script->context = context;
	library_network_handlers[EFFECT_FEED](script, call, effect);
	return result;
}

/* shell=True, {shell: true} or the name of one. */
static bool wants_shell(const struct call *call)
{
	const struct value *shell = call_argument(call, TARGET_NONE, "shell");

	return shell && (shell->kind == VALUE_TEXT || (shell->kind == VALUE_NUMBER && shell->number));
}

/* All words of a list joined, as a shell would get them. */
static const struct value *join_words(struct script *script, const struct value *first,
				      const struct value *list)
{
	const struct value *all = first, *blank = value_text(script->arena, " ", 1, 0);

	for (uint32_t i = 0; list->kind == VALUE_LIST && i < list->count; i++)
		all = all ? value_concat(script->arena, value_concat(script->arena, all, blank),
					 list->items[i])
			  : list->items[i];
	return all ? all : &value_nothing;
}

static const struct value *program_of_one(struct script *script, struct call *call,
					  const struct value *target)
{
	struct words words;

	if (target->kind == VALUE_LIST && target->count) {
		/* With a shell only the first word is a command; the others are its $1, $2, …. */
		if (wants_shell(call))
			return library_nested(script, call, LANGUAGE_SHELL,
					      value_alone(script->arena, target->items[0]));
		words = words_new(script, target->count + 1);
		put_words(script, call, &words, target, 0);
		return run_words(script, call, &words);
	}
	if (wants_shell(call) || (value_is_exact(target) && memchr(target->text, ' ', target->size)))
		return library_nested(script, call, LANGUAGE_SHELL, target);
	words = words_new(script, 1);
	put_word(script, call, &words, target);
	return run_words(script, call, &words);
}

static const struct value *do_program(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *target = library_target(call, effect), *all = NULL;

	for (const struct value *one = target; one; one = one->other) {
		const struct value *result = program_of_one(script, call, value_alone(script->arena, one));

		all = all ? value_either(script->arena, all, result) : result;
	}
	return all;
}

static const struct value *run_file(struct script *script, struct call *call, const struct value *file,
				    const struct value *list, uint32_t first)
{
	struct words words = words_new(script, (list->kind == VALUE_LIST ? list->count : 1) + 2);

	put_word(script, call, &words, file);
	if (list->kind == VALUE_LIST || list->origins.count || list->flags)
		put_words(script, call, &words, list, first);
	return run_words(script, call, &words);
}

static const struct value *do_spawn(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *file = library_target(call, effect), *list = library_second(call, effect);
	const struct value *all = NULL;

	if (wants_shell(call))
		return library_nested(script, call, LANGUAGE_SHELL, join_words(script, file, list));
	for (const struct value *one = file; one; one = one->other) {
		const struct value *result = run_file(script, call, value_alone(script->arena, one), list, 0);

		all = all ? value_either(script->arena, all, result) : result;
	}
	return all;
}

static const struct value *do_exec(struct script *script, struct call *call, const struct effect *effect)
{
	return run_file(script, call, library_target(call, effect), library_second(call, effect), 1);
}

static const struct value *do_exec_words(struct script *script, struct call *call,
					 const struct effect *effect)
{
	struct words words = words_new(script, CALL_ARGUMENTS_MAX + 1);

	put_word(script, call, &words, library_target(call, effect));
	for (size_t i = (size_t)effect->second + 1; i < call->count; i++)
		put_word(script, call, &words, call->arguments[i]);
	return run_words(script, call, &words);
}

/* child_process.fork(file), runpy.run_path(file): the interpreter with a file. */
static const struct value *do_self_again(struct script *script, struct call *call,
					 const struct effect *effect)
{
	struct words words = words_new(script, 2);
	const struct value *is_code = call_argument(call, TARGET_NONE, "eval");

	/* new Worker("for (;;) {}", { eval: true }) */
	if (is_code && is_code->kind == VALUE_NUMBER && is_code->number)
		return library_nested(script, call, script->walk->language, library_target(call, effect));
	put_word(script, call, &words, value_text(script->arena, effect->detail, strlen(effect->detail), 0));
	put_word(script, call, &words, library_target(call, effect));
	return run_words(script, call, &words);
}

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
		library_add(script, call, OP_EVALUATE, value_with_flags(script->arena, code, WORD_OBSCURED), 0);
}

static const struct value *do_evaluate(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *code = library_target(call, effect);

	/* x.constructor("text") of an unknown x may be Function, and most often is not. */
	if (call->callee->name && str_equal(call->callee->name, "(constructor)") && !value_is_exact(code))
		return NULL;
	if (code->kind == VALUE_FUNCTION)
		return script_call_back(script, code, &value_nothing, call->node);
	tell_maker(script, call, code);
	return value_with_subject(script->arena, library_nested(script, call, script->walk->language, code),
				  code);
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
		index = library_add(script, call, OP_EVALUATE, value_taint(script->arena, data),
				    TRAIT_STARTS);
		library_flow(script, data, index);
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
	uint32_t from = library_add(script, call, OP_NETWORK, url, TRAIT_FETCHES);
	uint32_t code = library_add(script, call, OP_EVALUATE, &value_nothing, TRAIT_STARTS);

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
			library_add(script, call, OP_READ, name, TRAIT_STARTS);
		return *text == '.' || *text == '/' ? &value_nothing : script_named(script, text);
	}
	if (name->kind == VALUE_TEXT && !name->flags && !name->origins.count)
		return &value_nothing;
	index = library_add(script, call, OP_EVALUATE, name, 0);
	library_flow(script, name, index);
	return library_result(script, call, index, NULL);
}

/* Methods that say by their name what they do, on objects of which nothing is known:
 * cursor.execute(statement). */
static const struct value *do_call(struct script *script, struct call *call, const struct effect *effect)
{
	const char *name = effect->detail ? effect->detail : call->method ? call->method : "?";
	uint32_t index = library_add(script, call, OP_CALL, value_text(script->arena, name, strlen(name), 0),
				     effect->traits);

	if (script->tests && operations_get(script->walk->operations, index))
		operations_get(script->walk->operations, index)->context |= CONTEXT_CONTAINED;

	for (size_t i = 0; i < call->count; i++)
		library_add_word(script, call, index, library_flatten(script, call->arguments[i]));
	if (call->self)
		library_flow(script, call->self, index);
	return script_run_callbacks(script, call, library_result(script, call, index, NULL));
}

static const struct value *do_escape(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t index = library_add(script, call, OP_EVALUATE,
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

/* A module that does nothing, whatever is asked of it: math, re. */
static bool is_quiet(const struct script *script, const char *module)
{
	size_t size = strlen(module);

	for (size_t i = 0; i < script->language->quiet_count; i++) {
		const char *quiet = script->language->quiet[i];

		if (strncmp(quiet, module, size) == 0 && str_equal(quiet + size, ".") && !str_equal(module, "builtins"))
			return true;
	}
	return false;
}

static const struct value *do_attribute(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *object = library_target(call, effect), *name = library_second(call, effect);
	uint32_t size;

	if (value_is_exact(name)) {
		if (object->name && !is_quiet(script, object->name))
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
		uint32_t told = library_add(script, call, OP_CALL, value_text(script->arena, "(timer)", 7, 0), 0);

		library_add_word(script, call, told, function);
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

/* sh.git.push("-f"): a program, the verbs and what they are given. */
static const struct value *do_tool(struct script *script, struct call *call, const struct effect *effect)
{
	struct words words = words_new(script, CALL_ARGUMENTS_MAX + 8);
	size_t prefix = str_has_prefix(call->callee->name, "sh.") ? strlen("sh.") : strlen("plumbum.cmd.");
	const char *name = call->callee->name + prefix;

	for (unsigned i = 0; *name && i < 6; i++) {
		size_t size = strcspn(name, ".");

		put_word(script, call, &words, value_text(script->arena, name, size, 0));
		name += size + (name[size] == '.');
	}
	for (size_t i = 0; i < call->count; i++)
		put_word(script, call, &words, call->arguments[i]);
	return run_words(script, call, &words);
}

/* {a: x, b: y}.values() */
static const struct value *do_values(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *map = library_target(call, effect);

	return map->kind == VALUE_MAP && !map->other ? value_list(script->arena, map->items, map->count) : NULL;
}

static const struct value *do_json(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *data = library_target(call, effect);

	if (data->kind != VALUE_MAP && data->kind != VALUE_LIST)
		return NULL;
	data = library_flatten(script, data);
	return value_also_from(script->arena, value_concat(script->arena, data, &value_nothing), data);
}

/* json.dump(data, file) */
static const struct value *do_dump(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *to = library_second(call, effect), *data = library_target(call, effect);

	for (uint32_t i = 0; i < to->origins.count; i++) {
		library_flow(script, data, to->origins.at[i]);
		library_keep_content(script, data, to->origins.at[i]);
	}
	return &value_nothing;
}

static const struct value *do_process(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t index = walk_add(script->walk, OP_PROCESS, script_span(script, call->node),
				  script_context(script, OP_PROCESS));

	operations_add_text(script->walk->operations, index, effect->detail);
	operations_add_traits(script->walk->operations, index, effect->traits);
	if (effect->target != TARGET_NONE)
		library_add_word(script, call, index, library_target(call, effect));
	if (str_equal(effect->detail, "load"))
		library_add(script, call, OP_READ, library_target(call, effect), TRAIT_STARTS);
	if (effect->second >= 0)
		library_add_word(script, call, index, library_second(call, effect));
	return &value_nothing;
}

static const struct value *do_input(struct script *script, struct call *call, const struct effect *effect)
{
	struct value *value = value_new(script->arena, VALUE_UNKNOWN);

	if (!value)
		return &value_nothing;
	value->flags = WORD_FROM_INPUT;
	value->origins = script->walk->input;
	return value;
}

static const struct value *do_print(struct script *script, struct call *call, const struct effect *effect)
{
	for (size_t i = 0; i < call->count; i++)
		value_origins(call->arguments[i], &script->walk->output);
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

/* torch.zeros(10000, 10000): all of them multiplied. */
static const struct value *all_sizes(struct script *script, const struct call *call)
{
	const struct value *list = value_list(script->arena, call->arguments, call->count);
	int64_t all = 1;

	if (call->count == 1 && call->arguments[0]->kind == VALUE_LIST)
		list = call->arguments[0];
	for (uint32_t i = 0; i < list->count; i++)
		if (list->items[i]->kind == VALUE_NUMBER && list->items[i]->number > 0 &&
		    __builtin_mul_overflow(all, list->items[i]->number, &all))
			all = INT64_MAX;
	return value_number(script->arena, all);
}

static const struct value *do_allocate(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *size = library_target(call, effect);

	/* A shape: (rows, columns). */
	if (size->kind == VALUE_LIST && size->count && !size->other) {
		int64_t all = 1;

		for (uint32_t i = 0; i < size->count && all < ALLOCATION_MIN * ALLOCATION_MIN / 4; i++)
			if (size->items[i]->kind == VALUE_NUMBER && size->items[i]->number > 0 &&
			    __builtin_mul_overflow(all, size->items[i]->number, &all))
				all = INT64_MAX;
		size = value_number(script->arena, all);
	}
	if (effect->detail)
		size = all_sizes(script, call);
	if (size->kind == VALUE_NUMBER)
		size = value_number(script->arena, script_kept_size(script, call->node, size->number));
	if (size->kind == VALUE_NUMBER && size->number >= ALLOCATION_MIN)
		library_add(script, call, OP_ALLOCATE, size, 0);
	return library_result(script, call, OPERATION_NONE, NULL);
}

static const struct value *do_same(struct script *script, struct call *call, const struct effect *effect)
{
	return library_target(call, effect);
}

static const struct value *do_environment(struct script *script, struct call *call,
					  const struct effect *effect)
{
	const struct value *name = library_target(call, effect);
	uint32_t size;

	if (effect->target == TARGET_NONE)
		return library_environment(script, "*", call->node);
	if (!value_is_exact(name))
		return library_environment(script, "?", call->node);
	return library_environment(script, value_chars(script->arena, name, &size), call->node);
}

static const struct value *do_set_environment(struct script *script, struct call *call,
					      const struct effect *effect)
{
	uint32_t index = library_add(script, call, OP_ENVIRONMENT, library_target(call, effect), 0);

	library_add_word(script, call, index, library_second(call, effect));
	return &value_nothing;
}

static const struct value *do_nothing(struct script *script, struct call *call, const struct effect *effect)
{
	return NULL;
}

const library_handler library_process_handlers[EFFECT_KIND_COUNT] = {
	[EFFECT_NONE] = do_nothing,
	[EFFECT_SHELL] = do_shell,
	[EFFECT_REMOTE] = do_remote,
	[EFFECT_TOOL] = do_tool,
	[EFFECT_VALUES] = do_values,
	[EFFECT_JSON] = do_json,
	[EFFECT_DUMP] = do_dump,
	[EFFECT_PROGRAM] = do_program,
	[EFFECT_SPAWN] = do_spawn,
	[EFFECT_EXEC] = do_exec,
	[EFFECT_EXEC_WORDS] = do_exec_words,
	[EFFECT_SELF_AGAIN] = do_self_again,
	[EFFECT_EVALUATE] = do_evaluate,
	[EFFECT_LOAD] = do_load,
	[EFFECT_IMPORT] = do_import,
	[EFFECT_CALL] = do_call,
	[EFFECT_ESCAPE] = do_escape,
	[EFFECT_PARTIAL] = do_partial,
	[EFFECT_PARTIAL_CALL] = do_partial_call,
	[EFFECT_ATTRIBUTE] = do_attribute,
	[EFFECT_LATER] = do_later,
	[EFFECT_THEN] = do_then,
	[EFFECT_PROMISE] = do_promise,
	[EFFECT_RESOLVE] = do_resolve,
	[EFFECT_APPLY] = do_apply,
	[EFFECT_BIND] = do_bind,
	[EFFECT_PROCESS] = do_process,
	[EFFECT_INPUT] = do_input,
	[EFFECT_PRINT] = do_print,
	[EFFECT_RETURNED] = do_returned,
	[EFFECT_ALLOCATE] = do_allocate,
	[EFFECT_SAME] = do_same,
	[EFFECT_ENVIRONMENT] = do_environment,
	[EFFECT_SET_ENVIRONMENT] = do_set_environment,
};
