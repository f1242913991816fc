/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/yaml/node.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/utf8.h"

/* The containers that are open, innermost last. */
struct level {
	struct node *node;
	struct node *last; /* its last child */
	struct node *key;  /* a key that waits for its value */
};

struct builder {
	struct diags *diags;
	const char *file;
	struct level levels[NODE_DEPTH_MAX];
	unsigned depth;
	struct node *root;
	size_t count;
	unsigned documents;
	bool is_ended; /* the stream ended, or an error made the rest meaningless */
};

static struct place place_of(const struct builder *builder, yaml_mark_t mark)
{
	return (struct place){ builder->file, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1 };
}

static void refuse(struct builder *builder, yaml_mark_t mark, const char *what)
{
	diag_add(builder->diags, place_of(builder, mark), "%s", what);
	builder->is_ended = true;
}

static struct node *add_node(struct builder *builder, enum node_kind kind, const yaml_event_t *event)
{
	struct level *level = builder->depth ? &builder->levels[builder->depth - 1] : NULL;
	struct node *node;

	if (++builder->count > NODE_COUNT_MAX) {
		refuse(builder, event->start_mark, "the file has too many entries");
		return NULL;
	}
	node = arena_alloc(builder->diags->arena, sizeof *node);
	if (!node) {
		builder->is_ended = true;
		return NULL;
	}
	node->kind = kind;
	node->place = place_of(builder, event->start_mark);
	if (!level) {
		builder->root = node;
	} else if (level->key) {
		level->key->value = node;
		level->key = NULL;
	} else {
		if (level->last)
			level->last->next = node;
		else
			level->node->first = node;
		level->last = node;
		if (level->node->kind == NODE_MAP)
			level->key = node;
	}
	return node;
}

static void open_container(struct builder *builder, enum node_kind kind, const yaml_event_t *event)
{
	struct node *node;

	if (builder->depth == NODE_DEPTH_MAX) {
		refuse(builder, event->start_mark, "this is nested too deeply");
		return;
	}
	node = add_node(builder, kind, event);
	if (node)
		builder->levels[builder->depth++] = (struct level){ .node = node };
}

static void take_scalar(struct builder *builder, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	struct node *node;

	if (strlen(text) != length) {
		refuse(builder, event->start_mark, "a text must not hold a NUL byte");
		return;
	}
	node = add_node(builder, NODE_SCALAR, event);
	if (!node)
		return;
	node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	node->text = arena_text_n(builder->diags->arena, text, length);
	if (!node->text)
		builder->is_ended = true;
}

/* Anchors multiply a small file into a large one, and tags name types that a policy does not have. */
static bool is_refused(struct builder *builder, const yaml_event_t *event)
{
	const void *anchor = NULL, *tag = NULL;

	if (event->type == YAML_ALIAS_EVENT)
		anchor = event->data.alias.anchor;
	if (event->type == YAML_SCALAR_EVENT)
		anchor = event->data.scalar.anchor, tag = event->data.scalar.tag;
	if (event->type == YAML_SEQUENCE_START_EVENT)
		anchor = event->data.sequence_start.anchor, tag = event->data.sequence_start.tag;
	if (event->type == YAML_MAPPING_START_EVENT)
		anchor = event->data.mapping_start.anchor, tag = event->data.mapping_start.tag;
	if (anchor)
		refuse(builder, event->start_mark,
		       "anchors and aliases (& and *) are not allowed; quote a text that begins with *");
	else if (tag)
		refuse(builder, event->start_mark, "tags (!) are not allowed");
	return anchor || tag;
}

static void take_document(struct builder *builder, const yaml_event_t *event)
{
	if (builder->documents++)
		refuse(builder, event->start_mark, "a policy is one document; \"---\" begins a second one");
	else if (event->data.document_start.version_directive ||
		 event->data.document_start.tag_directives.start !=
			 event->data.document_start.tag_directives.end)
		refuse(builder, event->start_mark, "directives (%) are not allowed");
}

static void take_event(struct builder *builder, const yaml_event_t *event)
{
	if (is_refused(builder, event))
		return;
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		take_document(builder, event);
		break;
	case YAML_SCALAR_EVENT:
		take_scalar(builder, event);
		break;
	case YAML_SEQUENCE_START_EVENT:
		open_container(builder, NODE_LIST, event);
		break;
	case YAML_MAPPING_START_EVENT:
		open_container(builder, NODE_MAP, event);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		builder->depth--;
		break;
	case YAML_STREAM_END_EVENT:
		builder->is_ended = true;
		break;
	default:
		break;
	}
}

/* Mostly a tab. */
static const char *way_out(const char *problem)
{
	return problem && strstr(problem, "cannot start any token") ?
		       "; indent with spaces, and put text that begins with %, @ or ` into quotes" : "";
}

static void parse_events(struct builder *builder, yaml_parser_t *parser)
{
	yaml_event_t event;

	while (!builder->is_ended) {
		if (!yaml_parser_parse(parser, &event)) {
			diag_add(builder->diags, place_of(builder, parser->problem_mark),
				 "this is no valid YAML: %s%s%s%s",
				 parser->problem ? parser->problem : "out of memory",
				 parser->context ? ", " : "", parser->context ? parser->context : "",
				 way_out(parser->problem));
			return;
		}
		take_event(builder, &event);
		yaml_event_delete(&event);
	}
}

/* libyaml names no place for these two, so they are looked for first. */
static bool check_bytes(struct diags *diags, const char *file, const uint8_t *bytes, size_t size)
{
	struct place place = { file, 1, 1 };
	uint32_t rune;

	while (size) {
		size_t used = utf8_decode(bytes, size, &rune);

		if (!used || !rune) {
			diag_add(diags, place,
				 used ? "a NUL byte: this is no text file"
				      : "byte 0x%02x: this is not valid UTF-8",
				 bytes[0]);
			return false;
		}
		place.column++;
		if (rune == '\n')
			place = (struct place){ file, place.line + 1, 1 };
		bytes += used;
		size -= used;
	}
	return true;
}

struct node *node_parse(struct diags *diags, const char *file, const void *bytes, size_t size)
{
	struct builder builder = { .diags = diags, .file = file };
	size_t before = diags->count;
	yaml_parser_t parser;

	if (size > NODE_TEXT_MAX) {
		diag_add(diags, (struct place){ file, 0, 0 },
			 "the file has %zu bytes; a policy has at most %d", size, NODE_TEXT_MAX);
		return NULL;
	}
	if (!check_bytes(diags, file, bytes, size))
		return NULL;
	if (!yaml_parser_initialize(&parser)) {
		diags->arena->has_failed = true;
		return NULL;
	}
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, bytes, size);
	parse_events(&builder, &parser);
	yaml_parser_delete(&parser);
	if (diags->count != before || diags->arena->has_failed)
		return NULL;
	if (!builder.root)
		diag_add(diags, (struct place){ file, 1, 1 },
			 "the file is empty; a policy begins with \"atoll: 1\"");
	return builder.root;
}

const char *node_describe(const struct node *node, char out[80])
{
	if (node->kind == NODE_SCALAR)
		snprintf(out, 80, "\"%.60s%s\"", node->text, strlen(node->text) > 60 ? "…" : "");
	else
		snprintf(out, 80, "%s", node->kind == NODE_LIST ? "a list" : "a mapping");
	return out;
}
