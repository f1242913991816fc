/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/shell.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { NAME_SIZE = 128 };

/* ${NAME…} taken apart. */
struct parameter {
	char name[NAME_SIZE];
	bool is_indirect, is_length;
	const char *index;    /* of an array, without the brackets: "@", "0"; NULL: none */
	size_t index_size;
	const char *operator; /* what follows the name, up to the closing brace */
	size_t operator_size;
};

static size_t name_size(const char *text, size_t size)
{
	size_t used = 0;

	if (size && strchr("@*#?$!-", text[0]))
		return 1;
	if (size && isdigit((unsigned char)text[0])) {
		while (used < size && isdigit((unsigned char)text[used]))
			used++;
		return used;
	}
	while (used < size && (isalnum((unsigned char)text[used]) || text[used] == '_'))
		used++;
	return used;
}

static bool parse(const char *text, size_t size, struct parameter *parameter)
{
	size_t used;

	*parameter = (struct parameter){ .name = "" };
	if (size && text[0] == '$')
		text++, size--;
	if (size >= 2 && text[0] == '{') {
		text++, size--;
		if (text[size - 1] == '}')
			size--;
	}
	if (size > 1 && (text[0] == '!' || text[0] == '#') && name_size(text + 1, size - 1)) {
		parameter->is_indirect = text[0] == '!';
		parameter->is_length = text[0] == '#';
		text++, size--;
	}
	used = name_size(text, size);
	if (!used || used >= NAME_SIZE)
		return false;
	memcpy(parameter->name, text, used);
	text += used, size -= used;
	if (size && text[0] == '[') {
		const char *end = memchr(text, ']', size);

		used = end ? (size_t)(end + 1 - text) : size;
		parameter->index = text + 1;
		parameter->index_size = used > 2 ? used - 2 : 0;
		text += used, size -= used;
	}
	parameter->operator = text;
	parameter->operator_size = size;
	return true;
}

/* What stands behind the operator, expanded: the children there, and the text between them. */
static struct word operand(struct shell *shell, TSNode node, const char *from, size_t size)
{
	uint32_t start = (uint32_t)(from - shell->walk->text), end = start + (uint32_t)size, at = start;
	struct word_draft draft;

	word_begin(&draft, shell->walk->operations->arena, walk_span(shell->walk, node));
	for (cleanup_each struct each each = each_child(shell->walk, node); each_next(&each);) {
		TSNode child = each.node;

		if (!ts_node_is_named(child) || ts_node_start_byte(child) < at || ts_node_end_byte(child) > end)
			continue;
		word_put(&draft, shell->walk->text + at, ts_node_start_byte(child) - at);
		shell_expand(shell, child, false, &draft);
		at = ts_node_end_byte(child);
	}
	if (end > at)
		word_put(&draft, shell->walk->text + at, end - at);
	return word_end(&draft);
}

static struct word part_of(struct shell *shell, const struct word *value, const char *text, size_t size)
{
	struct word_draft draft;

	word_begin(&draft, shell->walk->operations->arena, value->span);
	draft.flags = value->flags;
	draft.origins = value->origins;
	word_put(&draft, text, size);
	return word_end(&draft);
}

/* ${x:OFFSET:LENGTH} with numbers; a letter cut out of a known variable is how a command is hidden. */
static struct word substring(struct shell *shell, const struct word *value, const char *name, const char *range)
{
	char *rest;
	long offset = strtol(range, &rest, 10);
	long length = *rest == ':' ? strtol(rest + 1, NULL, 10) : (long)value->size;
	struct word part;

	if (!word_is_exact(value)) {
		bool is_path = str_equal(name, "PATH") || str_equal(name, "HOME") || str_equal(name, "PWD") ||
			       str_equal(name, "OLDPWD") || str_equal(name, "SHELL");

		part = is_path && offset == 0 && length == 1
			       ? word_of(shell->walk->operations->arena, value->span, "/")
			       : word_unknown(shell->walk->operations->arena, value->span, value->flags);
		part.flags |= WORD_OBSCURED;
		return part;
	}
	if (str_equal(value->text, "~") && offset == 0 && length == 1)
		return word_of(shell->walk->operations->arena, value->span, "/");
	if (offset < 0)
		offset += (long)value->size;
	if (offset < 0 || offset > (long)value->size)
		offset = (long)value->size;
	if (length < 0)
		length += (long)value->size - offset;
	if (length < 0 || length > (long)value->size - offset)
		length = length < 0 ? 0 : (long)value->size - offset;
	part = part_of(shell, value, value->text + offset, (size_t)length);
	part.flags |= WORD_OBSCURED;
	return part;
}

/* ${x#P} ${x##P} ${x%P} ${x%%P} */
static struct word trimmed(struct shell *shell, const struct word *value, const char *operator,
	const struct word *pattern)
{
	bool is_front = operator[0] == '#', is_long = operator[1] == operator[0];
	size_t size = value->size > 4096 ? 4096 : value->size;
	char copy[4097];

	memcpy(copy, value->text, size);
	copy[size] = '\0';
	for (size_t i = 0; i <= size; i++) {
		size_t cut = is_long ? size - i : i; /* how much goes */
		char saved;
		bool matches;

		if (is_front) {
			saved = copy[cut];
			copy[cut] = '\0';
			matches = fnmatch(pattern->text, copy, 0) == 0;
			copy[cut] = saved;
		} else {
			matches = fnmatch(pattern->text, copy + size - cut, 0) == 0;
		}
		if (matches)
			return is_front ? part_of(shell, value, value->text + cut, value->size - cut)
					: part_of(shell, value, value->text, size - cut);
	}
	return *value;
}

/* ${x/A/B}, ${x//A/B}: plain text; with a pattern it is not known. */
static struct word replaced(struct shell *shell, const struct word *value, const struct word *rule)
{
	bool is_all = rule->text[0] == '/';
	const char *from = rule->text + is_all, *slash = strchr(from, '/'), *to = slash ? slash + 1 : "";
	size_t from_size = slash ? (size_t)(slash - from) : strlen(from);
	const char *at = value->text;
	struct word_draft draft;

	word_begin(&draft, shell->walk->operations->arena, value->span);
	draft.flags = value->flags;
	draft.origins = value->origins;
	/* A pattern, or a mark that the grammar was spared (grammar.c). */
	if (strcspn(from, "*[") < from_size || strchr(from, '?'))
		return word_unknown(shell->walk->operations->arena, value->span, value->flags);
	while (*at && from_size) {
		if (strncmp(at, from, from_size) != 0) {
			word_put(&draft, at++, 1);
			continue;
		}
		word_put(&draft, to, strlen(to));
		at += from_size;
		if (!is_all)
			break;
	}
	word_put(&draft, at, strlen(at));
	if (!word_is_exact(rule))
		draft.flags &= ~(uint32_t)WORD_EXACT;
	return word_end(&draft);
}

static struct word cased(struct shell *shell, const struct word *value, bool is_upper, bool is_all)
{
	char *text = arena_text_n(shell->walk->operations->arena, value->text, value->size);
	struct word word = *value;

	for (size_t i = 0; text && i < (is_all ? value->size : value->size > 0); i++)
		text[i] = (char)(is_upper ? toupper((unsigned char)text[i]) : tolower((unsigned char)text[i]));
	if (text)
		word.text = text;
	word.flags |= WORD_OBSCURED;
	return word;
}

/* The value when something follows the name. */
static struct word operated(struct shell *shell, TSNode node, const struct parameter *parameter,
	const struct word *value,
			    bool is_set)
{
	const char *operator = parameter->operator;
	bool has_colon = operator[0] == ':' && parameter->operator_size > 1 && strchr("-=?+", operator[1]);
	char kind = has_colon ? operator[1] : operator[0];
	size_t skipped = has_colon ? 2 : 1;
	struct word rest;

	if (kind == ':')
		return substring(shell, value, parameter->name, operator + 1);
	if (strchr("#%", kind) && parameter->operator_size > 1 && operator[1] == kind)
		skipped = 2;
	rest = operand(shell, node, operator + skipped, parameter->operator_size - skipped);
	switch (kind) {
	case '-':
	case '=':
		if (kind == '=' && !is_set)
			shell_set(shell, parameter->name, &rest);
		/* The environment may have another. */
		if (!is_set)
			rest.flags |= WORD_FROM_ENVIRONMENT;
		return is_set && !(has_colon && word_is_exact(value) && !value->size) ? *value : rest;
	case '+': return rest;
	case '#':
	case '%': return word_is_exact(value) ? trimmed(shell, value, operator, &rest) : *value;
	case '/': return word_is_exact(value) ? replaced(shell, value, &rest) : *value;
	case '^':
	case ',': return cased(shell, value, kind == '^', parameter->operator_size > 1);
	default: return *value;
	}
}

/*
 * ${x:?} at the beginning of a word: nothing goes on where it is empty, so there is a byte that is known within what is
 * not, and no pattern of paths takes it for what may be nothing.
 */
static struct word never_empty(struct shell *shell, const struct word *value)
{
	struct word_draft draft;

	word_begin(&draft, shell->walk->operations->arena, value->span);
	word_put_word(&draft, value);
	word_put(&draft, "?", 1);
	word_put_unknown(&draft, NULL, 0);
	return word_end(&draft);
}

/*
 * What ${NAME[INDEX]} takes of an array. All of its items stay apart for "@", quoted or not; an index that is not
 * known may be any of them.
 */
static struct word items_of(struct shell *shell, const struct parameter *parameter, const struct word *value,
			    bool is_quoted)
{
	bool is_all = parameter->index_size == 1 && (*parameter->index == '@' || (*parameter->index == '*' &&
		!is_quoted));
	const char *at = value->text;
	char *text;
	struct word word = *value;

	if (!strchr(at, SHELL_ITEM))
		return word;
	if (!parameter->index || (parameter->index_size && isdigit((unsigned char)*parameter->index))) {
		unsigned long skipped = parameter->index ? strtoul(parameter->index, NULL, 10) : 0;

		for (; skipped && (at = strchr(at, SHELL_ITEM)); skipped--)
			at++;
		return at ? part_of(shell, value, at, strcspn(at, (const char[]){ SHELL_ITEM, 0 }))
			  : part_of(shell, value, "", 0);
	}
	text = arena_text_n(shell->walk->operations->arena, value->text, value->size);
	word.text = text ? text : "";
	word.size = text ? word.size : 0;
	for (; text && *text; text++)
		*text = *text != SHELL_ITEM ? *text : is_all ? SHELL_SPLIT : ' ';
	return word;
}

static void put(struct shell *shell, struct word_draft *draft, const struct word *value, bool is_quoted)
{
	const struct word *separators = shell_get(shell, "IFS");
	const char *breaks = separators && word_is_exact(separators) ? separators->text : " \t\n";
	struct word copy = *value;
	char *text;

	copy.flags &= is_quoted ? ~(uint32_t)WORD_GLOB : ~0U;
	if (!is_quoted && strpbrk(value->text, "*?["))
		copy.flags |= WORD_GLOB;
	if (!is_quoted && strpbrk(value->text, breaks)) {
		text = arena_text_n(draft->arena, value->text, value->size);
		for (char *at = text; at && *(at += strcspn(at, breaks)); at++)
			*at = SHELL_SPLIT;
		copy.text = text ? text : value->text;
	}
	word_put_word(draft, &copy);
}

void shell_parameter(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft)
{
	struct span span = walk_span(shell->walk, node);
	struct parameter parameter;
	struct word value;
	bool is_set;
	uint32_t size;
	const char *text = walk_text(shell->walk, node, &size);

	if (!parse(text, size, &parameter)) {
		word_put_unknown(draft, NULL, WORD_FROM_ENVIRONMENT);
		return;
	}
	is_set = shell_get(shell, parameter.name) != NULL ||
		 (shell->has_arguments && isdigit((unsigned char)parameter.name[0]) &&
		  strtoul(parameter.name, NULL, 10) < shell->argument_count);
	value = shell_value(shell, parameter.name, span);
	value = items_of(shell, &parameter, &value, is_quoted);
	if (parameter.is_indirect && word_is_exact(&value) && value.size < NAME_SIZE) {
		value = shell_value(shell, value.text, span);
		value.flags |= WORD_OBSCURED;
	} else if (parameter.is_length || parameter.is_indirect) {
		value = word_unknown(draft->arena, span, 0);
	}
	if (parameter.operator_size)
		value = operated(shell, node, &parameter, &value, is_set);
	else if (!is_set && str_equal(parameter.name, "IFS") && !is_quoted)
		value.flags |= WORD_OBSCURED;
	else if (is_set)
		value.flags &= ~(uint32_t)WORD_OBSCURED;
	if (parameter.operator_size > 1 && strncmp(parameter.operator, ":?", 2) == 0 && !draft->text.size &&
	    !word_is_exact(&value))
		value = never_empty(shell, &value);
	value.span = span;
	/* c$@url: nothing, put where nobody reads it as a command. */
	if (!is_quoted && draft->text.size && !shell->has_arguments && strlen(parameter.name) == 1 &&
	    strchr("@*", parameter.name[0]) && draft->text.bytes[draft->text.size - 1] != '=') {
		draft->flags |= WORD_OBSCURED;
		return;
	}
	put(shell, draft, &value, is_quoted);
}
