/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/script.h"

#include <string.h>

#include "base/str.h"
#include "verify/script-expression.h"

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
	if (!script->is_over)
		operations_doubt(script->walk->operations, doubt, script->walk->outer);
	script->is_over = true;
	return false;
}

bool script_step(struct script *script)
{
	if (script->is_over)
		return false;
	script->steps++;
	if (script->calls)
		script->inline_steps++;
	if (script->steps > SCRIPT_STEPS_MAX)
		return is_over(script, DOUBT_TIME);
	if (script->steps % STEPS_BETWEEN_LOOKS == 0 && walk_is_over(script->walk))
		script->is_over = true;
	return !script->is_over;
}

const struct value *script_children(struct script *script, uint32_t node)
{
	const struct value *last = &value_nothing;

	for (uint32_t child = script->syntax.nodes[node].first; child;
	     child = script->syntax.nodes[child].next)
		last = script_value(script, child);
	return last;
}

uint32_t script_branch_new(struct script *script)
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

	script->branch = script_branch_new(script);
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
	if (!script->was_deep)
		operations_doubt(script->walk->operations, DOUBT_DEPTH, script_span(script, node));
	script->was_deep = true;
	return &value_nothing;
}

const struct value *script_value(struct script *script, uint32_t node)
{
	const struct value *value;
	expression_handler handler;

	if (!script_step(script))
		return &value_nothing;
	if (script->depth >= script->depth_max)
		return too_deep(script, node);
	script->depth++;
	handler = expression_handlers[script->syntax.nodes[node].kind];
	value = handler ? handler(script, node) : expression_other(script, node);
	script->depth--;
	return value ? value : &value_nothing;
}

/* Functions that are declared by a statement can be called before it (JavaScript), and by functions above
 * (both). */
static void declare_functions(struct script *script)
{
	for (uint32_t node = 0; node < script->syntax.count; node++) {
		const struct syntax_node *at = &script->syntax.nodes[node];
		const struct syntax_node *around = &script->syntax.nodes[at->parent];

		if (at->kind == NODE_FUNCTION && at->field != FIELD_VALUE && !around->parent &&
		    (around->kind == NODE_BLOCK || around->kind == NODE_SAME) &&
		    syntax_child(&script->syntax, node, FIELD_TARGET))
			script_declare(script,
				       script_text(script, syntax_child(&script->syntax, node, FIELD_TARGET)),
				       script_make_function(script, node));
	}
}

void script_walk(struct walk *walk, TSNode root, const struct script_language *language,
		 const struct syntax_map *map)
{
	struct script script = {
		.walk = walk,
		.language = language,
		.arena = walk->operations->arena,
		.connection = OPERATION_NONE,
		/* Texts in texts share one stack. */
		.depth_max = walk->nesting > 1 ? SCRIPT_DEPTH_MAX / 4 : SCRIPT_DEPTH_MAX,
	};

	if (syntax_build(&script.syntax, root, map, walk->text, walk->size) < 0) {
		operations_doubt(walk->operations, DOUBT_MEMORY, walk->outer);
		return;
	}
	if (script.syntax.is_cut)
		operations_doubt(walk->operations, DOUBT_SIZE, walk->outer);
	script.scope = script_scope_new(&script, 0);
	declare_functions(&script);
	script_value(&script, 0);
	script_run_uncalled(&script);
	syntax_done(&script.syntax);
}
