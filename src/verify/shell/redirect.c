/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "verify/model/language.h"

/* Redirections and here-documents: what they read and write, and what goes on in a pipe behind one. */

enum { REDIRECTIONS_MAX = 32 };

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

uint32_t shell_descriptor(const struct shell *shell, const char *number)
{
	unsigned long wanted = strtoul(number, NULL, 10);

	for (size_t i = shell->descriptor_count; i > 0 && isdigit((unsigned char)*number); i--)
		if (shell->descriptors[i - 1].number == wanted)
			return shell->descriptors[i - 1].operation;
	return OPERATION_NONE;
}

/* From 3 on: what is lower is what every command has, and is followed by itself. */
static void open_descriptor(struct shell *shell, const char *number, uint32_t operation)
{
	unsigned long value = strtoul(number, NULL, 10);
	struct shell_descriptor *last = &shell->descriptors[SHELL_DESCRIPTORS_MAX - 1];

	if (value < 3 || value > 1024 || operation == OPERATION_NONE)
		return;
	if (shell->descriptor_count < SHELL_DESCRIPTORS_MAX)
		last = &shell->descriptors[shell->descriptor_count++];
	*last = (struct shell_descriptor){ (unsigned)value, operation };
}

/* <&5: what comes in is what comes from there. */
static void redirect_from_descriptor(struct shell *shell, TSNode node, struct stream *inner)
{
	uint32_t operation = shell_descriptor(shell, walk_copy(shell->walk, node_field(node, "destination")));
	struct operation *source = operations_get(shell->walk->operations, operation);

	if (!source)
		return;
	inner->input = (struct origins){ 0 };
	inner->document = NULL;
	origins_add(&inner->input, operation);
}

/* >&5: what goes out goes there. */
static void redirect_to_descriptor(struct shell *shell, TSNode node, const struct stream *inner)
{
	uint32_t operation = shell_descriptor(shell, walk_copy(shell->walk, node_field(node, "destination")));

	operations_add_flows(shell->walk->operations, &inner->output, operation);
}

static void redirect_input(struct shell *shell, const struct redirections *found, struct stream *inner)
{
	for (size_t i = 0; i < found->file_count; i++) {
		const char *operator;
		struct word target;
		uint32_t index;

		if (!redirection_target(shell, found->files[i], &operator, &target)) {
			if (operator[0] == '<')
				redirect_from_descriptor(shell, found->files[i], inner);
			continue;
		}
		if (operator[0] != '<')
			continue;
		index = is_socket(&target) ? add_path(shell, OP_NETWORK, &target, TRAIT_FETCHES)
					   : add_path(shell, OP_READ, &target, 0);
		open_descriptor(shell, walk_copy(shell->walk, node_field(found->files[i], "descriptor")), index);
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
		if (!is_file && is_output)
			redirect_to_descriptor(shell, found->files[i], inner);
		if (!is_file)
			continue;
		if (is_socket(&target))
			index = add_path(shell, OP_NETWORK, &target, TRAIT_SENDS | TRAIT_FETCHES);
		else
			index = add_path(shell, OP_WRITE, &target,
					 strstr(operator, ">>") ? TRAIT_APPENDS : TRAIT_TRUNCATES);
		open_descriptor(shell, descriptor, index);
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
		next = stream_next(shell, &current, walk_span(shell->walk, child));
		shell_statement(shell, child, &next);
		current = next;
	}
	shell->context = context;
	stream_pass(shell, stream, &current);
}

/* holder has the redirections; body is what they are for: a child of it, or itself (a command that begins with one). */
void shell_redirected(struct shell *shell, TSNode holder, TSNode body, struct stream *stream)
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
		shell_command(shell, body, &found.extra, &inner);
	else if (!ts_node_is_null(body))
		shell_statement(shell, body, &inner);
	shell->context = context;
	is_gone = redirect_output(shell, &found, &inner);
	if (is_gone)
		inner.output = (struct origins){ 0 }, inner.pieces.count = 0;
	if (found.has_pipe)
		run_pipe_from(shell, found.pipe, &inner, stream);
	else if (!is_gone)
		stream_pass(shell, stream, &inner);
	if (found.has_right)
		shell_statement(shell, found.right, stream);
}

/* $(<FILE): a redirection without a command puts out what it reads. */
void shell_lone_redirection(struct shell *shell, TSNode node, struct stream *stream)
{
	struct redirections found = { .files = { node }, .file_count = 1 };
	struct stream inner = { .is_unknown = true };

	redirect_input(shell, &found, &inner);
	origins_join(&inner.output, &inner.input);
	if (!redirect_output(shell, &found, &inner) && inner.output.count)
		stream_pass(shell, stream, &inner);
}
