/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/shell.h"

#include <string.h>

/* export, declare, local, readonly, typeset and unset, which the grammar takes for statements of their own. */

/* declare -p, export -p, typeset: without a name they put out everything that is set. */
static bool list_variables(struct shell *shell, TSNode node, struct stream *stream)
{
	struct command command = { .span = walk_span(shell->walk, node), .context = shell->context };
	struct vec words = { 0 };

	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		const char *text;
		struct word *word;

		if (node_is(each.node, "variable_assignment") || node_is(each.node, "variable_name"))
			return false;
		word = vec_add(arena_of(shell), &words, sizeof *word);
		text = walk_copy(shell->walk, each.node);
		/* declare -f, -x, -a: something else is listed. */
		if (!word || (text[0] == '-' && !strchr(text, 'p')))
			return false;
		*word = word_of(arena_of(shell), walk_span(shell->walk, each.node), text);
	}
	command.words = words.items;
	command.count = words.count;
	shell_run(shell, &command, stream);
	return true;
}

void shell_declaration(struct shell *shell, TSNode node, struct stream *stream)
{
	bool is_exported = node_is(ts_node_child(node, 0), "export");

	if (list_variables(shell, node, stream))
		return;
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (!ts_node_is_named(child))
			continue;
		if (node_is(child, "variable_assignment")) {
			shell_assign(shell, child, is_exported);
		} else if (is_exported && node_is(child, "variable_name")) {
			const char *name = walk_copy(shell->walk, child);
			struct word value = shell_value(shell, name, walk_span(shell->walk, child));
			uint32_t index = walk_add(shell->walk, OP_ENVIRONMENT, value.span, shell->context);

			operations_add_text(shell->walk->operations, index, name);
			operations_add_word(shell->walk->operations, index, &value);
		} else if (!node_is(child, "word") && !node_is(child, "variable_name")) {
			(void)shell_word(shell, child);
		}
	}
}

void shell_unset(struct shell *shell, TSNode node, struct stream *stream)
{
	struct command command = { .span = walk_span(shell->walk, node), .context = shell->context };
	struct vec words = { 0 };

	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		struct word *word = vec_add(arena_of(shell), &words, sizeof *word);

		if (word)
			*word = word_of(arena_of(shell), walk_span(shell->walk, each.node),
					walk_copy(shell->walk, each.node));
	}
	command.words = words.items;
	command.count = words.count;
	walk_command(shell->walk, &command);
}
