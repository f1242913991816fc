/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/parse/judge.h"
#include "verify/script/expression.h"

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

/* That the file installs a package is said at its end, and holds for all of it. */
static void mark_installed(struct walk *walk, size_t first)
{
	for (size_t i = first; i < operations_count(walk->operations); i++)
		operations_get(walk->operations, (uint32_t)i)->context |= CONTEXT_INSTALL;
}

void script_walk(struct walk *walk, TSNode root, const struct script_language *language,
		 const struct syntax_map *map)
{
	struct script script = {
		.walk = walk,
		.language = language,
		.tables = &walk->judgement->tables->languages[language->language],
		.arena = walk->operations->arena,
		.connection = OPERATION_NONE,
		/* Texts in texts share one stack. */
		.bounds.depth_max = walk->nesting > 1 ? SCRIPT_DEPTH_MAX / 4 : SCRIPT_DEPTH_MAX,
	};
	size_t first = operations_count(walk->operations);

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
	if (script.installs)
		mark_installed(walk, first);
	syntax_done(&script.syntax);
}
