/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/compile/amend.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/str.h"
#include "base/url-path.h"
#include "base/utf8.h"
#include "lang/print/print.h"
#include "lang/yaml/arena.h"
#include "lang/yaml/node.h"
#include "policy/glob.h"

/* ---- the rule ---- */

/* A glob that matches this text alone. */
static void put_literal(struct buf *out, const char *text)
{
	char quoted[AMEND_ITEM_SIZE / 4];
	struct buf literal;

	buf_init_fixed(&literal, quoted, sizeof quoted);
	for (; *text; text++) {
		if (strchr("*?[]\\", *text))
			buf_put_char(&literal, '\\');
		buf_put_char(&literal, *text);
	}
	if (buf_error(&literal))
		out->error = -ENOBUFS;
	else
		print_quoted(out, buf_text(&literal));
}

static void put_host(struct buf *out, const struct grant_terms *granted)
{
	uint8_t address[16];
	bool is4 = inet_pton(AF_INET, granted->subject, address) == 1;
	bool is6 = !is4 && inet_pton(AF_INET6, granted->subject, address) == 1;

	if (is4 || is6)
		buf_printf(out, "{cidr: \"%s/%d\"", granted->subject, is4 ? 32 : 128);
	else {
		buf_put_text(out, "{host: ");
		print_quoted(out, granted->subject);
	}
	if (granted->port)
		buf_printf(out, ", ports: [%u]", granted->port);
}

static void put_connection(struct buf *out, const struct grant_terms *granted)
{
	put_host(out, granted);
	buf_put_char(out, '}');
}

/* A reading of a path may have a % that begins no escape; that of %25 is the same to a rule. */
static void put_request_path(struct buf *out, const char *path)
{
	char memory[AMEND_ITEM_SIZE];
	struct buf text;

	buf_init_fixed(&text, memory, sizeof memory);
	for (; *path; path++) {
		buf_put_char(&text, *path);
		buf_put_text(&text, *path == '%' && url_escape_at(path) < 0 ? "25" : "");
	}
	if (buf_error(&text))
		out->error = -ENOBUFS;
	else
		put_literal(out, buf_text(&text));
}

static void put_request(struct buf *out, const struct grant_terms *granted)
{
	put_host(out, granted);
	buf_put_text(out, ", http: [{methods: [");
	print_quoted(out, granted->method);
	buf_put_text(out, "], paths: [");
	put_request_path(out, granted->path);
	buf_put_text(out, "]}]}");
}

static void put_path(struct buf *out, const struct grant_terms *granted)
{
	put_literal(out, granted->subject);
}

static void put_command(struct buf *out, const struct grant_terms *granted)
{
	buf_put_text(out, "{program: ");
	print_quoted(out, granted->subject);
	for (size_t i = 0; granted->argv && granted->argv[i]; i++) {
		buf_put_text(out, i ? ", " : ", argv: [");
		put_literal(out, granted->argv[i]);
	}
	buf_put_text(out, granted->argv && granted->argv[0] ? "]}" : "}");
}

static bool is_text(const char *text)
{
	size_t left = text ? strlen(text) : 0;
	uint32_t rune;

	while (left) {
		size_t used = utf8_decode((const uint8_t *)text, left, &rune);

		if (!used)
			return false;
		text += used;
		left -= used;
	}
	return true;
}

/*
 * Bytes that are no text cannot stand in a policy. A program whose name is a pattern would be one by its place alone,
 * whatever lies there: no rule says what was allowed.
 */
static bool can_be_written(const struct grant_terms *granted)
{
	if (granted->kind == ACTION_EXEC && glob_is_pattern(granted->subject))
		return false;
	for (size_t i = 0; granted->argv && granted->argv[i]; i++)
		if (!is_text(granted->argv[i]))
			return false;
	if (granted->kind == ACTION_HTTP_REQUEST && (!granted->method || !granted->path || *granted->path != '/'))
		return false;
	return is_text(granted->subject) && is_text(granted->method) && is_text(granted->path);
}

int amend_rule(const struct grant_terms *granted, const char *note, char out[AMEND_ITEM_SIZE],
	       struct amendment *ret_amendment)
{
	static const struct {
		const char *section, *list;
		void (*put)(struct buf *out, const struct grant_terms *granted);
	} places[ACTION_KIND_COUNT] = {
		[ACTION_FILE_READ] = { "files", "read", put_path },
		[ACTION_EXEC] = { "exec", "allow", put_command },
		[ACTION_NET_CONNECT] = { "network", "allow", put_connection },
		[ACTION_HTTP_REQUEST] = { "network", "allow", put_request },
	};
	struct buf item;

	if ((unsigned)granted->kind >= ACTION_KIND_COUNT || !places[granted->kind].put || !can_be_written(granted))
		return -EOPNOTSUPP;
	buf_init_fixed(&item, out, AMEND_ITEM_SIZE);
	places[granted->kind].put(&item, granted);
	buf_printf(&item, "  # %s", note);
	*ret_amendment = (struct amendment){ places[granted->kind].section, places[granted->kind].list, out };
	(void)buf_text(&item);
	return buf_error(&item) ? -EOPNOTSUPP : 0;
}

/* ---- its place ---- */

static const struct node *value_of(const struct node *map, const char *key)
{
	for (const struct node *at = map ? map->first : NULL; at; at = at->next)
		if (at->kind == NODE_SCALAR && str_equal(at->text, key))
			return at->value;
	return NULL;
}

/* Where a line begins; size where there is none of that number. */
static size_t line_start(const char *bytes, size_t size, uint32_t line)
{
	size_t at = 0;

	while (--line && at < size) {
		const char *end = memchr(bytes + at, '\n', size - at);

		at = end ? (size_t)(end - bytes) + 1 : size;
	}
	return at;
}

/*
 * The line on which the node begins, where nothing but blanks stands before it: it is written in block style, and what
 * is put above has its indentation. SIZE_MAX: it is not.
 */
static size_t block_start(const char *bytes, size_t size, const struct node *node, enum node_kind kind)
{
	size_t start = line_start(bytes, size, node->place.line), column = node->place.column - 1;

	if (node->kind != kind || start + column >= size || strspn(bytes + start, " ") < column ||
	    strchr("[{", bytes[start + column]))
		return SIZE_MAX;
	return start;
}

static void put_indent(struct buf *out, uint32_t column)
{
	buf_printf(out, "%*s", (int)column - 1, "");
}

static int put_at(const char *bytes, size_t size, size_t at, const struct buf *lines, struct buf *out)
{
	if (at == SIZE_MAX)
		return 1;
	buf_put(out, bytes, at);
	buf_put(out, lines->bytes, lines->size);
	buf_put(out, bytes + at, size - at);
	return buf_error(out);
}

static int place(const char *bytes, size_t size, const struct node *root, const struct amendment *amendment,
		 struct buf *out)
{
	const struct node *section = value_of(root, amendment->section);
	const struct node *list = value_of(section, amendment->list);
	cleanup_buf struct buf lines;

	buf_init(&lines, AMEND_ITEM_SIZE + 256);
	if (root->kind != NODE_MAP || (!section && block_start(bytes, size, root, NODE_MAP) == SIZE_MAX))
		return 1;
	if (!section) {
		buf_printf(&lines, "%s%s:\n  %s:\n    - %s\n", size && bytes[size - 1] != '\n' ? "\n" : "",
			   amendment->section, amendment->list, amendment->item);
		return put_at(bytes, size, size, &lines, out);
	}
	if (!list) {
		put_indent(&lines, section->place.column);
		buf_printf(&lines, "%s:\n", amendment->list);
		put_indent(&lines, section->place.column);
		buf_printf(&lines, "  - %s\n", amendment->item);
		return put_at(bytes, size, block_start(bytes, size, section, NODE_MAP), &lines, out);
	}
	put_indent(&lines, list->place.column);
	buf_printf(&lines, "- %s\n", amendment->item);
	return put_at(bytes, size, block_start(bytes, size, list, NODE_LIST), &lines, out);
}

int amend_text(const char *bytes, size_t size, const struct amendment *amendment, struct buf *out)
{
	struct arena arena = { 0 };
	struct diags diags = { .arena = &arena };
	const struct node *root = node_parse(&diags, "", bytes, size);
	int r = root ? place(bytes, size, root, amendment, out) : 1;

	arena_done(&arena);
	return r;
}
