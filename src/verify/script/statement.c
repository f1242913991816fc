/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/script/expression.h"

enum { COMPREHENSION_CLAUSES_MAX = 4 };

/* JavaScript's else-if stands one level deeper each time, so a chain of them is gone along and not down. */
const struct value *statement_if(struct script *script, uint32_t node)
{
	const struct syntax *syntax = &script->syntax;

	while (node) {
		uint32_t condition = syntax_child(syntax, node, FIELD_CONDITION);
		uint32_t body = syntax_child(syntax, node, FIELD_BODY), next = 0;

		if (!script_step(script))
			break;
		if (condition)
			script_value(script, condition);
		if (body)
			script_branch(script, body, CONTEXT_CONDITION);
		for (uint32_t at = syntax->nodes[node].first; at; at = syntax->nodes[at].next) {
			uint32_t inner = syntax->nodes[at].first;

			if (syntax->nodes[at].field != FIELD_ELSE)
				continue;
			if (!next && inner && syntax->nodes[inner].kind == NODE_IF &&
			    !syntax->nodes[inner].next)
				next = inner;
			else
				script_value(script, at);
		}
		node = next;
	}
	return &value_nothing;
}

const struct value *statement_branch(struct script *script, uint32_t node)
{
	struct script_place outer = script_enter_branch(script, CONTEXT_CONDITION);

	script_children(script, node);
	script_leave_branch(script, outer);
	return &value_nothing;
}

/* Whether the name of what is called, before its bracket, ends with one of these. */
static bool calls_one_of(const struct syntax *syntax, const struct syntax_node *call, const char *const *names,
			 size_t count)
{
	const char *text = syntax->text + call->start;
	size_t size = call->end <= syntax->size ? call->end - call->start : 0;
	const char *open = size ? memchr(text, '(', size) : NULL;

	for (size_t i = 0; open && i < count; i++) {
		size_t length = strlen(names[i]);

		if ((size_t)(open - text) >= length && memcmp(open - length, names[i], length) == 0)
			return true;
	}
	return false;
}

/* Whether the call waits, or ends all: time.sleep(1), server.accept(), process.exit(1). */
static bool is_waiting(const struct syntax *syntax, const struct syntax_node *call)
{
	static const char *const names[] = { "abort", "accept", "exit", "poll", "recv", "select", "sleep", "wait" };

	return calls_one_of(syntax, call, names, ARRAY_SIZE(names));
}

/* Whether the call takes something of what comes to an end: queue.get_nowait(), next(items), stack.pop(). */
static bool is_taking(const struct syntax *syntax, const struct syntax_node *call)
{
	static const char *const names[] = { ".get", ".get_nowait", ".pop", ".popitem", ".popleft", "next" };

	return calls_one_of(syntax, call, names, ARRAY_SIZE(names));
}

/* Whether something in the loop's body leaves it, or waits in it. */
static bool has_way_out(const struct syntax *syntax, uint32_t loop)
{
	uint32_t end = syntax_behind(syntax, loop), node = loop + 1;

	while (node < end) {
		const struct syntax_node *at = &syntax->nodes[node];

		if (at->kind == NODE_RETURN || at->kind == NODE_LEAVE)
			return true;
		if (at->kind == NODE_CALL && is_waiting(syntax, at))
			return true;
		if (at->kind == NODE_FUNCTION || at->kind == NODE_CLASS)
			node = syntax_behind(syntax, node);
		else
			node++;
	}
	return false;
}

/* try: while True: queue.get_nowait() … except Empty: pass. Where nothing is left to be taken, an error is its end. */
static bool ends_by_error(const struct syntax *syntax, uint32_t loop)
{
	uint32_t end = syntax_behind(syntax, loop), inner = loop, around = syntax->nodes[loop].parent;
	bool takes = false;

	for (uint32_t at = loop + 1; at < end && !takes; at++)
		takes = syntax->nodes[at].kind == NODE_CALL && is_taking(syntax, &syntax->nodes[at]);
	for (; takes && around && syntax->nodes[around].kind != NODE_FUNCTION; around = syntax->nodes[around].parent) {
		if (syntax->nodes[around].kind == NODE_OTHER && syntax->nodes[inner].kind != NODE_BRANCH &&
		    syntax_child_kind(syntax, around, NODE_BRANCH))
			return true;
		inner = around;
	}
	return false;
}

static bool is_always_true(const struct script *script, uint32_t condition)
{
	const struct syntax *syntax = &script->syntax;

	while (syntax->nodes[condition].kind == NODE_SAME && syntax->nodes[condition].first)
		condition = syntax->nodes[condition].first;
	if (syntax->nodes[condition].kind == NODE_NUMBER)
		return !script_is(script, condition, "0");
	return syntax->nodes[condition].kind == NODE_TRUE;
}

/* let run = true; while (run) …, and nothing in the loop changes it. */
static bool stays_true(struct script *script, uint32_t loop, uint32_t condition)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t end = syntax_behind(syntax, loop);
	const struct value *value;
	const char *name;

	while (syntax->nodes[condition].kind == NODE_SAME && syntax->nodes[condition].first)
		condition = syntax->nodes[condition].first;
	if (syntax->nodes[condition].kind != NODE_NAME)
		return false;
	name = script_text(script, condition);
	value = script_lookup(script, name);
	if (!value || value->kind != VALUE_NUMBER || !value->number || value->other)
		return false;
	for (uint32_t at = loop + 1; at < end; at++)
		if (at != condition && syntax->nodes[at].kind == NODE_NAME && script_is(script, at, name))
			return false;
	return true;
}

static void run_once(struct script *script, uint32_t body, uint32_t increment)
{
	script_value(script, body);
	if (increment)
		script_value(script, increment);
}

/* A loop that counts is gone through as often as it runs. False where nobody knows how often that is. */
static bool run_counted(struct script *script, uint32_t condition, uint32_t body, uint32_t increment)
{
	unsigned times = 0;

	for (;;) {
		const struct value *value = script_value(script, condition);

		if (value->kind != VALUE_NUMBER || value->other)
			return times > 0;
		if (!value->number)
			return true;
		if (++times > SCRIPT_REPEAT_MAX || ++script->bounds.repeats > SCRIPT_REPEATS_MAX)
			return true;
		if (times > 1 && !script_may_repeat(script))
			return true;
		script->bounds.repeating += times > 1;
		run_once(script, body, increment);
		script->bounds.repeating -= times > 1;
	}
}

const struct value *statement_loop(struct script *script, uint32_t node)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t condition = syntax_child(syntax, node, FIELD_CONDITION),
		 body = syntax_child(syntax, node, FIELD_BODY);
	uint32_t start = syntax_child(syntax, node, FIELD_INITIALIZER),
		 other = syntax_child(syntax, node, FIELD_ELSE);
	uint32_t increment = syntax_child(syntax, node, FIELD_INCREMENT), outer_context = script->context;
	bool is_endless = !condition || is_always_true(script, condition);
	struct script_place outer;
	int64_t outer_times;

	if (start)
		script_value(script, start);
	outer_times = script_repeat(script, script_loop_times(script, condition, increment));
	is_endless |= condition && stays_true(script, node, condition);
	script->context |= CONTEXT_LOOP;
	if (is_endless && !has_way_out(syntax, node)) {
		script->context |= CONTEXT_ENDLESS;
		if (!ends_by_error(syntax, node))
			walk_add(script->walk, OP_LOOP, script_span(script, node), script->context);
	}
	if (!body || is_endless || !increment || !run_counted(script, condition, body, increment)) {
		if (condition && !is_endless)
			script_value(script, condition);
		outer = script_enter_branch(script, 0);
		if (body)
			run_once(script, body, increment);
		script_leave_branch(script, outer);
	}
	script->context = outer_context;
	script->times = outer_times;
	return other ? script_value(script, other) : &value_nothing;
}

/* How many items the loop is gone through for; 0: they are not known, or too many. */
static uint32_t repeat_count(struct script *script, const struct value *list)
{
	uint32_t count = 0;

	if (list->other || list->is_cut)
		return 0;
	if (list->kind == VALUE_LIST || list->kind == VALUE_MAP)
		count = list->count;
	else if (value_is_exact(list) && !list->name)
		count = list->size;
	if (count > SCRIPT_REPEAT_MAX || script->bounds.repeats + count > SCRIPT_REPEATS_MAX)
		return 0;
	script->bounds.repeats += count;
	return count;
}

/* How often a loop runs over what is too long to be gone through: range(1000000). */
static int64_t times_of(const struct value *list)
{
	return list->kind == VALUE_UNKNOWN && list->name && str_equal(list->name, "range()") ? list->number : 0;
}

/* Item i of what a loop goes through. */
static const struct value *repeat_item(struct script *script, const struct value *list, uint32_t i)
{
	if (list->kind == VALUE_TEXT)
		return value_also_from(script->arena,
				       value_text(script->arena, list->text + i, 1, list->flags), list);
	if (list->kind == VALUE_MAP && list->keys[i])
		return value_text(script->arena, list->keys[i], strlen(list->keys[i]), 0);
	return list->items[i];
}

/* Any of the items, where it is not known which. */
static const struct value *some_item(struct script *script, const struct value *list)
{
	return script_index(script, list, &value_nothing, 0);
}

/* for i in itertools.count(): */
static bool is_without_end(struct script *script, uint32_t right, const struct value *list)
{
	static const char *const names[] = { "itertools.count()", "itertools.cycle()" };

	if (right && script_is(script, right, "iter(int, 1)"))
		return true;
	return list->name && names_find(names, ARRAY_SIZE(names), list->name) >= 0;
}

/* The body with each item that is known. False where there are none, or more than are gone through one by one. */
static bool each_item(struct script *script, const struct value *list, uint32_t count, uint32_t target, uint32_t body)
{
	for (uint32_t i = 0; i < count && target && body; i++) {
		if (i && !script_may_repeat(script))
			return false;
		script->bounds.repeating += i > 0;
		script_bind(script, target, repeat_item(script, list, i), true);
		script_value(script, body);
		script->bounds.repeating -= i > 0;
	}
	return count > 0;
}

const struct value *statement_each(struct script *script, uint32_t node)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t target = syntax_child(syntax, node, FIELD_TARGET),
		 body = syntax_child(syntax, node, FIELD_BODY);
	uint32_t right = syntax_child(syntax, node, FIELD_VALUE),
		 other = syntax_child(syntax, node, FIELD_ELSE);
	const struct value *list = right ? script_value(script, right) : &value_nothing;
	uint32_t count = repeat_count(script, list), outer_context = script->context;
	int64_t outer_times = script_repeat(script, times_of(list));
	struct script_place outer;

	script->context |= CONTEXT_LOOP;
	if (is_without_end(script, right, list) && !has_way_out(syntax, node)) {
		script->context |= CONTEXT_ENDLESS;
		walk_add(script->walk, OP_LOOP, script_span(script, node), script->context);
	}
	/* What the bounds leave of the items is gone through as any of them. */
	if (!each_item(script, list, count, target, body)) {
		outer = script_enter_branch(script, 0);
		if (target)
			script_bind(script, target, some_item(script, list), true);
		if (body)
			script_value(script, body);
		script_leave_branch(script, outer);
	}
	script->context = outer_context;
	script->times = outer_times;
	return other ? script_value(script, other) : &value_nothing;
}

/* The clauses behind the first one: their names are any of their items. */
static void bind_clauses(struct script *script, uint32_t clause)
{
	const struct syntax *syntax = &script->syntax;

	for (; clause; clause = syntax->nodes[clause].next) {
		uint32_t target = syntax_child(syntax, clause, FIELD_TARGET);
		uint32_t right = syntax_child(syntax, clause, FIELD_VALUE);

		if (syntax->nodes[clause].kind != NODE_FOR_IN)
			script_value(script, clause);
		else if (target && right)
			script_bind(script, target, some_item(script, script_value(script, right)), true);
	}
}

static const struct value *comprehend(struct script *script, uint32_t body, uint32_t clause)
{
	const struct syntax *syntax = &script->syntax;
	const struct value *items[SCRIPT_REPEAT_MAX];
	uint32_t target = syntax_child(syntax, clause, FIELD_TARGET),
		 right = syntax_child(syntax, clause, FIELD_VALUE);
	const struct value *list = right ? script_value(script, right) : &value_nothing;
	uint32_t count = repeat_count(script, list), made = 0;
	const struct value *value;
	int64_t outer_times;

	for (; made < count && target && (!made || script_may_repeat(script)); made++) {
		script->bounds.repeating += made > 0;
		script_bind(script, target, repeat_item(script, list, made), true);
		bind_clauses(script, syntax->nodes[clause].next);
		items[made] = script_value(script, body);
		script->bounds.repeating -= made > 0;
	}
	if (count && made == count)
		return value_list(script->arena, items, made);
	if (target)
		script_bind(script, target, some_item(script, list), true);
	outer_times = script_repeat(script, times_of(list));
	bind_clauses(script, syntax->nodes[clause].next);
	value = script_value(script, body);
	script->times = outer_times;
	return value_also_from(script->arena, value_taint(script->arena, value), list);
}

const struct value *statement_comprehension(struct script *script, uint32_t node)
{
	uint32_t body = syntax_child(&script->syntax, node, FIELD_BODY), outer_scope = script->scope;
	uint32_t clause = syntax_child_kind(&script->syntax, node, NODE_FOR_IN),
		 outer_context = script->context;
	const struct value *value;

	if (!body || !clause)
		return script_other(script, node);
	script->scope = script_scope_new(script, outer_scope);
	script->context |= CONTEXT_LOOP;
	value = comprehend(script, body, clause);
	script->scope = outer_scope;
	script->context = outer_context;
	return value;
}

const struct value *statement_return(struct script *script, uint32_t node)
{
	const struct value *value = script_children(script, node);

	if (script->frame)
		script->frame->result = script->frame->result
						? value_either(script->arena, script->frame->result, value)
						: value;
	return &value_nothing;
}

/* The body's function that makes an instance, or 0. */
static uint32_t find_maker(struct script *script, uint32_t body)
{
	for (uint32_t at = script->syntax.nodes[body].first; at; at = script->syntax.nodes[at].next) {
		uint32_t name = syntax_child(&script->syntax, at, FIELD_TARGET);

		if (script->syntax.nodes[at].kind == NODE_FUNCTION && name &&
		    (script_is(script, name, "__init__") || script_is(script, name, "constructor")))
			return at;
	}
	return 0;
}

const struct value *statement_class(struct script *script, uint32_t node)
{
	uint32_t name = syntax_child(&script->syntax, node, FIELD_TARGET), outer_scope = script->scope;
	uint32_t body = syntax_child(&script->syntax, node, FIELD_BODY), maker;
	const struct value *class = &value_nothing;

	for (uint32_t at = script->syntax.nodes[node].first; at; at = script->syntax.nodes[at].next)
		if (at != name && at != body)
			script_value(script, at);
	if (body) {
		script->scope = script_scope_new(script, outer_scope);
		maker = find_maker(script, body);
		script_value(script, body);
		if (maker)
			class = script_make_function(script, maker);
		script->scope = outer_scope;
	}
	if (name)
		script_declare(script, script_text(script, name), class);
	return class;
}

const struct value *statement_as(struct script *script, uint32_t node)
{
	uint32_t target = syntax_child(&script->syntax, node, FIELD_ALIAS),
		 first = script->syntax.nodes[node].first;
	const struct value *value = first && first != target ? script_value(script, first) : &value_nothing;

	if (target)
		script_bind(script, target, value, true);
	return value;
}

const struct value *statement_global(struct script *script, uint32_t node)
{
	for (uint32_t at = script->syntax.nodes[node].first; at; at = script->syntax.nodes[at].next)
		script_share(script, script_text(script, at));
	return &value_nothing;
}
