/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/shell.h"

#include <string.h>

#include "base/str.h"
#include "verify/parse/judge.h"

/*
 * The shell's walker: follows statements in order with what it knows of variables. It runs nothing, so both sides of a
 * condition happen, and what a loop or an input decides is not known. See shell.h for its parts.
 */

static void visit_redirected(struct shell *shell, TSNode node, struct stream *stream)
{
	shell_redirected(shell, node, node_field(node, "body"), stream);
}

static void visit_command(struct shell *shell, TSNode node, struct stream *stream)
{
	bool has_redirection = false;

	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);)
		has_redirection |= shell_is_redirection(each.node);
	if (has_redirection)
		shell_redirected(shell, node, node, stream);
	else
		shell_command(shell, node, NULL, stream);
}

static void visit_pipeline(struct shell *shell, TSNode node, struct stream *stream)
{
	struct stream current = { .input = stream->input, .document = stream->document };
	uint32_t context = shell->context;
	bool is_first = true;
	size_t variables = shell->variables.count;

	shell->context |= CONTEXT_PIPE;
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (!ts_node_is_named(child))
			continue;
		if (!is_first)
			current = stream_next(shell, &current, walk_span(shell->walk, child));
		is_first = false;
		shell_statement(shell, child, &current);
	}
	shell->context = context;
	if (shell->variables.count > variables)
		shell->variables.count = variables;
	stream_pass(shell, stream, &current);
}

static void visit_subshell(struct shell *shell, TSNode node, struct stream *stream)
{
	const struct word *directory = shell->walk->directory;
	size_t variables = shell->variables.count;

	shell_statements(shell, node, stream);
	if (shell->variables.count > variables)
		shell->variables.count = variables;
	shell->walk->directory = directory;
}

static void visit_condition(struct shell *shell, TSNode node, struct stream *stream)
{
	uint32_t context = shell->context;

	shell->conditions++;
	shell->context |= CONTEXT_CONDITION;
	shell_statements(shell, node, stream);
	shell->context = context;
	shell->conditions--;
}

static void visit_case(struct shell *shell, TSNode node, struct stream *stream)
{
	(void)shell_word(shell, node_field(node, "value"));
	visit_condition(shell, node, stream);
}

/* which NAME, command -v NAME: asks where a program lies, and nothing more. */
static bool is_lookup(struct shell *shell, TSNode node)
{
	uint32_t size;
	const char *text = walk_text(shell->walk, node, &size);

	return node_is(node, "command") && (str_has_prefix(text, "which ") || str_has_prefix(text, "command -v ") ||
					    str_has_prefix(text, "type -P "));
}

/* a && b, a || b: the second happens if. Of `which a || which b` only one says something. */
static void visit_list(struct shell *shell, TSNode node, struct stream *stream)
{
	bool is_instead = false;

	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		struct stream unheard = { .input = stream->input, .document = stream->document };

		if (!ts_node_is_named(each.node))
			is_instead = node_is(each.node, "||");
		else if (is_instead && stream->pieces.count && !stream->is_unknown && is_lookup(shell, each.node))
			shell_statement(shell, each.node, &unheard);
		else
			shell_statement(shell, each.node, stream);
	}
}

static void visit_function(struct shell *shell, TSNode node, struct stream *stream)
{
	TSNode name = node_field(node, "name");
	struct shell_function *function;

	if (shell->functions.count >= SHELL_FUNCTIONS_MAX) {
		operations_doubt(shell->walk->operations, DOUBT_SIZE, walk_span(shell->walk, node));
		return;
	}
	function = vec_add(arena_of(shell), &shell->functions, sizeof *function);
	if (!function)
		return;
	*function = (struct shell_function){ .name = walk_copy(shell->walk, name), .body = node_field(node, "body") };
	function->hash = shell_hash(function->name);
	function->operation = walk_add(shell->walk, OP_FUNCTION, walk_span(shell->walk, node), shell->context);
	operations_add_text(shell->walk->operations, function->operation, function->name);
}

static void visit_assignment(struct shell *shell, TSNode node, struct stream *stream)
{
	shell_assign(shell, node, false);
}

/* A test, or anything else: only what is substituted in it happens. */
static void visit_words(struct shell *shell, TSNode node, struct stream *stream)
{
	(void)shell_word(shell, node);
}

enum { ERROR_BRACES_MAX = 4096 };

/* What the grammar did not understand: words in a row are taken for a command, the rest as it stands. */
static void visit_error(struct shell *shell, TSNode node, struct stream *stream)
{
	struct vec words = { 0 };
	struct command command = { .span = walk_span(shell->walk, node), .context = shell->context };
	uint32_t count = ts_node_child_count(node), size;
	const char *text = walk_text(shell->walk, node, &size);

	/* {rm,-rf,/}: the grammar takes the brace for the begin of a group. */
	if (size > 2 && size < ERROR_BRACES_MAX && text[0] == '{' && memchr(text, ',', size) &&
	    !strchr(" \t\n", text[1])) {
		struct word whole = word_of(arena_of(shell), command.span, "");
		char *line = arena_text_n(arena_of(shell), text, strcspn(text, "\n;|&") < size ? strcspn(text,
			"\n;|&") : size);

		for (char *at = line; at && *at; at++)
			*at = *at == ' ' ? SHELL_SPLIT : *at;
		if (line) {
			whole.text = line;
			whole.size = (uint32_t)strlen(line);
			whole.flags |= WORD_OBSCURED;
			shell_split_braces(shell, &whole, &words);
		}
		command.words = words.items;
		command.count = words.count;
		shell_run(shell, &command, stream);
		words = (struct vec){ 0 };
	}
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;
		bool is_word = node_is(child, "word") || node_is(child, "string") || node_is(child, "raw_string") ||
			       node_is(child, "concatenation") || node_is(child, "simple_expansion") ||
			       node_is(child, "expansion") || node_is(child, "command_name") || node_is(child,
				"number") ||
			       node_is(child, "ansi_c_string") || node_is(child, "command_substitution");

		if (is_word)
			shell_words(shell, child, &words);
		else if (ts_node_is_named(child))
			shell_statement(shell, child, stream);
		if (words.count && (!is_word || each.at + 1 == count)) {
			command.words = words.items;
			command.count = words.count;
			shell_run(shell, &command, stream);
			words = (struct vec){ 0 };
		}
	}
}

static const struct {
	const char *type;
	void (*visit)(struct shell *shell, TSNode node, struct stream *stream);
} kinds[] = {
	{ "ERROR", visit_error }, { "c_style_for_statement", shell_c_for }, { "case_item", shell_statements },
	{ "case_statement", visit_case }, { "command", visit_command }, { "comment", NULL },
	{ "compound_statement", shell_statements }, { "declaration_command", shell_declaration },
	{ "do_group", shell_statements }, { "elif_clause", shell_statements }, { "else_clause", shell_statements },
	{ "file_redirect", shell_lone_redirection },
	{ "for_statement", shell_for }, { "function_definition", visit_function }, { "if_statement", visit_condition },
	{ "list", visit_list }, { "negated_command", shell_statements }, { "pipeline", visit_pipeline },
	{ "program", shell_statements }, { "redirected_statement", visit_redirected }, { "subshell", visit_subshell },
	{ "unset_command", shell_unset }, { "variable_assignment", visit_assignment },
	{ "variable_assignments", shell_statements }, { "while_statement", shell_while },
};

static void visit_statement(struct shell *shell, TSNode node, struct stream *stream)
{
	const char *type;
	size_t at = 0;

	if (ts_node_is_null(node) || !walk_enter(shell->walk, node))
		return;
	shell->walk->judgement->shell_steps++;
	type = ts_node_type(node);
	while (at < ARRAY_SIZE(kinds) && !str_equal(type, kinds[at].type))
		at++;
	if (at == ARRAY_SIZE(kinds))
		visit_words(shell, node, stream);
	else if (kinds[at].visit)
		kinds[at].visit(shell, node, stream);
	walk_leave(shell->walk);
}

/* What is defined and never called is judged all the same: somebody will. */
static void visit_uncalled(struct shell *shell, size_t first)
{
	struct stream ignored = { 0 };

	shell->has_arguments = false;
	for (size_t i = first; i < shell->functions.count; i++) {
		struct shell_function *function = (struct shell_function *)shell->functions.items + i;
		struct command command = { .context = 0 };

		if (function->is_called)
			continue;
		shell->context = CONTEXT_FUNCTION;
		shell_call(shell, function, &command, &ignored);
		shell->context = 0;
	}
}

void walk_shell(struct walk *walk, TSNode root)
{
	struct shell own = { .walk = walk, .statement = visit_statement };
	struct shell *shell = walk->shell && walk->is_same_shell ? walk->shell : &own;
	struct walk *outer = shell->walk;
	struct stream stream = { .input = walk->input };
	const struct word *directory = walk->directory;
	size_t functions;

	if (walk->shell && shell == &own) {
		/* What it inherits, as far as that goes: more than what is exported. */
		own.variables = walk->shell->variables;
		own.functions = (struct vec){ 0 };
		own.aliases = walk->shell->aliases;
		own.loops = walk->shell->loops;
		own.variables.capacity = own.variables.count;
		own.aliases.capacity = own.aliases.count;
	}
	functions = shell->functions.count;
	if (shell == &own && walk->arguments) {
		shell->arguments = walk->arguments;
		shell->argument_count = walk->argument_count;
		shell->has_arguments = true;
	}
	shell->walk = walk;
	walk->shell = shell;
	shell_statement(shell, root, &stream);
	visit_uncalled(shell, functions);
	/* Their bodies are nodes of this text's tree, which goes away. */
	shell->functions.count = functions < shell->functions.count ? functions : shell->functions.count;
	walk->output = stream.output;
	walk->directory = directory;
	shell->walk = outer;
}
