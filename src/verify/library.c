/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/library-tables.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/effect.h"

enum {
	OTHER_CALLS_MAX = 5000,
	NAMED_FILES_MAX = 4,
	FLATTENED_MAX = 64,
	FLATTENED_SIZE_MAX = 8192,
	FLATTENED_DEPTH = 5,
};

static const struct effect *find_row(const struct script *script, const char *name)
{
	size_t low = 0, high = script->language->effect_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, script->language->effects[middle].name);

		if (!order)
			return &script->language->effects[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
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

void library_add_word(struct script *script, const struct call *call, uint32_t operation,
		      const struct value *value)
{
	struct word word = value_word(script->arena, value, script_span(script, call->node));

	operations_add_word(script->walk->operations, operation, &word);
}

uint32_t library_add(struct script *script, const struct call *call, enum operation_kind kind,
		     const struct value *value, uint32_t traits)
{
	uint32_t index =
		walk_add(script->walk, kind, script_span(script, call->node), script_context(script, kind));

	if (kind == OP_WRITE)
		script_note_written(script, call->node, 0);
	if (kind == OP_READ || kind == OP_WRITE || kind == OP_REMOVE || kind == OP_PERMISSION) {
		struct word word = value_word(script->arena, value, script_span(script, call->node));

		word = effect_path(script->walk, &word);
		operations_add_word(script->walk->operations, index, &word);
	} else {
		library_add_word(script, call, index, value);
	}
	operations_add_traits(script->walk->operations, index, traits);
	return index;
}

void library_flow(struct script *script, const struct value *from, uint32_t operation)
{
	struct origins origins = { 0 };

	value_origins(from, &origins);
	operations_add_flows(script->walk->operations, &origins, operation);
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

/* getattr(os, name)(…), child_process[name](…): what it does cannot be known. */
static const struct value *call_unknown(struct script *script, struct call *call)
{
	const char *name = call->callee->name;
	size_t size = strlen(name);
	bool is_grave = false;
	uint32_t index;

	if (size < 2 || strcmp(name + size - 2, ".?") != 0)
		return NULL;
	for (size_t i = 0; i < script->language->grave_count; i++) {
		const char *grave = script->language->grave[i];

		is_grave |= strlen(grave) == size - 2 && memcmp(grave, name, size - 2) == 0;
	}
	if (!is_grave)
		return NULL;
	index = library_add(script, call, OP_EVALUATE, value_text(script->arena, name, size - 1, 0), 0);
	for (size_t i = 0; i < call->count; i++)
		library_add_word(script, call, index, call->arguments[i]);
	library_flow(script, call->callee, index);
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
	const struct effect *row = call->callee->name ? find_row(script, call->callee->name) : NULL;
	const char *name;

	if (!row && call->callee->name &&
	    (str_has_prefix(call->callee->name, "sh.") || str_has_prefix(call->callee->name, "plumbum.cmd.")))
		return find_row(script, "sh.*");
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
	return name ? find_row(script, name) : NULL;
}

const struct value *library_call(struct script *script, struct call *call)
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

bool library_is_callable(struct script *script, const struct value *value)
{
	const struct effect *row = value->name ? find_row(script, value->name) : NULL;

	return row && row->kind != EFFECT_NONE;
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
	if (find_row(script, base))
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
	read = library_add(script, call, OP_READ, path, 0);
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
	uint32_t index = library_add(script, call, OP_CALL, value_text(script->arena, name, strlen(name), 0), traits);

	if (script->tests && operations_get(script->walk->operations, index))
		operations_get(script->walk->operations, index)->context |= CONTEXT_CONTAINED;
	for (size_t i = 0; i < call->count; i++)
		library_add_word(script, call, index, library_flatten(script, call->arguments[i]));
	if (call->self)
		library_flow(script, call->self, index);
	return index;
}

uint32_t library_other_call(struct script *script, const struct call *call)
{
	const char *name = call->callee->name;
	const struct effect *row = find_row(script, name);
	uint32_t index;

	if ((row && row->kind == EFFECT_NONE) || !strpbrk(name, ".-/") || is_of_known_result(script, name))
		return OPERATION_NONE;
	for (size_t i = 0; i < script->language->quiet_count; i++)
		if (str_has_prefix(name, script->language->quiet[i]))
			return OPERATION_NONE;
	/* The same call again, of which nothing more is known, says nothing more. */
	if (script->syntax.nodes[call->node].kind == NODE_CALL && call_is_blank(call)) {
		if (script->syntax.nodes[call->node].note)
			return OPERATION_NONE;
		script->syntax.nodes[call->node].note = 1;
	}
	if (++script->other_calls > OTHER_CALLS_MAX) {
		if (script->other_calls == OTHER_CALLS_MAX + 1)
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
	return value_with_origin(script->arena, result, library_add(script, &call, OP_READ, path, 0));
}

static bool is_environment(const struct script *script, const struct value *object)
{
	return object->name && str_equal(object->name, script->language->environment);
}

const struct value *library_module_file(struct script *script, const char *folder, const struct value *name)
{
	const struct value *path = value_text(script->arena, folder, strlen(folder), 0);

	return value_concat(script->arena, value_concat(script->arena, path, name), &value_nothing);
}

const struct value *library_member(struct script *script, const struct value *object, const char *name,
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
		return library_module_file(script, "/usr/lib/python3/dist-packages/",
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

const struct value *library_index(struct script *script, const struct value *object,
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

const struct value *library_used(struct script *script, const struct value *value, uint32_t node)
{
	bool is_storage = value->name &&
			  (str_equal(value->name, "localStorage") || str_equal(value->name, "sessionStorage"));

	if (is_storage)
		return value_also_from(script->arena, value, library_environment(script, "COOKIE", node));
	if (!is_environment(script, value))
		return value;
	return value_also_from(script->arena, value, library_environment(script, "*", node));
}

void library_hidden_name(struct script *script, const struct value *name, uint32_t node)
{
	struct call call = { .node = node };

	if (value_is_exact(name) && name->flags & (WORD_OBSCURED | WORD_FROM_DECODED))
		library_add(script, &call, OP_EVALUATE, name, 0);
}

void library_lifecycle(struct script *script, const char *how, const char *name, const struct value *value,
		       uint32_t node)
{
	static const char *const names[] = { "install", "postinstall", "preinstall", "prepare", "prepublish" };
	struct call call = { .node = node };
	uint32_t index;

	if (value->kind != VALUE_TEXT || names_find(names, ARRAY_SIZE(names), name) < 0)
		return;
	index = library_add(script, &call, OP_CALL, value_text(script->arena, how, strlen(how), 0), 0);
	library_add_word(script, &call, index, value_text(script->arena, name, strlen(name), 0));
	library_add_word(script, &call, index, value);
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
	index = library_add(script, call, OP_NETWORK, value, origins.count ? TRAIT_SENDS : 0);
	library_flow(script, value, index);
	return true;
}

bool library_assign(struct script *script, const struct value *object, const struct value *key,
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
	index = library_add(script, &call, OP_ENVIRONMENT, key, 0);
	library_add_word(script, &call, index, value);
	return true;
}

void library_import_all(struct script *script, const char *module)
{
	size_t size = strlen(module);

	for (size_t i = 0; i < script->language->effect_count; i++) {
		const char *name = script->language->effects[i].name;

		if (strncmp(name, module, size) == 0 && name[size] == '.' && !strpbrk(name + size + 1, ".("))
			script_declare(script, name + size + 1, script_named(script, name));
	}
}
