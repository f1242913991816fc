/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/script/script.h"
#include "verify/script/text.h"

static void put_argument(struct script *script, struct call *call, const char *keyword,
			 const struct value *value)
{
	value = script->language->library->used(script, value, call->node);
	if (call->count == CALL_ARGUMENTS_MAX) {
		call->arguments[call->count - 1] =
			value_also_from(script->arena, call->arguments[call->count - 1], value);
		return;
	}
	call->keywords[call->count] = keyword;
	call->arguments[call->count++] = value;
}

static void put_spread(struct script *script, struct call *call, const struct value *value)
{
	if (value->kind != VALUE_LIST && value->kind != VALUE_MAP) {
		put_argument(script, call, NULL, value);
		return;
	}
	for (uint32_t i = 0; i < value->count; i++)
		put_argument(script, call, value->kind == VALUE_MAP ? value->keys[i] : NULL, value->items[i]);
}

static void read_argument(struct script *script, struct call *call, uint32_t node)
{
	const struct syntax_node *at = &script->syntax.nodes[node];
	uint32_t name, value;

	if (at->kind == NODE_KEYWORD) {
		name = syntax_child(&script->syntax, node, FIELD_TARGET);
		value = syntax_child(&script->syntax, node, FIELD_VALUE);
		if (name && value)
			put_argument(script, call, script_text(script, name), script_value(script, value));
	} else if (at->kind == NODE_SPREAD || at->kind == NODE_SPREAD_MAP) {
		put_spread(script, call, script_value(script, node));
	} else {
		put_argument(script, call, NULL, script_value(script, node));
	}
}

static void read_arguments(struct script *script, struct call *call)
{
	uint32_t arguments = syntax_child(&script->syntax, call->node, FIELD_ARGUMENTS);

	if (!arguments)
		return;
	if (script->syntax.nodes[arguments].kind != NODE_ARGUMENTS) {
		/* f(x for x in y), tag`text` */
		read_argument(script, call, arguments);
		return;
	}
	for (uint32_t at = script->syntax.nodes[arguments].first; at; at = script->syntax.nodes[at].next)
		read_argument(script, call, at);
}

/* What is called, and on what. */
static void read_callee(struct script *script, struct call *call)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t function = syntax_child(syntax, call->node, FIELD_FUNCTION), object, name, size;
	const struct value *index, *value;
	const char *dotted;

	while (function && syntax->nodes[function].kind == NODE_SAME && syntax->nodes[function].first &&
	       !syntax->nodes[syntax->nodes[function].first].next)
		function = syntax->nodes[function].first;
	object = function ? syntax_child(syntax, function, FIELD_VALUE) : 0;
	name = function ? syntax_child(syntax, function, FIELD_MEMBER) : 0;
	call->callee = &value_nothing;
	if (function && syntax->nodes[function].kind == NODE_MEMBER && object && name) {
		call->self = script_value(script, object);
		call->method = script_text(script, name);
		dotted = script_dotted(script, function);
		value = dotted ? script_lookup(script, dotted) : NULL;
		call->callee = value ? value : script_member(script, call->self, call->method, function);
	} else if (function && syntax->nodes[function].kind == NODE_INDEX && object) {
		call->self = script_value(script, object);
		name = syntax_child(syntax, function, FIELD_INDEX);
		index = name ? script_value(script, name) : &value_nothing;
		if (value_is_exact(index) && script->language->index_is_member)
			call->method = value_chars(script->arena, index, &size);
		call->callee = script_index(script, call->self, index, function);
	} else if (function) {
		call->callee = script_value(script, function);
	}
}

/* All that the call was given, and what it was made on. */
static const struct value *call_taint(struct script *script, const struct call *call)
{
	const struct value *all = call->self ? value_taint(script->arena, call->self) : &value_nothing;

	for (size_t i = 0; i < call->count; i++)
		all = value_also_from(script->arena, all, call->arguments[i]);
	return all;
}

/* Functions of the file that somebody else will call, with something that comes from the call. */
const struct value *script_run_callbacks(struct script *script, const struct call *call,
					 const struct value *given)
{
	const struct value *all = given;
	unsigned count = 0;

	for (size_t i = 0; i < call->count && count < CALL_CALLBACKS_MAX; i++) {
		const struct value *argument = call->arguments[i];
		struct script_place outer;

		/* What a library is asked to call (map(os.remove, …)) matters with what it is called. */
		if (argument->kind != VALUE_FUNCTION &&
		    (!given->origins.count || !script->language->library->is_callable(script, argument)))
			continue;
		outer = script_enter_branch(script, 0);
		all = value_also_from(script->arena, all,
				      script_call_back(script, argument, given, call->node));
		script_leave_branch(script, outer);
		count++;
	}
	return all;
}

/* The object, which now is also from where its method's arguments are from. */
static const struct value *taken_in(struct script *script, const struct call *call)
{
	const struct value *object = call->self;

	for (size_t i = 0; i < call->count; i++)
		object = value_also_from(script->arena, object, call->arguments[i]);
	return object;
}

/* list.append(x): the variable has one item more. */
static void grow_variable(struct script *script, const struct call *call)
{
	static const char *const growing[] = { "add",  "append",  "extend", "insert",
					       "push", "unshift", "update" };
	uint32_t function = syntax_child(&script->syntax, call->node, FIELD_FUNCTION);
	uint32_t object = function ? syntax_child(&script->syntax, function, FIELD_VALUE) : 0;
	const struct value *old = call->self, *items[SCRIPT_REPEAT_MAX];
	uint32_t count = 0;

	if (!object || !call->method || !call->count)
		return;
	if (names_find(growing, ARRAY_SIZE(growing), call->method) < 0) {
		/* message.set_content(x), form.append(x): something of it is in there now. */
		old = taken_in(script, call);
		if (old != call->self && old->origins.count > call->self->origins.count)
			script_replace(script, object, old);
		return;
	}
	if (old->kind == VALUE_LIST && !old->other && old->count + call->count < SCRIPT_REPEAT_MAX) {
		for (; count < old->count; count++)
			items[count] = old->items[count];
		for (size_t i = 0; i < call->count; i++) {
			const struct value *more = call->arguments[i];
			bool is_many = str_equal(call->method, "extend") && more->kind == VALUE_LIST;

			for (uint32_t k = 0;
			     is_many && k < more->count && count < SCRIPT_REPEAT_MAX - CALL_ARGUMENTS_MAX;
			     k++)
				items[count++] = more->items[k];
			if (!is_many)
				items[count++] = more;
		}
		old = value_list(script->arena, items, count);
	} else {
		old = taken_in(script, call);
	}
	script_replace(script, object, old);
}

/* A library's call. An object that is told of a file (archive.add("/x")) has something of it from then on. */
static uint32_t run_other(struct script *script, const struct call *call)
{
	uint32_t index = script->language->library->other_call(script, call);
	uint32_t function = syntax_child(&script->syntax, call->node, FIELD_FUNCTION);
	uint32_t object = function ? syntax_child(&script->syntax, function, FIELD_VALUE) : 0;

	if (index != OPERATION_NONE && index + 1 < operations_count(script->walk->operations) && object &&
	    script->syntax.nodes[object].kind == NODE_NAME && call->method && call->self)
		script_assign(script, script_text(script, object),
			      value_with_origin(script->arena, call->self, index));
	return index;
}

/* afterEach(f): f runs when a runner of tests runs the file, and it has no meaning else. */
static bool is_hook_of_tests(const char *name)
{
	static const char *const names[] = { "afterAll",	 "afterEach",	     "beforeAll",
					     "beforeEach",	 "node:test.before", "node:test.beforeEach",
					     "vitest.afterAll",	 "vitest.afterEach", "vitest.beforeAll",
					     "vitest.beforeEach" };

	return name && names_find(names, ARRAY_SIZE(names), name) >= 0;
}

/* What nothing is known of: what comes out is made of what went in. */
static const struct value *unknown_call(struct script *script, struct call *call)
{
	const struct value *function = call->method && !(call->self && call->self->name)
					       ? script_method(script, call->method)
					       : NULL;
	const struct value *result, *named = call->callee;

	if (function && function->kind == VALUE_FUNCTION) {
		call->is_guess = true;
		return script_invoke(script, function, call);
	}
	grow_variable(script, call);
	script->language->library->take_in(script, call);
	result = call_taint(script, call);
	if (named->name)
		result = value_with_origin(script->arena, result, run_other(script, call));
	script->tests += is_hook_of_tests(named->name);
	result = script_run_callbacks(script, call, result);
	script->tests -= is_hook_of_tests(named->name);
	if (!named->name)
		return result;
	result =
		value_with_name(script->arena, result, value_name_join(script->arena, named->name, "()", ""));
	return call->count ? value_with_subject(script->arena, result, call->arguments[0]) : result;
}

static const struct value *apply_one(struct script *script, struct call *call)
{
	const struct value *result;

	if (call->callee->kind == VALUE_FUNCTION)
		return script_invoke(script, call->callee, call);
	result = script->language->library->call(script, call);
	if (!result)
		result = text_call(script, call);
	return result ? result : unknown_call(script, call);
}

const struct value *script_apply(struct script *script, struct call *call)
{
	const struct value *callee = call->callee, *all = NULL;

	if (!script_step(script) || script->bounds.depth >= script->bounds.depth_max)
		return &value_nothing;
	script->bounds.depth++;
	for (const struct value *one = callee; one; one = one->other) {
		const struct value *result;

		call->callee = value_alone(script->arena, one);
		result = apply_one(script, call);
		all = all ? value_either(script->arena, all, result) : result;
	}
	script->bounds.depth--;
	call->callee = callee;
	return all ? all : &value_nothing;
}

const struct value *script_call(struct script *script, uint32_t node)
{
	struct call call = { .node = node, .is_new = script->syntax.nodes[node].kind == NODE_NEW };

	read_callee(script, &call);
	read_arguments(script, &call);
	return script_apply(script, &call);
}
