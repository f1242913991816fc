/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/shell.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/model/decode.h"

/* Bytes of the source outside of quotes: a backslash takes the meaning of what follows. */
static void put_bare(struct word_draft *draft, const char *text, size_t size)
{
	size_t i = 0;

	if (!draft->text.size && size && text[0] == '~' && (size == 1 || text[1] == '/')) {
		word_put(draft, "~", 1);
		i = 1;
	}
	for (size_t begin = i; begin < size; begin = i) {
		for (; i < size && (text[i] != '\\' || i + 1 == size); i++)
			if (strchr("*?[", text[i]))
				draft->flags |= WORD_GLOB;
		word_put(draft, text + begin, i - begin);
		if (i == size)
			break;
		if (text[++i] == '\n') {
			i++;
			continue;
		}
		if (i > 1 && isalnum((unsigned char)text[i]))
			draft->flags |= WORD_OBSCURED;
		word_put(draft, &text[i++], 1);
	}
}

/* Within double quotes and here-documents. */
static void put_quoted(struct word_draft *draft, const char *text, size_t size)
{
	size_t begin = 0;

	for (size_t i = 0; i + 1 < size; i++) {
		if (text[i] != '\\' || !strchr("$`\"\\\n", text[i + 1]))
			continue;
		word_put(draft, text + begin, i - begin);
		/* What follows is put with the next bytes, but for the end of a line. */
		i++;
		begin = text[i] == '\n' ? i + 1 : i;
	}
	if (begin < size)
		word_put(draft, text + begin, size - begin);
}

static bool is_content(TSNode node)
{
	const char *type = ts_node_type(node);

	return str_equal(type, "string_content") || str_equal(type, "heredoc_content");
}

/* The bytes [start, end) of a quoted text: what children say is expanded, what is between them is literal. */
static void expand_range(struct shell *shell, TSNode node, uint32_t start, uint32_t end, struct word_draft *draft)
{
	const char *text = shell->walk->text;
	uint32_t at = start;

	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;
		uint32_t from = ts_node_start_byte(child), to = ts_node_end_byte(child);

		if (!ts_node_is_named(child) || from < at || to > end || is_content(child))
			continue;
		put_quoted(draft, text + at, from - at);
		shell_expand(shell, child, true, draft);
		at = to;
	}
	if (end > at)
		put_quoted(draft, text + at, end - at);
}

static void expand_string(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	uint32_t start = ts_node_start_byte(node), end = ts_node_end_byte(node);

	if (end - start <= 2 && !is_quoted)
		draft->flags |= WORD_OBSCURED; /* "" within a word; a word of its own loses the flag in shell_words() */
	if (end > start + 1)
		expand_range(shell, node, start + 1, end - 1, draft);
}

static void expand_raw(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	uint32_t size;
	const char *text = walk_text(shell->walk, node, &size);

	if (size == 2)
		draft->flags |= WORD_OBSCURED;
	if (size >= 2)
		word_put(draft, text + 1, size - 2);
}

static void expand_ansi(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	uint32_t size;
	const char *text = walk_text(shell->walk, node, &size);
	struct word_draft inner;
	struct word word;
	bool is_hidden = false;

	if (size < 3)
		return;
	word_begin(&inner, arena_of(shell), draft->span);
	word_put(&inner, text + 2, size - 3);
	word = word_end(&inner);
	word = decode_escapes(arena_of(shell), &word, &is_hidden);
	if (is_hidden)
		word.flags |= WORD_OBSCURED;
	word_put_word(draft, &word);
}

/* A value that stands outside of quotes: the shell splits it where it has white space. */
static void put_value(struct word_draft *draft, const struct word *value, bool is_quoted)
{
	struct word copy = *value;
	char *text;

	copy.flags &= ~(uint32_t)WORD_OBSCURED;
	if (is_quoted) {
		copy.flags &= ~(uint32_t)WORD_GLOB;
		word_put_word(draft, &copy);
		return;
	}
	text = arena_text_n(draft->arena, value->text, value->size);
	if (!text) {
		word_put_unknown(draft, NULL, 0);
		return;
	}
	for (char *at = text; *at; at++) {
		if (*at == ' ' || *at == '\t' || *at == '\n')
			*at = SHELL_SPLIT;
	}
	if (strpbrk(text, "*?["))
		copy.flags |= WORD_GLOB;
	copy.text = text;
	word_put_word(draft, &copy);
}

static void expand_substitution(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	struct stream stream = { 0 };
	uint32_t context = shell->context, size;
	size_t variables = shell->variables.count;
	const struct word *directory = shell->walk->directory;
	const char *text = walk_text(shell->walk, node, &size);
	struct word word;

	shell->context |= CONTEXT_SUBSTITUTION;
	shell_statements(shell, node, &stream);
	shell->context = context;
	if (shell->variables.count > variables)
		shell->variables.count = variables;
	shell->walk->directory = directory;
	/* $(<FILE) has no command in it. */
	word = stream_word(shell, &stream, walk_span(shell->walk, node));
	if (size > 3 && text[1] == '(' && text[2] == '<' && !word.size)
		word = word_unknown(arena_of(shell), word.span, 0), word.origins = stream.output;
	put_value(draft, &word, is_quoted);
}

/* <(…) and >(…): a name, whose content is what comes out. */
static void expand_process(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	struct stream stream = { 0 };
	uint32_t context = shell->context, size;
	bool takes_in = walk_text(shell->walk, node, &size)[0] == '>';

	if (takes_in)
		stream.input = shell->outgoing;
	shell->context |= CONTEXT_SUBSTITUTION;
	shell_statements(shell, node, &stream);
	shell->context = context;
	word_put_unknown(draft, takes_in ? NULL : &stream.output, 0);
	if (!stream.is_unknown && stream.pieces.count) {
		struct word *content = arena_alloc(arena_of(shell), sizeof *content);

		/* Known to whoever runs it as a script: only the newest is kept. */
		if (content)
			*content = stream_word(shell, &stream, walk_span(shell->walk, node));
		shell->process = content;
	}
}

static void expand_arithmetic(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	struct word_draft inner;

	/* Commands in it happen; the number is not worked out. */
	word_begin(&inner, arena_of(shell), draft->span);
	for (uint32_t i = 0; i < ts_node_named_child_count(node) && i < 1000; i++)
		shell_expand(shell, ts_node_named_child(node, i), true, &inner);
	(void)word_end(&inner);
	word_put_unknown(draft, NULL, 0);
}

static void expand_word(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	uint32_t size;
	const char *text = walk_text(shell->walk, node, &size);

	if (is_quoted)
		put_quoted(draft, text, size);
	else
		put_bare(draft, text, size);
}

/* Anything else: its parts, with what stands between them. */
static void expand_parts(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	uint32_t count = ts_node_child_count(node), at = ts_node_start_byte(node);

	if (!count) {
		expand_word(shell, node, is_quoted, draft);
		return;
	}
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;
		uint32_t from = ts_node_start_byte(child);

		if (from > at && !node_is(node, "array"))
			word_put(draft, shell->walk->text + at, from - at);
		if (node_is(node, "array") && ts_node_is_named(child) && draft->text.size)
			word_put(draft, (const char[]){ SHELL_ITEM }, 1);
		if (!node_is(node, "array") || ts_node_is_named(child))
			shell_expand(shell, child, is_quoted, draft);
		at = ts_node_end_byte(child);
	}
}

static const struct {
	const char *type;
	void (*expand)(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft);
} kinds[] = {
	{ "ansi_c_string", expand_ansi }, { "arithmetic_expansion", expand_arithmetic },
	{ "command_substitution", expand_substitution }, { "expansion", shell_parameter },
	{ "extglob_pattern", expand_word }, { "number", expand_word }, { "process_substitution", expand_process },
	{ "raw_string", expand_raw }, { "simple_expansion", shell_parameter }, { "string", expand_string },
	{ "word", expand_word },
};

void shell_expand(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	const char *type;

	if (ts_node_is_null(node) || !walk_enter(shell->walk, node)) {
		word_put_unknown(draft, NULL, 0);
		return;
	}
	type = ts_node_type(node);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!str_equal(type, kinds[i].type))
			continue;
		/* A number such as 10#$x has parts. */
		if (kinds[i].expand == expand_word && ts_node_named_child_count(node))
			expand_parts(shell, node, is_quoted, draft);
		else
			kinds[i].expand(shell, node, is_quoted, draft);
		walk_leave(shell->walk);
		return;
	}
	expand_parts(shell, node, is_quoted, draft);
	walk_leave(shell->walk);
}

static struct word expand_whole(struct shell *shell, TSNode node)
{
	static const char *const obscured[] = { "ansi_c_string", "command_name", "concatenation", "word" };
	struct word_draft draft;
	struct word word;

	word_begin(&draft, arena_of(shell), walk_span(shell->walk, node));
	shell_expand(shell, node, false, &draft);
	word = word_end(&draft);
	if (ts_node_is_null(node) || names_find(obscured, ARRAY_SIZE(obscured), ts_node_type(node)) < 0)
		word.flags &= ~(uint32_t)WORD_OBSCURED;
	return word;
}

struct word shell_word(struct shell *shell, TSNode node)
{
	struct word word = expand_whole(shell, node);
	char *text = arena_text_n(arena_of(shell), word.text, word.size);

	for (char *at = text; at && (at = strchr(at, SHELL_SPLIT)); at++)
		*at = ' ';
	if (text)
		word.text = text;
	return word;
}

static void split_word(struct shell *shell, const struct word *word, struct vec *words)
{
	static const char split[] = { SHELL_SPLIT, 0 };
	const char *at = word->text;

	if (!strchr(at, SHELL_SPLIT)) {
		struct word *copy = vec_add(arena_of(shell), words, sizeof *copy);

		if (copy)
			*copy = *word;
		return;
	}
	while (*at && words->count < WORDS_MAX) {
		size_t size = strcspn(at, split);
		struct word *part = size ? vec_add(arena_of(shell), words, sizeof *part) : NULL;

		if (part) {
			*part = *word;
			part->text = arena_text_n(arena_of(shell), at, size);
			part->size = (uint32_t)size;
			/* A part in which nothing is unknown is exact where only another part was not. */
			if (!part->text)
				part->text = "", part->size = 0;
		}
		at += size + (at[size] != '\0');
	}
}

/* The comma or the closing brace that belongs to this opening one. */
static const char *brace_end(const char *at, const char *stops)
{
	unsigned depth = 0;

	for (; *at; at++) {
		if (depth == 0 && strchr(stops, *at))
			return at;
		depth += *at == '{';
		if (*at == '}' && depth)
			depth--;
	}
	return NULL;
}

enum { BRACES_DEPTH_MAX = 6, BRACES_WORDS_MAX = 256, BRACES_TRIES_MAX = 64 };

static void split_braces(struct shell *shell, const struct word *word, struct vec *words, unsigned depth)
{
	const char *open = word->text, *close = NULL, *at;
	unsigned tries = 0;

	/* What opens so often and closes nothing is looked through once for each: enough is enough. */
	while (tries++ < BRACES_TRIES_MAX && (open = strchr(open, '{'))) {
		close = brace_end(open + 1, "}");
		at = close ? brace_end(open + 1, ",}") : NULL;
		if (at && *at == ',' && !(open > word->text && open[-1] == '$'))
			break;
		open++;
	}
	if (!open || tries > BRACES_TRIES_MAX || depth >= BRACES_DEPTH_MAX || words->count >= BRACES_WORDS_MAX) {
		split_word(shell, word, words);
		return;
	}
	for (at = open + 1; at <= close;) {
		const char *end = brace_end(at, ",}");
		struct word_draft draft;
		struct word one;

		if (!end)
			return;
		word_begin(&draft, arena_of(shell), word->span);
		draft.flags = word->flags;
		draft.origins = word->origins;
		word_put(&draft, word->text, (size_t)(open - word->text));
		word_put(&draft, at, (size_t)(end - at));
		word_put(&draft, close + 1, strlen(close + 1));
		one = word_end(&draft);
		split_braces(shell, &one, words, depth + 1);
		at = end + 1;
	}
}

void shell_split_braces(struct shell *shell, const struct word *word, struct vec *words)
{
	split_braces(shell, word, words, 0);
}

void shell_words(struct shell *shell, TSNode node, struct vec *words)
{
	struct word word = expand_whole(shell, node);
	uint32_t size;
	const char *source = walk_text(shell->walk, node, &size);
	bool is_quoted = memchr(source, '"', size) || memchr(source, '\'', size) || memchr(source, '\\', size);

	/* "$@" without quotes and with: both are split here, since the arguments were put in with marks. */
	if (!is_quoted && memchr(source, '{', size) && memchr(source, ',', size) && !memchr(word.text, WORD_UNKNOWN,
		word.size))
		shell_split_braces(shell, &word, words);
	else
		split_word(shell, &word, words);
}

struct word shell_document(struct shell *shell, TSNode body, bool is_raw)
{
	struct word_draft draft;

	word_begin(&draft, arena_of(shell), walk_span(shell->walk, body));
	if (is_raw) {
		uint32_t size;
		const char *text = walk_text(shell->walk, body, &size);

		word_put(&draft, text, size);
	} else {
		expand_range(shell, body, ts_node_start_byte(body), ts_node_end_byte(body), &draft);
	}
	return word_end(&draft);
}
