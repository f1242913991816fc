/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/script/script.h"

#include <string.h>

#include "base/str.h"

enum { STEPS_BETWEEN_LOOKS = 256 };

struct span script_span(const struct script *script, uint32_t node)
{
	const struct syntax_node *at = &script->syntax.nodes[node];

	return walk_span_of(script->walk, at->start, at->end);
}

const char *script_text(struct script *script, uint32_t node)
{
	const struct syntax_node *at = &script->syntax.nodes[node];
	const char *text =
		at->end <= script->syntax.size && at->start <= at->end
			? arena_text_n(script->arena, script->syntax.text + at->start, at->end - at->start)
			: NULL;

	return text ? text : "";
}

bool script_is(const struct script *script, uint32_t node, const char *text)
{
	const struct syntax_node *at = &script->syntax.nodes[node];
	size_t size = strlen(text);

	return at->end - at->start == size && at->end <= script->syntax.size &&
	       memcmp(script->syntax.text + at->start, text, size) == 0;
}

static bool is_over(struct script *script, enum doubt doubt)
{
	if (!script->bounds.is_over)
		operations_doubt(script->walk->operations, doubt, script->walk->outer);
	script->bounds.is_over = true;
	return false;
}

bool script_step(struct script *script)
{
	if (script->bounds.is_over)
		return false;
	script->bounds.steps++;
	if (script->bounds.calls)
		script->bounds.inline_steps++;
	if (script->bounds.repeating)
		script->bounds.repeat_steps++;
	if (script->bounds.steps > SCRIPT_STEPS_MAX)
		return is_over(script, DOUBT_TIME);
	if (script->bounds.steps % STEPS_BETWEEN_LOOKS == 0 && walk_is_over(script->walk))
		script->bounds.is_over = true;
	return !script->bounds.is_over;
}

bool script_may_repeat(struct script *script)
{
	return script_step(script) && script->bounds.repeat_steps < SCRIPT_REPEAT_STEPS_MAX &&
	       script->arena->size < SCRIPT_REPEAT_SIZE_MAX;
}

const struct value *script_children(struct script *script, uint32_t node)
{
	const struct value *last = &value_nothing;

	for (uint32_t child = script->syntax.nodes[node].first; child;
	     child = script->syntax.nodes[child].next)
		last = script_value(script, child);
	return last;
}

const struct value *script_other(struct script *script, uint32_t node)
{
	const struct value *all = &value_nothing;

	for (uint32_t child = script->syntax.nodes[node].first; child;
	     child = script->syntax.nodes[child].next)
		all = value_also_from(script->arena, all, script_value(script, child));
	return all->kind == VALUE_UNKNOWN && all->name ? value_taint(script->arena, all) : all;
}

static uint32_t branch_new(struct script *script)
{
	uint32_t *branch;

	if (script->branches.count >= SCRIPT_CONTEXTS_MAX)
		return script->branch;
	branch = vec_add(script->arena, &script->branches, sizeof *branch);
	if (!branch)
		return script->branch;
	*branch = script->branch;
	return (uint32_t)script->branches.count;
}

struct script_place script_enter_branch(struct script *script, uint32_t context)
{
	struct script_place outer = { script->branch, script->context };

	script->branch = branch_new(script);
	script->context |= context;
	return outer;
}

void script_leave_branch(struct script *script, struct script_place outer)
{
	script->branch = outer.branch;
	script->context = outer.context;
}

const struct value *script_branch(struct script *script, uint32_t node, uint32_t context)
{
	struct script_place outer = script_enter_branch(script, context);
	const struct value *value = script_value(script, node);

	script_leave_branch(script, outer);
	return value;
}

/* What is nested too deep is not gone into, and said once. */
static const struct value *too_deep(struct script *script, uint32_t node)
{
	if (!script->bounds.was_deep)
		operations_doubt(script->walk->operations, DOUBT_DEPTH, script_span(script, node));
	script->bounds.was_deep = true;
	return &value_nothing;
}

const struct value *script_value(struct script *script, uint32_t node)
{
	const struct value *value;
	script_handler handler;

	if (!script_step(script))
		return &value_nothing;
	if (script->bounds.depth >= script->bounds.depth_max)
		return too_deep(script, node);
	script->bounds.depth++;
	handler = script->language->handlers[script->syntax.nodes[node].kind];
	value = handler ? handler(script, node) : script_other(script, node);
	script->bounds.depth--;
	return value ? value : &value_nothing;
}
