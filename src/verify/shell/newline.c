/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/newline.h"

#include <string.h>

#include "base/str.h"

/* The newline between two words that ends a command, or NULL: one behind a backslash or a comment is none. */
static const char *newline_between(const char *from, const char *to)
{
	for (const char *at = from; at < to; at++) {
		if (*at == '#')
			return NULL;
		if (*at == '\n' && (at == from || at[-1] != '\\'))
			return at;
	}
	return NULL;
}

/* The first one that a command has between its words, or NULL. */
static const char *newline_in(const struct walk *walk, TSNode command)
{
	TSTreeCursor cursor = ts_tree_cursor_new(command);
	bool more = ts_tree_cursor_goto_first_child(&cursor);
	const char *found = NULL;
	uint32_t end = ts_node_start_byte(command);

	for (; more && !found; more = ts_tree_cursor_goto_next_sibling(&cursor)) {
		TSNode child = ts_tree_cursor_current_node(&cursor);

		/* What stands in a here-document has its own lines. */
		if (!str_has_prefix(ts_node_type(child), "heredoc") && ts_node_start_byte(child) > end)
			found = newline_between(walk->text + end, walk->text + ts_node_start_byte(child));
		end = ts_node_end_byte(child);
	}
	ts_tree_cursor_delete(&cursor);
	return found;
}

/*
 * A word that begins with the end of the line before it: the lexer takes "\n\\rm" for one. The backslash only says that
 * no alias is meant, so a blank may stand there, where a semicolon might end up in a comment. NULL: it is none.
 */
static const char *backslash_of(const struct walk *walk, TSNode node)
{
	const char *text = walk->text + ts_node_start_byte(node), *end = walk->text + ts_node_end_byte(node);

	if (*text != '\n' || !node_is(node, "word"))
		return NULL;
	while (text < end && strchr(" \t\r\n", *text))
		text++;
	return text + 1 < end && *text == '\\' && !strchr(" \t\r\n", text[1]) ? text : NULL;
}

/* What stands on one line has no newline anywhere below. */
static bool has_newline(TSNode node)
{
	return ts_node_start_point(node).row != ts_node_end_point(node).row;
}

/* To the next node: below where that is wanted, beside, or beside what is above. */
static bool go_to_next(TSTreeCursor *cursor, bool goes_below)
{
	if (goes_below && ts_tree_cursor_goto_first_child(cursor))
		return true;
	while (!ts_tree_cursor_goto_next_sibling(cursor))
		if (!ts_tree_cursor_goto_parent(cursor))
			return false;
	return true;
}

bool shell_mend_newlines(struct walk *walk, TSNode root)
{
	TSTreeCursor cursor = ts_tree_cursor_new(root);
	char *copy = NULL;
	bool has_lines;

	do {
		TSNode node = ts_tree_cursor_current_node(&cursor);
		const char *newline, *backslash;
		bool is_command;

		has_lines = has_newline(node);
		is_command = has_lines && (node_is(node, "command") || node_is(node, "declaration_command"));
		newline = is_command ? newline_in(walk, node) : NULL;
		backslash = has_lines ? backslash_of(walk, node) : NULL;
		if ((newline || backslash) && !copy)
			copy = arena_text_n(walk->operations->arena, walk->text, walk->size);
		if (backslash && copy)
			copy[backslash - walk->text] = ' ';
		if (newline && copy)
			copy[newline - walk->text] = ';';
	} while (go_to_next(&cursor, has_lines));
	ts_tree_cursor_delete(&cursor);
	if (copy)
		walk->text = copy;
	return copy;
}
