/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How often things happen: loops that count to a number that is known, functions that have themselves called
 * again, and what becomes of the machine then. A loop is gone through a few times only, whatever it counts to;
 * what it does is told by how often it would.
 */

#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/script/script.h"

enum { BLOCK_SIZE = 4096, LOOK_MAX = 20000, PARENTS_MAX = 12 };

#define TIMES_MAX (1ll << 60)
#define KEPT_MIN (1ll << 37)
#define ENDLESS_KEPT_MIN (1ll << 20)
#define WRITTEN_MIN 10000000000ll

/* From how many of them on nobody can tell the loop from one without an end. */
static const int64_t too_many[OPERATION_KIND_COUNT] = {
	[OP_PROCESS] = 1000,
	[OP_NETWORK] = 100000,
	[OP_COMMAND] = 100000,
};

uint32_t script_context(const struct script *script, enum operation_kind kind)
{
	bool is_endless = too_many[kind] && script->times >= too_many[kind];

	return script->context | (is_endless ? CONTEXT_LOOP | CONTEXT_ENDLESS : 0);
}

int64_t script_repeat(struct script *script, int64_t times)
{
	int64_t outer = script->times, all;

	if (times > 1 && (__builtin_mul_overflow(outer ? outer : 1, times, &all) || all > TIMES_MAX))
		all = TIMES_MAX;
	if (times > 1)
		script->times = all;
	return outer;
}

/* for (let i = 0; i < 1e6; i++): the number that it is compared with, where it begins near 0. */
int64_t script_loop_times(struct script *script, uint32_t condition, uint32_t increment)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t operator, bound;
	const struct value *value;

	while (condition && syntax->nodes[condition].kind == NODE_SAME)
		condition = syntax->nodes[condition].first;
	if (!condition || !increment || syntax->nodes[increment].kind != NODE_AUGMENT ||
	    syntax_child(syntax, increment, FIELD_VALUE) != syntax->nodes[increment].first)
		return 0;
	operator= syntax_child(syntax, condition, FIELD_OPERATOR);
	bound = syntax_child(syntax, condition, FIELD_VALUE);
	if (!operator|| !bound || (!script_is(script, operator, "<") && !script_is(script, operator, "<=")))
		return 0;
	value = script_value(script, bound);
	return value->kind == VALUE_NUMBER && !value->other ? value->number : 0;
}

/* Whether what the node makes is kept: in a list, a map, a comprehension. */
static bool is_kept(struct script *script, uint32_t node)
{
	static const char *const keeping[] = { "add",  "append", "appendleft", "extend",
					       "push", "put",	 "set",	       "unshift" };
	const struct syntax *syntax = &script->syntax;

	for (unsigned i = 0; node && i < PARENTS_MAX; i++) {
		uint32_t function;
		const char *text;

		node = syntax->nodes[node].parent;
		if (syntax->nodes[node].kind == NODE_COMPREHENSION)
			return true;
		if (syntax->nodes[node].kind == NODE_BLOCK || syntax->nodes[node].kind == NODE_FUNCTION)
			return false;
		function = syntax->nodes[node].kind == NODE_CALL ? syntax_child(syntax, node, FIELD_FUNCTION) : 0;
		if (!function || syntax->nodes[function].end - syntax->nodes[function].start > VALUE_NAME_MAX)
			continue;
		text = strrchr(script_text(script, function), '.');
		if (text && names_find(keeping, ARRAY_SIZE(keeping), text + 1) >= 0)
			return true;
	}
	return false;
}

int64_t script_kept_size(struct script *script, uint32_t node, int64_t size)
{
	int64_t all;

	if (size <= 0 || !is_kept(script, node))
		return size;
	if (script->context & CONTEXT_ENDLESS && size >= ENDLESS_KEPT_MIN)
		return INT64_MAX;
	if (script->times < 2)
		return size;
	if (__builtin_mul_overflow(size, script->times, &all))
		all = INT64_MAX;
	return all >= KEPT_MIN ? all : size;
}

void script_note_written(struct script *script, uint32_t node, int64_t size)
{
	struct call call = { .node = node };
	int64_t all;

	if (script->times < 2)
		return;
	if (__builtin_mul_overflow(size ? size : BLOCK_SIZE, script->times, &all))
		all = INT64_MAX;
	if (all >= WRITTEN_MIN && (size || script->times >= WRITTEN_MIN / BLOCK_SIZE))
		script_add(script, &call, OP_ALLOCATE, value_number(script->arena, all), 0);
}

/* Whether node always runs when the function around does: in no condition, no handler, no other function. */
static bool is_unconditional(const struct syntax *syntax, uint32_t node, uint32_t function)
{
	static const bool conditional[NODE_KIND_COUNT] = {
		[NODE_IF] = true,   [NODE_CHOICE] = true,   [NODE_BRANCH] = true,	[NODE_FUNCTION] = true,
		[NODE_CLASS] = true, [NODE_BINARY] = true, [NODE_COMPREHENSION] = true,
	};

	for (node = syntax->nodes[node].parent; node && node != function; node = syntax->nodes[node].parent)
		if (conditional[syntax->nodes[node].kind])
			return false;
	return node == function;
}

/* Whether the function can end before its end. */
static bool can_return(const struct syntax *syntax, uint32_t function, uint32_t until)
{
	for (uint32_t at = function + 1; at < until; at++)
		if (syntax->nodes[at].kind == NODE_RETURN || syntax->nodes[at].kind == NODE_LEAVE)
			return true;
	return false;
}

/* One of the call's arguments, or what a keyword gives, is this name. */
static bool is_given_name(struct script *script, uint32_t node, const char *name)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t arguments = syntax_child(syntax, node, FIELD_ARGUMENTS);

	for (uint32_t at = arguments ? syntax->nodes[arguments].first : 0; at; at = syntax->nodes[at].next) {
		uint32_t given = syntax->nodes[at].kind == NODE_KEYWORD ? syntax_child(syntax, at, FIELD_VALUE) : at;

		if (given && script_is(script, given, name))
			return true;
	}
	return false;
}

static bool ends_with_one(const char *text, const char *const *names, size_t count)
{
	const char *dot = strrchr(text, '.');

	return names_find(names, count, dot ? dot + 1 : text) >= 0;
}

/* What has a function called again at once, without waiting for anything. */
static const char *const schedulers[] = { "appendFile", "nextTick",	  "queueMicrotask", "send",
					  "setImmediate", "then", "writeFile" };
/* What makes another of what runs. */
static const char *const makers[] = { "Popen", "Process", "Thread", "Worker",
				      "exec",  "fork",	  "spawn",  "start_new_thread" };

uint32_t script_recursion(struct script *script, uint32_t function, const char *name)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t end = syntax_behind(syntax, function), traits = 0;
	bool calls = false, makes = false;
	unsigned timers = 0;

	if (end > function + LOOK_MAX)
		end = function + LOOK_MAX;
	for (uint32_t at = function + 1; at < end; at++) {
		uint32_t callee = syntax->nodes[at].kind == NODE_CALL || syntax->nodes[at].kind == NODE_NEW
					  ? syntax_child(syntax, at, FIELD_FUNCTION)
					  : 0;
		const char *text;
		bool is_certain;

		if (!callee || syntax->nodes[callee].end - syntax->nodes[callee].start > VALUE_NAME_MAX)
			continue;
		text = script_text(script, callee);
		is_certain = is_unconditional(syntax, at, function) && !can_return(syntax, function, at);
		calls |= is_certain && str_equal(text, name);
		makes |= is_certain && ends_with_one(text, makers, ARRAY_SIZE(makers));
		if (!is_certain || !is_given_name(script, at, name))
			continue;
		/* Twice the number of timers each time. */
		timers += str_equal(text, "setTimeout");
		if (timers > 1)
			traits |= TRAIT_RECURSES;
		if (ends_with_one(text, schedulers, ARRAY_SIZE(schedulers)))
			traits |= TRAIT_RECURSES;
		if (ends_with_one(text, makers, ARRAY_SIZE(makers)))
			traits |= TRAIT_MULTIPLIES;
	}
	return traits | (calls && makes ? TRAIT_MULTIPLIES : 0);
}
