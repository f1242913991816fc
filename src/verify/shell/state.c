/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/shell.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

/* FNV-1a: most names that are compared are others. */
uint32_t shell_hash(const char *name)
{
	uint32_t hash = 2166136261U;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619U;
	return hash;
}

static struct shell_variable *find(const struct vec *vec, const char *name)
{
	struct shell_variable *items = vec->items;
	uint32_t hash = shell_hash(name);

	for (size_t i = vec->count; i > 0; i--) {
		if (items[i - 1].hash == hash && str_equal(items[i - 1].name, name))
			return &items[i - 1];
	}
	return NULL;
}

void shell_set(struct shell *shell, const char *name, const struct word *value)
{
	struct arena *arena = shell->walk->operations->arena;
	struct shell_variable *variable = find(&shell->variables, name);
	bool was_there = variable && !str_equal(variable->value.text, value->text);
	struct word kept = *value;

	if (!variable || shell->variables.count < SHELL_VARIABLES_MAX)
		variable = shell->variables.count < SHELL_VARIABLES_MAX
				   ? vec_add(arena, &shell->variables, sizeof *variable) : NULL;
	if (!variable) {
		operations_doubt(shell->walk->operations, DOUBT_SIZE, value->span);
		return;
	}
	/* It may be this or what it was before. */
	if (shell->conditions && was_there)
		kept.flags &= ~(uint32_t)WORD_EXACT;
	*variable = (struct shell_variable){ arena_text(arena, name), shell_hash(name), kept };
	if (!variable->name)
		variable->name = "";
}

const struct word *shell_get(const struct shell *shell, const char *name)
{
	const struct shell_variable *variable = find(&shell->variables, name);

	return variable ? &variable->value : NULL;
}

/* What every shell has, as far as it matters. */
static const struct {
	const char *name, *value;
} environment[] = {
	{ "BASH", "/bin/bash" }, { "HOME", "~" }, { "IFS", " " }, { "PWD", "." }, { "SHELL", "/bin/bash" },
	{ "TMPDIR", "/tmp" }, { "XDG_CONFIG_HOME", "~/.config" }, { "XDG_DATA_HOME", "~/.local/share" },
	{ "XDG_STATE_HOME", "~/.local/state" }, { "XDG_CACHE_HOME", "~/.cache" },
};

static struct word argument_value(struct shell *shell, const char *name, struct span span)
{
	struct arena *arena = shell->walk->operations->arena;
	struct word_draft draft;
	size_t at = (size_t)(name[0] - '0');

	if (!shell->has_arguments && name[0] == '0') {
		struct word self = word_of(arena, span, "$0");

		/* The script itself, whatever it is called. */
		self.flags = WORD_FROM_INPUT;
		return self;
	}
	if (!shell->has_arguments)
		return word_unknown(arena, span, WORD_FROM_INPUT);
	word_begin(&draft, arena, span);
	for (size_t i = 1; i < shell->argument_count && !(name[0] >= '0' && name[0] <= '9'); i++) {
		if (i > 1)
			word_put(&draft, (const char[]){ SHELL_SPLIT }, 1);
		word_put_word(&draft, &shell->arguments[i]);
	}
	if (name[0] >= '0' && name[0] <= '9' && at < shell->argument_count)
		word_put_word(&draft, &shell->arguments[at]);
	return word_end(&draft);
}

/* What whoever runs it has in the environment: the reading of "$NAME", so that it is known where a secret goes to. */
static struct word environment_value(struct shell *shell, const char *name, struct span span)
{
	struct arena *arena = shell->walk->operations->arena;
	struct word value = word_unknown(arena, span, WORD_FROM_ENVIRONMENT);
	char variable[128];
	uint32_t index;

	if (!isupper((unsigned char)name[0]) || str_format(variable, sizeof variable, "$%s", name) < 0)
		return value;
	index = walk_add(shell->walk, OP_READ, span, shell->context);
	operations_add_text(shell->walk->operations, index, variable);
	origins_add(&value.origins, index);
	return value;
}

struct word shell_value(struct shell *shell, const char *name, struct span span)
{
	struct arena *arena = shell->walk->operations->arena;
	const struct word *value = shell_get(shell, name);

	if (value)
		return *value;
	if (strlen(name) == 1 && strchr("123456789@*0", name[0]))
		return argument_value(shell, name, span);
	if (strlen(name) == 1 && strchr("#?$!-", name[0]))
		return word_unknown(arena, span, 0);
	for (size_t i = 0; i < ARRAY_SIZE(environment); i++) {
		if (str_equal(environment[i].name, name))
			return word_of(arena, span, environment[i].value);
	}
	return environment_value(shell, name, span);
}

struct shell_function *shell_function(const struct shell *shell, const char *name)
{
	struct shell_function *items = shell->functions.items;
	uint32_t hash = shell->functions.count ? shell_hash(name) : 0;

	for (size_t i = shell->functions.count; i > 0; i--) {
		if (items[i - 1].hash == hash && str_equal(items[i - 1].name, name))
			return &items[i - 1];
	}
	return NULL;
}

const struct word *shell_alias(const struct shell *shell, const char *name)
{
	const struct shell_variable *alias = find(&shell->aliases, name);

	return alias ? &alias->value : NULL;
}

enum { PIECES_MAX = 256 };

void stream_put(struct shell *shell, struct stream *stream, const struct word *piece)
{
	struct word *copy = stream->pieces.count < PIECES_MAX
				    ? vec_add(shell->walk->operations->arena, &stream->pieces, sizeof *copy) : NULL;

	if (copy)
		*copy = *piece;
	else
		stream->is_unknown = true;
}

struct word stream_word(struct shell *shell, const struct stream *stream, struct span span)
{
	const struct word *pieces = stream->pieces.items;
	struct word_draft draft;

	word_begin(&draft, shell->walk->operations->arena, span);
	for (size_t i = 0; i < stream->pieces.count; i++) {
		if (i)
			word_put(&draft, "\n", 1);
		word_put_word(&draft, &pieces[i]);
	}
	if (stream->is_unknown)
		word_put_unknown(&draft, NULL, 0);
	/* $(…) drops the ends of lines at the end. */
	while (draft.text.size && draft.text.bytes[draft.text.size - 1] == '\n')
		draft.text.size--;
	origins_join(&draft.origins, &stream->output);
	return word_end(&draft);
}

/* A stream's output goes on to where another's goes. */
void stream_pass(struct shell *shell, struct stream *to, const struct stream *from)
{
	const struct word *pieces = from->pieces.items;

	origins_join(&to->output, &from->output);
	to->is_unknown |= from->is_unknown;
	for (size_t i = 0; i < from->pieces.count; i++)
		stream_put(shell, to, &pieces[i]);
}

/* What comes out of one becomes what goes into the next. document is where a known text is kept. */
struct stream stream_next(struct shell *shell, const struct stream *before, struct span span)
{
	struct stream next = { .input = before->output };
	struct word *document = arena_alloc(arena_of(shell), sizeof *document);

	if (document && !before->is_unknown && before->pieces.count) {
		*document = stream_word(shell, before, span);
		next.document = document;
	}
	return next;
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
