/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/grammar.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "verify/shell/newline.h"

/*
 * Each of these changes what is followed as little as the grammar lets it: nothing that would be run is taken away. A
 * text that stays wrong is not known, as before.
 */

/* Bytes of a group that are looked at: each begin of one is. */
enum { GROUP_MAX = 512 };

static size_t name_size(const char *text)
{
	size_t size = 0;

	while (isalnum((unsigned char)text[size]) || text[size] == '_')
		size++;
	return size;
}

/* for NAME do: the list that is meant is "$@", which is what stands there when there is none. */
static void mend_for(char *at)
{
	char *name = at + strlen("for ");
	size_t size = name_size(name);
	char *gap = name + size;

	if (size && (*gap == ' ' || *gap == '\n') && strncmp(gap + strspn(gap, " \t\n"), "do", 2) == 0 &&
	    !name_size(gap + strspn(gap, " \t\n") + 2))
		*gap = ';';
}

/* ${NAME:$OFFSET}: a number either way, and a name is one without its "$". */
static void mend_substring(char *at)
{
	char *mark = at + 2 + name_size(at + 2);

	while (*mark == ':') {
		mark++;
		if (*mark == '$' && name_size(mark + 1))
			*mark++ = ' ';
		mark += strspn(mark, " ");
		mark += name_size(mark);
	}
}

/* ${NAME//&/\\&amp;}: marks that the grammar takes for operators. What comes of it is not known then (parameter.c). */
static void mend_replacement(char *at)
{
	char *mark = at + 2 + name_size(at + 2);

	if (*mark != '/')
		return;
	for (; *mark && !strchr("}\n$`\"'", *mark); mark++)
		if (strchr("&<>;", *mark))
			*mark = '?';
}

/* N<>FILE: both ways, and nothing is lost; what it reads is as good as what it would append. */
static void mend_both_ways(const char *text, char *at)
{
	bool is_free = at == text || strchr(" \t0123456789;&|(", at[-1]);

	if (is_free && at[2] && !strchr("\n;&|)\"'", at[2]))
		at[0] = at[1] = '>';
}

/* N>&-, N<&-, N>/dev/null: nothing goes anywhere. Where a redirection stands behind a group or an assignment. */
static void mend_closing(const char *text, char *at)
{
	static const char nowhere[] = ">/dev/null";
	size_t size = 0;

	if (at > text && !strchr(" \t)", at[-1]))
		return;
	while (isdigit((unsigned char)at[size]))
		size++;
	if ((at[size] == '>' || at[size] == '<') && at[size + 1] == '&' && at[size + 2] == '-')
		size += 3;
	else if (strncmp(at + size, nowhere, strlen(nowhere)) == 0)
		size += strlen(nowhere);
	else
		return;
	if (!at[size] || strchr(" \t\n;|&)", at[size]))
		memset(at, ' ', size);
}

/* {rm,-rf,/}: words of a command, where the grammar sees the begin of a group. */
static void mend_braces(char *at)
{
	size_t size = strcspn(at + 1, "} \t\n{\"'$`;|&()<>") + 1;

	if (at[size] != '}' || !memchr(at, ',', size) || (at[size + 1] && !strchr(" \t\n;|&)", at[size + 1])))
		return;
	for (size_t i = 0; i <= size; i++)
		if (strchr("{,}", at[i]))
			at[i] = ' ';
}

/* "fi done", "done }": what ends a list ends what is around it too, without a ";". */
static void mend_end(char *at)
{
	static const char *const ends[] = { "fi", "done", "esac" }, *const further[] = { "fi", "done", "esac", "}" };
	size_t size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ends) && !size; i++)
		if (strncmp(at, ends[i], strlen(ends[i])) == 0)
			size = strlen(ends[i]);
	if (!size || at[size] != ' ')
		return;
	for (size_t i = 0; i < ARRAY_SIZE(further); i++) {
		size_t length = strlen(further[i]);

		if (strncmp(at + size + 1, further[i], length) == 0 && !name_size(at + size + 1 + length))
			at[size] = ';';
	}
}

/* ((a | b) && (c)): groups in a group, where the grammar sees a sum. What is within stays as it is. */
static void mend_groups(char *at)
{
	const char *end = at + strnlen(at, GROUP_MAX);
	unsigned depth = 0;
	bool has_text = false;
	char quote = '\0';

	for (char *close = at; close < end; close++) {
		if (quote || strchr("\"'", *close)) {
			has_text = true;
			quote = quote && *close != quote ? quote : quote ? '\0' : *close;
			continue;
		}
		depth += *close == '(';
		if (*close != ')' || --depth)
			continue;
		if (has_text || memmem(at, (size_t)(close - at), "| ", 2))
			*at = *close = ' ';
		return;
	}
}

static void mend_line(const char *text, char *begin, const char *end)
{
	for (char *at = begin; at < end; at++) {
		bool begins = at == text || strchr(" \t\n;&|({", at[-1]);

		if (begins && strncmp(at, "for ", 4) == 0)
			mend_for(at);
		else if (begins && *at == '{')
			mend_braces(at);
		else if (begins && strncmp(at, "((", 2) == 0 && (at == text || at[-1] != '('))
			mend_groups(at);
		else if (begins && strchr("fde", *at))
			mend_end(at);
		else if (strncmp(at, "${", 2) == 0)
			mend_substring(at), mend_replacement(at);
		else if (strncmp(at, "$/", 2) == 0)
			*at = '_'; /* A "$" before what is no name is itself. */
		else if (strncmp(at, "<>", 2) == 0)
			mend_both_ways(text, at);
		else if (isdigit((unsigned char)*at) || *at == '>' || *at == '<')
			mend_closing(text, at);
	}
}

/*
 * The lines that a node stands on, from the line before: what is wrong often begins there. Once each, however much is
 * wrong on a line: *done is where those end that were looked at.
 */
static void mend_node(const struct walk *walk, TSNode node, char *copy, uint32_t *done)
{
	uint32_t start = ts_node_start_byte(node), end = ts_node_end_byte(node);

	if (end <= *done)
		return;
	for (unsigned lines = 0; start > *done; start--)
		if (copy[start - 1] == '\n' && ++lines == 2)
			break;
	while (end < walk->size && copy[end] != '\n')
		end++;
	mend_line(copy, copy + start, copy + end);
	*done = end;
}

bool shell_mend_grammar(struct walk *walk, TSNode root)
{
	TSTreeCursor cursor;
	uint32_t done = 0;
	bool goes_on = ts_node_has_error(root), has_changed;
	char *copy = goes_on ? arena_text_n(walk->operations->arena, walk->text, walk->size) : NULL;

	if (!copy)
		return false;
	cursor = ts_tree_cursor_new(root);
	while (goes_on) {
		TSNode node = ts_tree_cursor_current_node(&cursor);
		bool is_wrong = ts_node_is_missing(node) || node_is(node, "ERROR");

		/* What is missing at the end began somewhere: { that is no group. */
		if (is_wrong)
			mend_node(walk, ts_node_is_missing(node) ? ts_node_parent(node) : node, copy, &done);
		goes_on = ts_node_has_error(node) && !is_wrong && ts_tree_cursor_goto_first_child(&cursor);
		while (!goes_on && !(goes_on = ts_tree_cursor_goto_next_sibling(&cursor)))
			if (!ts_tree_cursor_goto_parent(&cursor))
				break;
	}
	ts_tree_cursor_delete(&cursor);
	has_changed = memcmp(copy, walk->text, walk->size) != 0;
	if (has_changed)
		walk->text = copy;
	return has_changed;
}

/* A backslash with nothing behind it, which a shell drops. */
static bool mend_last(struct walk *walk)
{
	uint32_t size = walk->size;
	char *copy;

	while (size && strchr(" \t\n", walk->text[size - 1]))
		size--;
	if (size < 2 || walk->text[size - 1] != '\\' || walk->text[size - 2] == '\\')
		return false;
	copy = arena_text_n(walk->operations->arena, walk->text, walk->size);
	if (!copy)
		return false;
	copy[size - 1] = ' ';
	walk->text = copy;
	return true;
}

bool shell_mend(struct walk *walk, TSNode root)
{
	return mend_last(walk) || shell_mend_newlines(walk, root) || shell_mend_grammar(walk, root);
}
