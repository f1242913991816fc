/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/shell.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/parse/judge.h"

/* Loops: once for each value that is known, and whether they end. */

enum { LOOP_VALUES_MAX = 256, VAST_DIGITS = 5 };

/* `sleep 99 &`: nobody waits for it. */
static bool is_left_behind(const char *command)
{
	const char *end = command + strcspn(command, ";\n&|)}");

	return end[0] == '&' && end[1] != '&' && end[-1] != '>';
}

static bool text_has(struct shell *shell, TSNode node, const char *const *words)
{
	const char *text = walk_copy(shell->walk, node);

	for (; *words; words++) {
		const char *at = strstr(text, *words);
		size_t size = strlen(*words);

		if (at && (at == text || strchr(" \t\n;&|({", at[-1])) && strchr(" \t\n;&|)}", at[size]) &&
		    !is_left_behind(at))
			return true;
	}
	return false;
}

static void visit_endless(struct shell *shell, TSNode node, bool is_endless, struct stream *stream)
{
	static const char *const ends[] = { "break", "exit", "return", "sleep", "wait", "read", "inotifywait", NULL };
	uint32_t context = shell->context;

	if (is_endless && !text_has(shell, node, ends)) {
		walk_add(shell->walk, OP_LOOP, walk_span(shell->walk, node), shell->context);
		shell->context |= CONTEXT_ENDLESS;
	}
	shell->context |= CONTEXT_LOOP;
	shell->loops++;
	shell_statements(shell, node, stream);
	shell->loops--;
	shell->context = context;
}

/* A condition of `while` that holds for as long as there is room: it takes more each time. */
static bool always_holds(const char *text)
{
	static const char *const texts[] = { "((1))", "(( 1 ))", ":", "[ 1 ]", "[ 1 -eq 1 ]", "[ 1 = 1 ]", "[ : ]",
					     "[ true ]", "[[ 1 ]]", "[[ 1 -eq 1 ]]", "[[ 1 == 1 ]]", "[[ true ]]",
					     "echo", "sleep 0", "test 1", "true" };
	static const char *const taking[] = { "cp ", "dd ", "fallocate ", "head -c", "mkdir ", "truncate " };

	for (size_t i = 0; i < ARRAY_SIZE(taking); i++) {
		if (str_has_prefix(text, taking[i]))
			return true;
	}
	return names_find(texts, ARRAY_SIZE(texts), text) >= 0;
}

void shell_while(struct shell *shell, TSNode node, struct stream *stream)
{
	static const char *const failing[] = { "! :", "! true", "((0))", "[ 1 = 2 ]", "[ 1 -eq 2 ]", "[[ 1 == 2 ]]",
					       "false" };
	TSNode condition = node_field(node, "condition");
	const char *text = walk_copy(shell->walk, condition);
	bool is_until = node_is(ts_node_child(node, 0), "until");
	bool never = names_find(failing, ARRAY_SIZE(failing), text) >= 0;

	visit_endless(shell, node, is_until ? never : always_holds(text), stream);
}

/* Thousands of rounds, each of which leaves something behind that runs: as good as without an end. */
static bool is_vast(struct shell *shell, TSNode loop, TSNode body)
{
	static const char *const ends[] = { "wait", "break", "exit", "return", NULL };
	uint32_t start = ts_node_start_byte(loop), size = ts_node_start_byte(body) - start;
	const char *text = shell->walk->text + start;
	bool starts_more = false, is_many = false;

	for (uint32_t i = 0, digits = 0; i < size; i++) {
		digits = isdigit((unsigned char)text[i]) ? digits + 1 : 0;
		is_many |= digits >= VAST_DIGITS;
	}
	/* Only then the body is gone through: it has those of all loops within. */
	if (!is_many)
		return false;
	text = walk_text(shell->walk, body, &size);
	for (uint32_t i = 1; i + 1 < size; i++)
		starts_more |= text[i] == '&' && text[i - 1] != '&' && text[i + 1] != '&' && text[i - 1] != '>' &&
			       text[i + 1] != '>';
	return starts_more && !text_has(shell, body, ends);
}

void shell_c_for(struct shell *shell, TSNode node, struct stream *stream)
{
	TSNode condition = node_field(node, "condition");
	struct stream ignored = { 0 };
	uint32_t context = shell->context;

	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (!ts_node_is_named(child))
			continue;
		if (!node_is(child, "do_group") && !node_is(child, "compound_statement"))
			shell_statement(shell, child, &ignored);
	}
	if (is_vast(shell, node, node_field(node, "body")))
		shell->context |= CONTEXT_ENDLESS;
	visit_endless(shell, node_field(node, "body"), ts_node_is_null(condition), stream);
	shell->context = context;
}

static bool may_repeat(const struct shell *shell)
{
	return shell->walk->judgement->shell_steps < SHELL_REPEAT_STEPS_MAX &&
	       arena_of(shell)->size < SHELL_REPEAT_MEMORY_MAX;
}

/* Once for each known value, as far as that is worth while; what is left of them is as good as any. */
void shell_for(struct shell *shell, TSNode node, struct stream *stream)
{
	size_t max = LOOP_VALUES_MAX, rounds = 0;
	const char *name = walk_copy(shell->walk, node_field(node, "variable"));
	struct vec values = { 0 };
	TSNode body = node_field(node, "body");
	uint32_t context = shell->context;
	bool is_behind_in = false;

	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (is_behind_in && ts_node_is_named(child) && !ts_node_eq(child, body))
			shell_words(shell, child, &values);
		is_behind_in |= node_is(child, "in");
	}
	shell->context |= CONTEXT_LOOP | (is_vast(shell, node, body) ? CONTEXT_ENDLESS : 0);
	shell->loops++;
	for (; rounds < values.count && rounds < max && may_repeat(shell) && !walk_is_over(shell->walk); rounds++) {
		shell_set(shell, name, (struct word *)values.items + rounds);
		shell_statement(shell, body, stream);
	}
	/* What was not looked at may be all that counts. */
	if (values.count > rounds)
		operations_doubt(shell->walk->operations, DOUBT_SIZE, walk_span(shell->walk, node));
	if (values.count == 0 || values.count > rounds) {
		struct word unknown = word_unknown(arena_of(shell), walk_span(shell->walk, node), WORD_FROM_INPUT);

		shell_set(shell, name, &unknown);
		shell_statement(shell, body, stream);
	}
	shell->loops--;
	shell->context = context;
}
