/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/shell.h"

#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/model/language.h"
#include "verify/parse/judge.h"

/* What a command of the shell is: its words, what is assigned before it, and whether it is a function or an alias. */

void shell_call(struct shell *shell, struct shell_function *function, const struct command *command,
			  struct stream *stream)
{
	const struct word *arguments = shell->arguments;
	size_t count = shell->argument_count;
	bool had = shell->has_arguments;
	/* The list of functions may grow and move while the body is followed. */
	size_t at = (size_t)(function - (struct shell_function *)shell->functions.items);

	if (function->is_active) {
		/* Into a pipe of its own, and nothing decides whether: what recurses over a tree asks first. */
		bool multiplies = command->context & CONTEXT_BACKGROUND ||
				  (command->context & CONTEXT_PIPE &&
				   !(command->context & (CONTEXT_CONDITION | CONTEXT_LOOP)));
		uint32_t traits = TRAIT_RECURSES | (multiplies ? TRAIT_MULTIPLIES : 0);

		operations_add_traits(shell->walk->operations, function->operation, traits);
		return;
	}
	if (shell->calls >= SHELL_CALLS_MAX)
		return;
	if (function->is_called && (shell->walk->judgement->shell_steps > SHELL_STEPS_MAX ||
				    arena_of(shell)->size > SHELL_MEMORY_MAX)) {
		operations_doubt(shell->walk->operations, DOUBT_SIZE, command->span);
		return;
	}
	function->is_active = function->is_called = true;
	shell->calls++;
	shell->arguments = command->words;
	shell->argument_count = command->count;
	shell->has_arguments = command->count > 0;
	shell_statement(shell, function->body, stream);
	shell->arguments = arguments;
	shell->argument_count = count;
	shell->has_arguments = had;
	shell->calls--;
	((struct shell_function *)shell->functions.items)[at].is_active = false;
}

/* An alias is text that stands in the place of the first word. */
static void run_alias(struct shell *shell, const struct word *alias, struct command *command)
{
	struct word_draft draft;
	struct word code;
	struct nested nested = { .language = LANGUAGE_SHELL, .code = &code, .parent = OPERATION_NONE,
				 .context = command->context, .input = command->input };
	struct walk *walk = shell->walk;

	word_begin(&draft, arena_of(shell), command->span);
	word_put_word(&draft, alias);
	for (size_t i = 1; i < command->count; i++) {
		word_put(&draft, " ", 1);
		word_put_word(&draft, &command->words[i]);
	}
	code = word_end(&draft);
	walk_nested(walk, &nested);
	shell->walk = walk;
	origins_join(&command->output, &nested.output);
}

/*
 * A prompt that is opened by a line of its own ("irb", "python3 -i"): where this text is typed or comes in over a pipe,
 * the lines behind are what it reads. They are looked at as commands as well, since it may be a script.
 */
static const struct word *read_at_prompt(struct shell *shell, const struct command *command, TSNode node)
{
	const struct walk *walk = shell->walk;
	const char *begin = walk->text + ts_node_start_byte(node), *end = walk->text + ts_node_end_byte(node);
	const char *last = walk->text + walk->size;
	enum verify_language language;
	struct word *document;

	for (size_t i = 0; i < command->count; i++)
		if (!word_is_exact(&command->words[i]) || (i && command->words[i].text[0] != '-'))
			return NULL;
	language = command->count ? language_of_interpreter(command->words[0].text) : LANGUAGE_UNKNOWN;
	if ((language == LANGUAGE_UNKNOWN && !(command->count && word_is(command->words, "cpan"))) ||
	    language == LANGUAGE_SHELL || shell->has_prompt || end >= last || *end != '\n' ||
	    (begin > walk->text && begin[-1] != '\n'))
		return NULL;
	document = arena_alloc(arena_of(shell), sizeof *document);
	if (!document)
		return NULL;
	*document = word_of(arena_of(shell), walk_span_of(walk, (uint32_t)(end - walk->text), walk->size), end + 1);
	shell->has_prompt = true;
	return document;
}

void shell_run(struct shell *shell, struct command *command, struct stream *stream)
{
	struct shell_function *function = NULL;
	const struct word *alias = NULL;

	if (!command->count)
		return;
	command->input = stream->input;
	command->document = stream->document;
	if (word_is_exact(&command->words[0])) {
		function = shell_function(shell, command->words[0].text);
		alias = shell_alias(shell, command->words[0].text);
	}
	if (function) {
		shell_call(shell, function, command, stream);
		return;
	}
	if (alias && strcmp(alias->text, command->words[0].text) != 0)
		run_alias(shell, alias, command);
	else if (!shell_builtin(shell, command))
		walk_command(shell->walk, command);
	origins_join(&stream->output, &command->output);
	if (command->is_produced && word_is_exact(&command->produced))
		stream_put(shell, stream, &command->produced);
	else if (command->is_produced)
		stream_put(shell, stream, &command->produced);
	else
		stream->is_unknown = true;
}

/* bash <(…) with a known content: the script that it reads. */
static void run_process_script(struct shell *shell, const struct command *command)
{
	const struct word *content = shell->process;
	const char *name = command->count ? command->words[0].text : "";
	enum verify_language language = language_of_interpreter(name);
	bool is_source = str_equal(name, "source") || str_equal(name, ".");

	/* Of this command alone: what it starts would start it again. */
	shell->process = NULL;
	if (content && command->count > 1 && (is_source || language == LANGUAGE_SHELL))
		walk_nested(shell->walk, &(struct nested){ .language = LANGUAGE_SHELL, .code = content,
							   .parent = OPERATION_NONE, .context = command->context });
}

/* PROMPT_COMMAND='…': programs take the value for code of the shell. */
static void run_variable(struct shell *shell, const char *name, const struct word *value)
{
	static const char *const names[] = { "GIT_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND",
					     "LESSOPEN", "PROMPT_COMMAND" };
	struct walk *walk = shell->walk;

	if (names_find(names, ARRAY_SIZE(names), name) < 0 || !word_is_exact(value) || !strchr(value->text, ' '))
		return;
	walk_nested(walk, &(struct nested){ .language = LANGUAGE_SHELL, .code = value, .parent = OPERATION_NONE,
					    .context = shell->context });
	shell->walk = walk;
}

void shell_assign(struct shell *shell, TSNode node, bool is_exported)
{
	TSNode name = node_field(node, "name"), value = node_field(node, "value");
	struct word word;
	uint32_t size, index;
	const char *text;

	if (node_is(name, "subscript"))
		name = node_field(name, "name");
	text = walk_copy(shell->walk, name);
	/* x=$x$x: what doubles is not known any more when it takes too much. */
	if (arena_of(shell)->size > SHELL_MEMORY_MAX) {
		operations_doubt(shell->walk->operations, DOUBT_SIZE, walk_span(shell->walk, node));
		word = word_unknown(arena_of(shell), walk_span(shell->walk, node), 0);
	} else if (ts_node_is_null(value))
		word = word_of(arena_of(shell), walk_span(shell->walk, node), "");
	else
		word = shell_word(shell, value);
	/* x+=y; an item of an array joins the others. */
	(void)walk_text(shell->walk, node, &size);
	for (uint32_t i = 0; i < ts_node_child_count(node) && i < 4; i++) {
		bool is_item = node_is(node_field(node, "name"), "subscript");

		if (shell_get(shell, text) && (node_is(ts_node_child(node, i), "+=") || (is_item && i == 0))) {
			struct word_draft draft;

			word_begin(&draft, arena_of(shell), word.span);
			word_put_word(&draft, shell_get(shell, text));
			if (is_item || node_is(value, "array"))
				word_put(&draft, is_item ? " " : (const char[]){ SHELL_ITEM, 0 }, 1);
			word_put_word(&draft, &word);
			word = word_end(&draft);
			break;
		}
	}
	shell_set(shell, text, &word);
	run_variable(shell, text, &word);
	if (!is_exported)
		return;
	index = walk_add(shell->walk, OP_ENVIRONMENT, walk_span(shell->walk, node), shell->context);
	operations_add_text(shell->walk->operations, index, text);
	operations_add_word(shell->walk->operations, index, &word);
}

bool shell_is_redirection(TSNode node)
{
	const char *type = ts_node_type(node);

	return str_equal(type, "file_redirect") || str_equal(type, "heredoc_redirect") ||
	       str_equal(type, "herestring_redirect");
}

/* A command's own words; extra: what stands behind a here-document's mark. */
void shell_command(struct shell *shell, TSNode node, const struct vec *extra, struct stream *stream)
{
	struct vec words = { 0 };
	struct command command = { .span = walk_span(shell->walk, node), .context = shell->context };
	size_t variables = shell->variables.count;
	bool has_name = !ts_node_is_null(node_field(node, "name"));
	const struct word *process, *given;

	shell->outgoing = stream->input;
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		const char *type = ts_node_type(child);

		if (str_equal(type, "variable_assignment"))
			shell_assign(shell, child, has_name);
		else if (str_equal(type, "command_name") && ts_node_child_count(child) == 1)
			shell_words(shell, ts_node_child(child, 0), &words);
		else if (ts_node_is_named(child) && !shell_is_redirection(child) && !str_equal(type, "comment"))
			shell_words(shell, child, &words);
	}
	for (size_t i = 0; extra && i < extra->count; i++)
		shell_words(shell, ((TSNode *)extra->items)[i], &words);
	command.words = words.items;
	command.count = words.count;
	process = shell->process;
	shell->process = NULL;
	given = stream->document;
	if (!given && !stream->input.count)
		stream->document = read_at_prompt(shell, &command, node);
	shell_run(shell, &command, stream);
	stream->document = given;
	shell->process = process;
	run_process_script(shell, &command);
	/* NAME=VALUE before a command is for that command. */
	if (has_name && shell->variables.count > variables && words.count && !word_is(command.words, "read") &&
	    !word_is(command.words, "eval") && !word_is(command.words, "printf") && !word_is(command.words,
		"mapfile") &&
	    !word_is(command.words, "readarray") && !shell_function(shell, command.words[0].text))
		shell->variables.count = variables;
}
