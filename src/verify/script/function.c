/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions of the file. A call goes through the body with the arguments that are known, so that a secret
 * that is read in one function and sent in another is one flow. What nobody calls is gone through at the end,
 * with nothing known: it may be called from elsewhere.
 */

#include <string.h>

#include "base/str.h"
#include "verify/script/script.h"

enum {
	RECURSION_LOOK_MAX = 20000,
	RUNS_MIN = 32, /* calls after which a function that did nothing is taken for one that does nothing */
	RECURSION_DEPTH_MAX = 12,
	GUESSES_MAX = 2, /* functions in functions that were found by their names alone */
};

/* The name of a parameter, for arguments that are given by name; NULL for a pattern. */
static const char *parameter_name(struct script *script, uint32_t parameter)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t at = parameter, target = syntax_child(syntax, at, FIELD_TARGET);

	if (target)
		at = target;
	else if (syntax->nodes[at].kind == NODE_OTHER && syntax->nodes[at].first)
		at = syntax->nodes[at].first;
	return syntax->nodes[at].kind == NODE_NAME ? script_text(script, at) : NULL;
}

static const struct value *argument_for(const struct call *call, const char *name, size_t *place)
{
	for (size_t i = 0; name && i < call->count; i++)
		if (call->keywords[i] && str_equal(call->keywords[i], name))
			return call->arguments[i];
	while (*place < call->count && call->keywords[*place])
		++*place;
	return *place < call->count ? call->arguments[(*place)++] : &value_nothing;
}

static const struct value *rest_of(struct script *script, const struct call *call, size_t place)
{
	const struct value *items[CALL_ARGUMENTS_MAX];
	size_t count = 0;

	for (; place < call->count; place++)
		if (!call->keywords[place])
			items[count++] = call->arguments[place];
	return value_list(script->arena, items, count);
}

static void bind_parameters(struct script *script, uint32_t function, const struct call *call)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t parameters = syntax_child(syntax, function, FIELD_PARAMETERS), at;
	size_t place = 0;

	if (!parameters)
		return;
	at = syntax->nodes[parameters].kind == NODE_PARAMETERS ? syntax->nodes[parameters].first : parameters;
	for (; at; at = at == parameters ? 0 : syntax->nodes[at].next) {
		const char *name = parameter_name(script, at);

		if (str_equal(name, "self") || str_equal(name, "cls"))
			script_declare(script, name, &value_nothing);
		else if (syntax->nodes[at].kind == NODE_SPREAD)
			script_bind(script, syntax->nodes[at].first, rest_of(script, call, place), true);
		else
			script_bind(script, at, argument_for(call, name, &place), true);
	}
}

/* A function that a runner of tests runs, or that has doubles of a cloud: by its decorators. */
static bool has_test_decorator(struct script *script, uint32_t function)
{
	static const char *const decorators[] = { "@fixture", "@mock_aws", "@moto.mock", "@pytest.fixture",
						  "@pytest_asyncio.fixture" };
	const struct syntax *syntax = &script->syntax;
	uint32_t around = syntax->nodes[function].parent;

	if (!around || syntax->nodes[around].kind != NODE_SAME)
		return false;
	for (uint32_t at = syntax->nodes[around].first; at && at != function; at = syntax->nodes[at].next) {
		const char *text = syntax->text + syntax->nodes[at].start;

		for (size_t i = 0; i < ARRAY_SIZE(decorators); i++)
			if (syntax->size - syntax->nodes[at].start > strlen(decorators[i]) &&
			    strncmp(text, decorators[i], strlen(decorators[i])) == 0)
				return true;
	}
	return false;
}

static const struct value *run(struct script *script, uint32_t node, uint32_t scope, const struct call *call)
{
	uint32_t body = syntax_child(&script->syntax, node, FIELD_BODY);
	uint32_t outer_scope = script->scope, outer_context = script->context;
	struct frame frame = { .outer = script->frame, .node = node };
	const struct value *value = &value_nothing;
	bool is_of_tests = has_test_decorator(script, node);

	script->scope = script_scope_new(script, scope);
	script->context |= CONTEXT_FUNCTION;
	bind_parameters(script, node, call);
	script->frame = &frame;
	script->tests += is_of_tests;
	if (body)
		value = script_value(script, body);
	script->tests -= is_of_tests;
	script->frame = frame.outer;
	script->scope = outer_scope;
	script->context = outer_context;
	if (body && script->syntax.nodes[body].kind != NODE_BLOCK)
		return value;
	return frame.result ? frame.result : &value_nothing;
}

static struct script_function_entry *entry_of(struct script *script, uint32_t node)
{
	uint32_t note = script->syntax.nodes[node].note;

	return note ? &((struct script_function_entry *)script->functions.items)[note - 1] : NULL;
}

/* os.fork(), multiprocessing.Process(), but not postProcess(). */
static bool is_maker(const char *text)
{
	const char *dot = strrchr(text, '.'), *name = dot ? dot + 1 : text;

	return str_equal(name, "fork") || str_equal(name, "Process");
}

/* Whether the body calls the function by its name; *ret_multiplies: and makes processes. */
static bool calls_itself(struct script *script, uint32_t node, const char *name, bool *ret_multiplies)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t end = syntax_behind(syntax, node);
	bool recurses = false, makes = false;

	if (end > node + RECURSION_LOOK_MAX)
		end = node + RECURSION_LOOK_MAX;
	for (uint32_t at = node + 1; at < end; at++) {
		uint32_t function = syntax->nodes[at].kind == NODE_CALL || syntax->nodes[at].kind == NODE_NEW
					    ? syntax_child(syntax, at, FIELD_FUNCTION)
					    : 0;
		const char *text;

		if (!function)
			continue;
		recurses |= script_is(script, function, name);
		if (syntax->nodes[function].end - syntax->nodes[function].start > VALUE_NAME_MAX)
			continue;
		text = script_text(script, function);
		makes |= is_maker(text);
	}
	*ret_multiplies = recurses && makes;
	return recurses;
}

/* Whether it stands in a class: in its body, its name alone means another function, and its own is reached by self. */
static bool is_method(const struct syntax *syntax, uint32_t node)
{
	uint32_t around = syntax->nodes[node].parent;

	if (around && syntax->nodes[around].kind == NODE_SAME)
		around = syntax->nodes[around].parent;
	return around && syntax->nodes[around].kind == NODE_BLOCK &&
	       syntax->nodes[syntax->nodes[around].parent].kind == NODE_CLASS;
}

/* How the function would call itself. */
static const char *own_name(struct script *script, uint32_t node, const char *name)
{
	if (!is_method(&script->syntax, node))
		return name;
	return value_name_join(script->arena, script->language->index_is_member ? "this" : "self", ".", name);
}

static void note_recursion(struct script *script, uint32_t node, const char *name)
{
	bool multiplies = false, recurses;
	uint32_t index, again;

	name = own_name(script, node, name);
	if (script->bounds.depth > RECURSION_DEPTH_MAX || !name)
		return;
	recurses = calls_itself(script, node, name, &multiplies);
	again = script_recursion(script, node, name);
	if (again & TRAIT_RECURSES)
		walk_add(script->walk, OP_LOOP, script_span(script, node), script->context | CONTEXT_ENDLESS);
	if (!recurses && !again)
		return;
	index = walk_add(script->walk, OP_FUNCTION, script_span(script, node), script->context);
	operations_add_text(script->walk->operations, index, name);
	operations_add_traits(script->walk->operations, index,
			      TRAIT_RECURSES | (multiplies ? TRAIT_MULTIPLIES : 0) | (again & TRAIT_MULTIPLIES));
}

/* const f = () => …: its name is that of what it is given to. */
static uint32_t name_of(const struct syntax *syntax, uint32_t node)
{
	uint32_t name = syntax_child(syntax, node, FIELD_TARGET), around = syntax->nodes[node].parent;

	if (name || !around || syntax->nodes[around].kind != NODE_DECLARE)
		return name;
	name = syntax_child(syntax, around, FIELD_TARGET);
	return name && syntax->nodes[name].kind == NODE_NAME ? name : 0;
}

const struct value *script_make_function(struct script *script, uint32_t node)
{
	struct value *value = value_new(script->arena, VALUE_FUNCTION);
	uint32_t name = syntax_child(&script->syntax, node, FIELD_TARGET);
	struct script_function_entry *entry;

	if (!value)
		return &value_nothing;
	value->node = node;
	value->scope = script->scope;
	if (script->syntax.nodes[node].note) {
		entry_of(script, node)->scope = script->scope;
		return value;
	}
	entry = script->functions.count < SCRIPT_FUNCTIONS_MAX
			? vec_add(script->arena, &script->functions, sizeof *entry)
			: NULL;
	if (!entry) {
		if (!script->bounds.was_long)
			operations_doubt(script->walk->operations, DOUBT_SIZE, script_span(script, node));
		script->bounds.was_long = true;
		return value;
	}
	*entry = (struct script_function_entry){ .node = node, .scope = script->scope };
	script->syntax.nodes[node].note = (uint32_t)script->functions.count;
	if (name) {
		entry->name = script_text(script, name);
		script_declare_method(script, entry->name, value);
	}
	name = name_of(&script->syntax, node);
	if (name)
		note_recursion(script, node, script_text(script, name));
	return value;
}

/* What the function cannot be asked for: something made of all that it was given. */
static const struct value *made_of(struct script *script, const struct call *call)
{
	const struct value *all = &value_nothing;

	for (size_t i = 0; i < call->count; i++)
		all = value_also_from(script->arena, all, call->arguments[i]);
	return all;
}

static bool is_running(const struct script *script, uint32_t node)
{
	for (const struct frame *frame = script->frame; frame; frame = frame->outer)
		if (frame->node == node)
			return true;
	return false;
}

/*
 * Whether it need not be gone into: it is running, it was gone through with nothing known before, or it never
 * did anything but return, however often it was called.
 */
static bool is_known_already(struct script *script, const struct value *function, const struct call *call,
			     const struct script_function_entry *entry)
{
	if (is_running(script, function->node) || script->bounds.guesses > GUESSES_MAX)
		return true;
	return entry && ((entry->blank_result && call_is_blank(call)) ||
			 (entry->runs >= RUNS_MIN && !entry->has_operations));
}

/* More than is followed. What was found by its name alone may be another function: nothing is missed for
 * certain. */
static bool is_too_much(struct script *script, const struct call *call, struct script_function_entry *entry)
{
	if (script->bounds.calls < SCRIPT_CALLS_MAX && script->bounds.inline_steps <= SCRIPT_INLINE_MAX &&
	    script->arena->size < SCRIPT_INLINE_SIZE_MAX)
		return false;
	if (entry && !script->bounds.guesses && !call_is_blank(call))
		entry->missed = call->node;
	return true;
}

/* What the function did since there were that many operations. */
static void note_operations(const struct script *script, struct script_function_entry *entry, size_t first)
{
	static const bool is_deed[OPERATION_KIND_COUNT] = {
		[OP_COMMAND] = true, [OP_READ] = true,	  [OP_WRITE] = true,	   [OP_REMOVE] = true,
		[OP_NETWORK] = true, [OP_PROCESS] = true, [OP_ENVIRONMENT] = true, [OP_EVALUATE] = true,
		[OP_PERMISSION] = true,
	};
	const struct operations *operations = script->walk->operations;

	for (size_t i = first; i < operations_count(operations) && !entry->has_deeds; i++)
		entry->has_deeds = is_deed[operations_get(operations, (uint32_t)i)->kind];
	entry->has_operations |= operations_count(operations) > first;
}

const struct value *script_invoke(struct script *script, const struct value *function,
				  const struct call *call)
{
	struct script_function_entry *entry = entry_of(script, function->node);
	size_t operations = operations_count(script->walk->operations);
	const struct value *value;

	if (is_known_already(script, function, call, entry))
		return entry && entry->blank_result && call_is_blank(call) ? entry->blank_result
									   : made_of(script, call);
	if (is_too_much(script, call, entry))
		return made_of(script, call);
	if (entry)
		entry->was_called = true;
	script->bounds.calls++;
	script->bounds.guesses += call->is_guess;
	value = run(script, function->node, function->scope, call);
	script->bounds.guesses -= call->is_guess;
	script->bounds.calls--;
	/* The table may have moved. */
	entry = entry_of(script, function->node);
	if (entry) {
		entry->runs++;
		note_operations(script, entry, operations);
		if (call_is_blank(call))
			entry->blank_result = value;
	}
	return value;
}

const struct value *script_call_back(struct script *script, const struct value *function,
				     const struct value *argument, uint32_t node)
{
	struct call call = { .node = node,
			     .callee = function,
			     .count = function->kind == VALUE_FUNCTION ? 4 : 1 };

	/* Whether the error or the result comes first, libraries do not agree on. */
	for (size_t i = 0; i < call.count; i++)
		call.arguments[i] = argument;
	return script_apply(script, &call);
}

/* What pickle will call with what, when it reads an object of this class. */
static void apply_reduced(struct script *script, const struct value *reduced, uint32_t node)
{
	struct call call = { .node = node };

	if (reduced->kind != VALUE_LIST || reduced->count < 2 || reduced->items[1]->kind != VALUE_LIST)
		return;
	call.callee = reduced->items[0];
	if (call.callee->name) {
		uint32_t index = walk_add(script->walk, OP_CALL, script_span(script, node), script->context);

		operations_add_text(script->walk->operations, index, "(reduced)");
		operations_add_text(script->walk->operations, index, call.callee->name);
	}
	for (uint32_t i = 0; i < reduced->items[1]->count && i < CALL_ARGUMENTS_MAX; i++)
		call.arguments[call.count++] = reduced->items[1]->items[i];
	script_apply(script, &call);
}

/*
 * A call that was not followed hides something only where the function does anything, and then only what it does it
 * with: what it does was seen when it ran with something else, or with nothing known.
 */
static void tell_missed(struct script *script)
{
	const struct script_function_entry *entries = script->functions.items;

	for (size_t i = 0; i < script->functions.count; i++) {
		if (!entries[i].missed || !entries[i].has_deeds)
			continue;
		operations_doubt(script->walk->operations, DOUBT_DEPTH, script_span(script, entries[i].missed));
		return;
	}
}

void script_run_uncalled(struct script *script)
{
	const struct call nothing = { 0 };

	for (size_t i = 0; i < script->functions.count && script_step(script); i++) {
		struct script_function_entry entry =
			((struct script_function_entry *)script->functions.items)[i];
		size_t operations = operations_count(script->walk->operations);
		struct script_place outer;
		const struct value *value;

		if (entry.was_called)
			continue;
		outer = script_enter_branch(script, 0);
		value = run(script, entry.node, entry.scope, &nothing);
		note_operations(script, &((struct script_function_entry *)script->functions.items)[i], operations);
		if (str_equal(entry.name, "__reduce__"))
			apply_reduced(script, value, entry.node);
		script_leave_branch(script, outer);
	}
	tell_missed(script);
}
