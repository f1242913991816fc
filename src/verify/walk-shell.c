/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/language.h"

/*
 * The shell's walker: follows statements in order with what it knows of variables. It runs nothing, so both sides of a
 * condition happen, and what a loop or an input decides is not known. See shell.h for its parts.
 */

enum { REDIRECTIONS_MAX = 32, LOOP_VALUES_MAX = 64, VAST_DIGITS = 5 };

static struct arena *arena_of(const struct shell *shell)
{
	return shell->walk->operations->arena;
}

static uint32_t add_path(struct shell *shell, enum operation_kind kind, const struct word *path, uint32_t traits)
{
	struct word word = *path;
	uint32_t index = walk_add(shell->walk, kind, path->span, shell->context);
	const struct word *directory = shell->walk->directory;

	if (directory && kind != OP_NETWORK && path->text[0] != '/' && path->text[0] != '~' && path->size) {
		struct word_draft draft;

		word_begin(&draft, arena_of(shell), path->span);
		word_put_word(&draft, directory);
		word_put(&draft, "/", 1);
		word_put_word(&draft, path);
		word = word_end(&draft);
	}
	operations_add_word(shell->walk->operations, index, &word);
	operations_add_traits(shell->walk->operations, index, traits);
	return index;
}

/* A stream's output goes on to where another's goes. */
static void pass_output(struct shell *shell, struct stream *to, const struct stream *from)
{
	const struct word *pieces = from->pieces.items;

	origins_join(&to->output, &from->output);
	to->is_unknown |= from->is_unknown;
	for (size_t i = 0; i < from->pieces.count; i++)
		stream_put(shell, to, &pieces[i]);
}

/* What comes out of one becomes what goes into the next. document is where a known text is kept. */
static struct stream next_in_pipe(struct shell *shell, const struct stream *before, struct span span)
{
	struct stream next = { .input = before->output };
	struct word *document = arena_alloc(arena_of(shell), sizeof *document);

	if (document && !before->is_unknown && before->pieces.count) {
		*document = stream_word(shell, before, span);
		next.document = document;
	}
	return next;
}

static void call_function(struct shell *shell, struct shell_function *function, const struct command *command,
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

static void run_words(struct shell *shell, struct command *command, struct stream *stream)
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
		call_function(shell, function, command, stream);
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
	const struct word *content = shell_get(shell, " process");
	const char *name = command->count ? command->words[0].text : "";
	enum verify_language language = language_of_interpreter(name);
	bool is_source = str_equal(name, "source") || str_equal(name, ".");

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

static void assign(struct shell *shell, TSNode node, bool is_exported)
{
	TSNode name = node_field(node, "name"), value = node_field(node, "value");
	struct word word;
	uint32_t size, index;
	const char *text;

	if (node_is(name, "subscript"))
		name = node_field(name, "name");
	text = walk_copy(shell->walk, name);
	if (ts_node_is_null(value))
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
			if (is_item)
				word_put(&draft, " ", 1);
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

static bool is_redirection(TSNode node)
{
	return node_is(node, "file_redirect") || node_is(node, "heredoc_redirect") || node_is(node,
		"herestring_redirect");
}

/* A command's own words; extra: what stands behind a here-document's mark. */
static void run_command(struct shell *shell, TSNode node, const struct vec *extra, struct stream *stream)
{
	struct vec words = { 0 };
	struct command command = { .span = walk_span(shell->walk, node), .context = shell->context };
	size_t variables = shell->variables.count;
	bool has_name = !ts_node_is_null(node_field(node, "name"));

	shell->outgoing = stream->input;
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (node_is(child, "variable_assignment"))
			assign(shell, child, has_name);
		else if (node_is(child, "command_name") && ts_node_child_count(child) == 1)
			shell_words(shell, ts_node_child(child, 0), &words);
		else if (ts_node_is_named(child) && !is_redirection(child) && !node_is(child, "comment"))
			shell_words(shell, child, &words);
	}
	for (size_t i = 0; extra && i < extra->count; i++)
		shell_words(shell, ((TSNode *)extra->items)[i], &words);
	command.words = words.items;
	command.count = words.count;
	run_words(shell, &command, stream);
	if (shell_get(shell, " process"))
		run_process_script(shell, &command);
	/* NAME=VALUE before a command is for that command. */
	if (has_name && shell->variables.count > variables && words.count && !word_is(command.words, "read") &&
	    !word_is(command.words, "eval") && !word_is(command.words, "printf") && !word_is(command.words,
		"mapfile") &&
	    !word_is(command.words, "readarray") && !shell_function(shell, command.words[0].text))
		shell->variables.count = variables;
}

struct redirections {
	TSNode files[REDIRECTIONS_MAX];
	size_t file_count;
	struct vec extra;    /* of TSNode: arguments behind a here-document's mark */
	TSNode pipe, right;  /* what goes on behind it */
	struct word document;
	bool has_document, has_pipe, has_right;
};

static void collect_document(struct shell *shell, TSNode node, struct redirections *found)
{
	uint32_t size;
	const char *mark;
	TSNode body = { 0 };
	bool is_raw = false;

	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (node_is(child, "heredoc_start")) {
			mark = walk_text(shell->walk, child, &size);
			is_raw = memchr(mark, '\'', size) || memchr(mark, '"', size) || memchr(mark, '\\', size);
		} else if (node_is(child, "heredoc_body")) {
			body = child;
		} else if (node_is(child, "file_redirect") && found->file_count < REDIRECTIONS_MAX) {
			found->files[found->file_count++] = child;
		} else if (node_is(child, "pipeline") && !found->has_right) {
			bool is_pipe = node_is(ts_node_child(child, 0), "|") || node_is(ts_node_child(child, 0), "|&");

			*(is_pipe ? &found->pipe : &found->right) = child;
			*(is_pipe ? &found->has_pipe : &found->has_right) = true;
		} else if (ts_node_is_named(child) && !node_is(child, "heredoc_end") && !node_is(child, "comment")) {
			TSNode right = node_field(node, "right"), *argument;

			if (!ts_node_is_null(right) && ts_node_eq(right, child)) {
				found->right = child;
				found->has_right = true;
			} else if ((argument = vec_add(arena_of(shell), &found->extra, sizeof *argument))) {
				*argument = child;
			}
		}
	}
	if (!ts_node_is_null(body)) {
		found->document = shell_document(shell, body, is_raw);
		found->has_document = true;
	}
}

static void collect_redirections(struct shell *shell, TSNode node, struct redirections *found)
{
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (node_is(child, "file_redirect") && found->file_count < REDIRECTIONS_MAX) {
			found->files[found->file_count++] = child;
		} else if (node_is(child, "heredoc_redirect")) {
			collect_document(shell, child, found);
		} else if (node_is(child, "herestring_redirect")) {
			uint32_t count = ts_node_named_child_count(child);

			if (count)
				found->document = shell_word(shell, ts_node_named_child(child, count - 1));
			found->has_document = count > 0;
		}
	}
}

/* The operator of a file_redirect, and where it leads to. False: to a descriptor, or nowhere. */
static bool redirection_target(struct shell *shell, TSNode node, const char **ret_operator, struct word *ret_target)
{
	TSNode destination = node_field(node, "destination");

	*ret_operator = "";
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (!ts_node_is_named(child))
			*ret_operator = ts_node_type(child);
	}
	if (ts_node_is_null(destination))
		return false;
	*ret_target = shell_word(shell, destination);
	if (node_is(destination, "number") || str_equal(ret_target->text, "-"))
		return false;
	return !str_equal(ret_target->text, "/dev/null") && !str_equal(ret_target->text, "/dev/stderr") &&
	       !str_equal(ret_target->text, "/dev/stdout") && !str_equal(ret_target->text, "/dev/tty");
}

static bool is_socket(const struct word *target)
{
	return strncmp(target->text, "/dev/tcp/", 9) == 0 || strncmp(target->text, "/dev/udp/", 9) == 0;
}

static void redirect_input(struct shell *shell, const struct redirections *found, struct stream *inner)
{
	for (size_t i = 0; i < found->file_count; i++) {
		const char *operator;
		struct word target;
		uint32_t index;

		if (!redirection_target(shell, found->files[i], &operator, &target) || operator[0] != '<')
			continue;
		index = is_socket(&target) ? add_path(shell, OP_NETWORK, &target, TRAIT_FETCHES)
					   : add_path(shell, OP_READ, &target, 0);
		inner->input = (struct origins){ 0 };
		origins_add(&inner->input, index);
		origins_join(&inner->input, &target.origins);
		inner->document = NULL;
	}
	if (found->has_document) {
		inner->document = &found->document;
		inner->input = found->document.origins;
	}
}

/* A script that is written here with a known text is judged as what it is. */
static void judge_written(struct shell *shell, const struct word *target, const struct stream *inner)
{
	struct word content;
	enum verify_language language;
	struct walk *walk = shell->walk;

	if (inner->is_unknown || !inner->pieces.count)
		return;
	content = stream_word(shell, inner, target->span);
	language = language_guess(target->text, content.text, content.size);
	if (strncmp(content.text, "#!", 2) != 0 && !str_has_suffix(target->text, ".sh") &&
	    !str_has_suffix(target->text, ".py") && !str_has_suffix(target->text, ".js"))
		return;
	if (language != LANGUAGE_OTHER)
		walk_nested(walk, &(struct nested){ .language = language, .code = &content, .parent = OPERATION_NONE,
						    .context = shell->context });
	shell->walk = walk;
}

/* True: standard output goes elsewhere. */
static bool redirect_output(struct shell *shell, const struct redirections *found, const struct stream *inner)
{
	bool is_gone = false;

	for (size_t i = 0; i < found->file_count; i++) {
		const char *operator, *descriptor = walk_copy(shell->walk, node_field(found->files[i], "descriptor"));
		bool is_output = !*descriptor || *descriptor == '1', is_file;
		struct word target;
		uint32_t index;

		shell->outgoing = inner->output;
		is_file = redirection_target(shell, found->files[i], &operator, &target);
		if (operator[0] == '<')
			continue;
		is_gone |= is_output && !str_equal(operator, ">&-");
		if (!is_file)
			continue;
		if (is_socket(&target))
			index = add_path(shell, OP_NETWORK, &target, TRAIT_SENDS | TRAIT_FETCHES);
		else
			index = add_path(shell, OP_WRITE, &target,
					 strstr(operator, ">>") ? TRAIT_APPENDS : TRAIT_TRUNCATES);
		if (is_output || operator[0] == '&')
			operations_add_flows(shell->walk->operations, &inner->output, index);
		if (is_output && !is_socket(&target))
			judge_written(shell, &target, inner);
	}
	return is_gone;
}

static void run_pipe_from(struct shell *shell, TSNode pipe, struct stream *first, struct stream *stream)
{
	struct stream current = *first;
	uint32_t context = shell->context;

	shell->context |= CONTEXT_PIPE;
	for (cleanup_each struct each each = each_child(shell->walk, pipe); each_next(&each);) {
		TSNode child = each.node;
		struct stream next;

		if (!ts_node_is_named(child))
			continue;
		next = next_in_pipe(shell, &current, walk_span(shell->walk, child));
		shell_statement(shell, child, &next);
		current = next;
	}
	shell->context = context;
	pass_output(shell, stream, &current);
}

/* holder has the redirections; body is what they are for: a child of it, or itself (a command that begins with one). */
static void run_redirected(struct shell *shell, TSNode holder, TSNode body, struct stream *stream)
{
	struct redirections found = { .file_count = 0 };
	struct stream inner = { .input = stream->input, .document = stream->document };
	uint32_t context = shell->context;
	bool is_gone;

	collect_redirections(shell, holder, &found);
	redirect_input(shell, &found, &inner);
	if (found.has_pipe)
		shell->context |= CONTEXT_PIPE;
	if (node_is(body, "command"))
		run_command(shell, body, &found.extra, &inner);
	else if (!ts_node_is_null(body))
		shell_statement(shell, body, &inner);
	shell->context = context;
	is_gone = redirect_output(shell, &found, &inner);
	if (is_gone)
		inner.output = (struct origins){ 0 }, inner.pieces.count = 0;
	if (found.has_pipe)
		run_pipe_from(shell, found.pipe, &inner, stream);
	else if (!is_gone)
		pass_output(shell, stream, &inner);
	if (found.has_right)
		shell_statement(shell, found.right, stream);
}

/* $(<FILE): a redirection without a command puts out what it reads. */
static void visit_lone_redirection(struct shell *shell, TSNode node, struct stream *stream)
{
	struct redirections found = { .files = { node }, .file_count = 1 };
	struct stream inner = { .is_unknown = true };

	redirect_input(shell, &found, &inner);
	origins_join(&inner.output, &inner.input);
	if (!redirect_output(shell, &found, &inner) && inner.output.count)
		pass_output(shell, stream, &inner);
}

static void visit_redirected(struct shell *shell, TSNode node, struct stream *stream)
{
	run_redirected(shell, node, node_field(node, "body"), stream);
}

static void visit_command(struct shell *shell, TSNode node, struct stream *stream)
{
	bool has_redirection = false;

	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);)
		has_redirection |= is_redirection(each.node);
	if (has_redirection)
		run_redirected(shell, node, node, stream);
	else
		run_command(shell, node, NULL, stream);
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
			current = next_in_pipe(shell, &current, walk_span(shell->walk, child));
		is_first = false;
		shell_statement(shell, child, &current);
	}
	shell->context = context;
	if (shell->variables.count > variables)
		shell->variables.count = variables;
	pass_output(shell, stream, &current);
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

/* a && b, a || b: the second happens if. */
static void visit_list(struct shell *shell, TSNode node, struct stream *stream)
{
	shell_statements(shell, node, stream);
}

static bool text_has(struct shell *shell, TSNode node, const char *const *words)
{
	const char *text = walk_copy(shell->walk, node);

	for (; *words; words++) {
		const char *at = strstr(text, *words);
		size_t size = strlen(*words);

		if (at && (at == text || strchr(" \t\n;&|({", at[-1])) && strchr(" \t\n;&|)}", at[size]))
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

static void visit_while(struct shell *shell, TSNode node, struct stream *stream)
{
	TSNode condition = node_field(node, "condition");
	const char *text = walk_copy(shell->walk, condition);
	bool is_until = node_is(ts_node_child(node, 0), "until");
	bool holds = str_equal(text, "true") || str_equal(text, ":") || str_equal(text, "[ 1 ]") || str_equal(text,
		"((1))") ||
		     str_equal(text, "[[ 1 ]]");

	visit_endless(shell, node, is_until ? str_equal(text, "false") : holds, stream);
}

/* Thousands of rounds, each of which leaves something behind that runs: as good as without an end. */
static bool is_vast(struct shell *shell, TSNode loop, TSNode body)
{
	static const char *const ends[] = { "wait", "break", "exit", "return", NULL };
	uint32_t size, start = ts_node_start_byte(loop);
	const char *text = walk_text(shell->walk, body, &size);
	bool starts_more = false, is_many = false;

	for (uint32_t i = 1; i + 1 < size; i++)
		starts_more |= text[i] == '&' && text[i - 1] != '&' && text[i + 1] != '&' && text[i - 1] != '>' &&
			       text[i + 1] != '>';
	text = shell->walk->text + start;
	size = ts_node_start_byte(body) - start;
	for (uint32_t i = 0, digits = 0; i < size; i++) {
		digits = isdigit((unsigned char)text[i]) ? digits + 1 : 0;
		is_many |= digits >= VAST_DIGITS;
	}
	return starts_more && is_many && !text_has(shell, body, ends);
}

static void visit_c_for(struct shell *shell, TSNode node, struct stream *stream)
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

/* Once for each known value, as far as that is worth while. */
static void visit_for(struct shell *shell, TSNode node, struct stream *stream)
{
	size_t max = shell->loops == 0 ? LOOP_VALUES_MAX : shell->loops == 1 ? 8 : 2;
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
	for (size_t i = 0; i < values.count && i < max && !walk_is_over(shell->walk); i++) {
		shell_set(shell, name, (struct word *)values.items + i);
		shell_statement(shell, body, stream);
	}
	if (values.count == 0 || values.count > max) {
		struct word unknown = word_unknown(arena_of(shell), walk_span(shell->walk, node), WORD_FROM_INPUT);

		shell_set(shell, name, &unknown);
		shell_statement(shell, body, stream);
	}
	shell->loops--;
	shell->context = context;
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
	function->operation = walk_add(shell->walk, OP_FUNCTION, walk_span(shell->walk, node), shell->context);
	operations_add_text(shell->walk->operations, function->operation, function->name);
}

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
	run_words(shell, &command, stream);
	return true;
}

static void visit_declaration(struct shell *shell, TSNode node, struct stream *stream)
{
	bool is_exported = node_is(ts_node_child(node, 0), "export");

	if (list_variables(shell, node, stream))
		return;
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (!ts_node_is_named(child))
			continue;
		if (node_is(child, "variable_assignment")) {
			assign(shell, child, is_exported);
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

static void visit_unset(struct shell *shell, TSNode node, struct stream *stream)
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

static void visit_assignment(struct shell *shell, TSNode node, struct stream *stream)
{
	assign(shell, node, false);
}

/* A test, or anything else: only what is substituted in it happens. */
static void visit_words(struct shell *shell, TSNode node, struct stream *stream)
{
	(void)shell_word(shell, node);
}

/* What the grammar did not understand: words in a row are taken for a command, the rest as it stands. */
static void visit_error(struct shell *shell, TSNode node, struct stream *stream)
{
	struct vec words = { 0 };
	struct command command = { .span = walk_span(shell->walk, node), .context = shell->context };
	uint32_t count = ts_node_child_count(node), size;
	const char *text = walk_text(shell->walk, node, &size);

	/* {rm,-rf,/}: the grammar takes the brace for the begin of a group. */
	if (size > 2 && text[0] == '{' && memchr(text, ',', size) && !strchr(" \t\n", text[1])) {
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
		run_words(shell, &command, stream);
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
			run_words(shell, &command, stream);
			words = (struct vec){ 0 };
		}
	}
}

static const struct {
	const char *type;
	void (*visit)(struct shell *shell, TSNode node, struct stream *stream);
} kinds[] = {
	{ "ERROR", visit_error }, { "c_style_for_statement", visit_c_for }, { "case_item", shell_statements },
	{ "case_statement", visit_case }, { "command", visit_command }, { "comment", NULL },
	{ "compound_statement", shell_statements }, { "declaration_command", visit_declaration },
	{ "do_group", shell_statements }, { "elif_clause", shell_statements }, { "else_clause", shell_statements },
	{ "file_redirect", visit_lone_redirection },
	{ "for_statement", visit_for }, { "function_definition", visit_function }, { "if_statement", visit_condition },
	{ "list", visit_list }, { "negated_command", shell_statements }, { "pipeline", visit_pipeline },
	{ "program", shell_statements }, { "redirected_statement", visit_redirected }, { "subshell", visit_subshell },
	{ "unset_command", visit_unset }, { "variable_assignment", visit_assignment },
	{ "variable_assignments", shell_statements }, { "while_statement", visit_while },
};

void shell_statement(struct shell *shell, TSNode node, struct stream *stream)
{
	size_t at = 0;

	if (ts_node_is_null(node) || !walk_enter(shell->walk, node))
		return;
	while (at < ARRAY_SIZE(kinds) && !node_is(node, kinds[at].type))
		at++;
	if (at == ARRAY_SIZE(kinds))
		visit_words(shell, node, stream);
	else if (kinds[at].visit)
		kinds[at].visit(shell, node, stream);
	walk_leave(shell->walk);
}

void shell_statements(struct shell *shell, TSNode parent, struct stream *stream)
{
	TSTreeCursor cursor = ts_tree_cursor_new(parent);
	bool more = ts_tree_cursor_goto_first_child(&cursor);

	while (more && !walk_is_over(shell->walk)) {
		TSNode node = ts_tree_cursor_current_node(&cursor);
		uint32_t context = shell->context;

		more = ts_tree_cursor_goto_next_sibling(&cursor);
		if (!ts_node_is_named(node))
			continue;
		if (more && node_is(ts_tree_cursor_current_node(&cursor), "&"))
			shell->context |= CONTEXT_BACKGROUND;
		shell_statement(shell, node, stream);
		shell->context = context;
	}
	ts_tree_cursor_delete(&cursor);
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
		call_function(shell, function, &command, &ignored);
		shell->context = 0;
	}
}

void walk_shell(struct walk *walk, TSNode root)
{
	struct shell own = { .walk = walk }, *shell = walk->shell && walk->is_same_shell ? walk->shell : &own;
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
