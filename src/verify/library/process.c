/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/command/command.h"
#include "verify/library/library.h"
#include "verify/script/text.h"

#define ALLOCATION_MIN (1ll << 30)

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
		script_add_flow(script, data, to->origins.at[i]);
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
		script_add_word(script, call, index, library_target(call, effect));
	if (str_equal(effect->detail, "load"))
		script_add(script, call, OP_READ, library_target(call, effect), TRAIT_STARTS);
	if (effect->second >= 0)
		script_add_word(script, call, index, library_second(call, effect));
	if (str_equal(effect->detail, "kill"))
		library_add_conditions(script, call, index);
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

/* All of a list's numbers multiplied; INT64_MAX where that is too much. */
static const struct value *product_of(struct script *script, const struct value *list)
{
	int64_t product = 1;

	for (uint32_t i = 0; i < list->count; i++)
		if (list->items[i]->kind == VALUE_NUMBER && list->items[i]->number > 0 &&
		    __builtin_mul_overflow(product, list->items[i]->number, &product))
			product = INT64_MAX;
	return value_number(script->arena, product);
}

/* How much a call asks for: one number, a shape (rows, columns), or, as torch.zeros(10000, 10000), one in arguments. */
static const struct value *size_of(struct script *script, const struct call *call, const struct effect *effect)
{
	const struct value *size = library_target(call, effect);

	if (effect->detail && !(call->count == 1 && call->arguments[0]->kind == VALUE_LIST))
		return product_of(script, value_list(script->arena, call->arguments, call->count));
	if (effect->detail)
		return product_of(script, call->arguments[0]);
	return size->kind == VALUE_LIST && size->count && !size->other ? product_of(script, size) : size;
}

static const struct value *do_allocate(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *size = size_of(script, call, effect);

	if (size->kind == VALUE_NUMBER)
		size = value_number(script->arena, script_kept_size(script, call->node, size->number));
	if (size->kind == VALUE_NUMBER && size->number >= ALLOCATION_MIN)
		script_add(script, call, OP_ALLOCATE, size, 0);
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
	uint32_t index = script_add(script, call, OP_ENVIRONMENT, library_target(call, effect), 0);

	script_add_word(script, call, index, library_second(call, effect));
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
	[EFFECT_PROCESS] = do_process,
	[EFFECT_INPUT] = do_input,
	[EFFECT_PRINT] = do_print,
	[EFFECT_ALLOCATE] = do_allocate,
	[EFFECT_SAME] = do_same,
	[EFFECT_ENVIRONMENT] = do_environment,
	[EFFECT_SET_ENVIRONMENT] = do_set_environment,
};
