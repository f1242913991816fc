/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/parse/syntax.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

/* Both grammars' names of fields; those that are not here are of no interest. */
static const struct {
	const char *name;
	enum syntax_field field;
} field_names[] = {
	{ "left", FIELD_TARGET },	    { "name", FIELD_TARGET },
	{ "right", FIELD_VALUE },	    { "value", FIELD_VALUE },
	{ "object", FIELD_VALUE },	    { "definition", FIELD_VALUE },
	{ "declaration", FIELD_VALUE },	    { "expression", FIELD_VALUE },
	{ "argument", FIELD_VALUE },	    { "key", FIELD_KEY },
	{ "attribute", FIELD_MEMBER },	    { "property", FIELD_MEMBER },
	{ "subscript", FIELD_INDEX },	    { "index", FIELD_INDEX },
	{ "function", FIELD_FUNCTION },	    { "constructor", FIELD_FUNCTION },
	{ "arguments", FIELD_ARGUMENTS },   { "operator", FIELD_OPERATOR },
	{ "operators", FIELD_OPERATOR },    { "initializer", FIELD_INITIALIZER },
	{ "increment", FIELD_INCREMENT },   { "superclasses", FIELD_NONE },
	{ "condition", FIELD_CONDITION },   { "body", FIELD_BODY },
	{ "consequence", FIELD_BODY },	    { "alternative", FIELD_ELSE },
	{ "parameters", FIELD_PARAMETERS }, { "parameter", FIELD_PARAMETERS },
	{ "alias", FIELD_ALIAS },	    { "module_name", FIELD_SOURCE },
	{ "source", FIELD_SOURCE },
};

void syntax_map_make(struct syntax_map *map, const TSLanguage *language, const struct syntax_kind_name *rows,
		     size_t count)
{
	uint32_t symbols = ts_language_symbol_count(language);
	uint32_t fields = ts_language_field_count(language);

	*map = (struct syntax_map){ .is_made = true };
	for (uint32_t s = 0; s < symbols && s < SYNTAX_SYMBOL_MAX; s++) {
		const char *name = ts_language_symbol_name(language, (TSSymbol)s);

		for (size_t i = 0; i < count; i++)
			if (str_equal(rows[i].name, name))
				map->kinds[s] = rows[i].kind;
	}
	for (uint32_t f = 1; f <= fields && f < SYNTAX_FIELD_MAX; f++) {
		const char *name = ts_language_field_name_for_id(language, (TSFieldId)f);

		for (size_t i = 0; i < ARRAY_SIZE(field_names); i++)
			if (str_equal(field_names[i].name, name))
				map->fields[f] = field_names[i].field;
	}
}

/* The way from the root to where the walk is: each node kept, and its last child so far. */
struct path {
	struct step {
		uint32_t node, last;
	} * steps;
	uint32_t count, capacity;
};

static bool path_push(struct path *path, uint32_t node)
{
	if (path->count == path->capacity) {
		uint32_t capacity = path->capacity ? path->capacity * 2 : 256;
		struct step *steps = realloc(path->steps, capacity * sizeof *steps);

		if (!steps)
			return false;
		path->steps = steps;
		path->capacity = capacity;
	}
	path->steps[path->count++] = (struct step){ .node = node };
	return true;
}

static bool has_room(struct syntax *syntax)
{
	uint32_t capacity = syntax->capacity ? syntax->capacity * 2 : 512;
	struct syntax_node *nodes;

	if (syntax->count < syntax->capacity)
		return true;
	if (capacity > SYNTAX_NODE_MAX)
		capacity = SYNTAX_NODE_MAX;
	if (syntax->count >= capacity)
		return false;
	nodes = realloc(syntax->nodes, capacity * sizeof *nodes);
	if (!nodes)
		return false;
	syntax->nodes = nodes;
	syntax->capacity = capacity;
	return true;
}

/* Whether the cursor's node is one that is kept. Of what has no name only operators are. */
static bool is_kept(const struct syntax_map *map, TSNode node, enum syntax_field field)
{
	TSSymbol symbol = ts_node_symbol(node);

	if (!ts_node_is_named(node))
		return field == FIELD_OPERATOR;
	return symbol >= SYNTAX_SYMBOL_MAX || map->kinds[symbol] != NODE_SKIP;
}

static void add_node(struct syntax *syntax, const struct syntax_map *map, struct path *path, TSNode node,
		     enum syntax_field field)
{
	TSSymbol symbol = ts_node_symbol(node);
	uint32_t at = syntax->count++;
	struct syntax_node *made = &syntax->nodes[at];

	*made = (struct syntax_node){
		.start = ts_node_start_byte(node),
		.end = ts_node_end_byte(node),
		.field = field,
		.symbol = symbol,
		.kind = symbol < SYNTAX_SYMBOL_MAX ? map->kinds[symbol] : NODE_OTHER,
	};
	if (symbol == (TSSymbol)-1 || ts_node_is_missing(node)) {
		made->kind = NODE_ERROR;
		syntax->has_error = true;
	}
	if (path->count) {
		struct step *step = &path->steps[path->count - 1];

		made->parent = step->node;
		if (step->last)
			syntax->nodes[step->last].next = at;
		else
			syntax->nodes[step->node].first = at;
		step->last = at;
	}
}

/* Goes to what comes behind the cursor's node and is not below it. False at the end of the tree. */
static bool go_behind(TSTreeCursor *cursor, struct path *path)
{
	while (!ts_tree_cursor_goto_next_sibling(cursor)) {
		if (!ts_tree_cursor_goto_parent(cursor))
			return false;
		path->count--;
	}
	return true;
}

/* What the grammar did not understand has no fields, and asking for them costs as much as there is of it. */
static bool in_error(const struct syntax *syntax, const struct path *path)
{
	return path->count && syntax->nodes[path->steps[path->count - 1].node].kind == NODE_ERROR;
}

static void copy_tree(struct syntax *syntax, TSTreeCursor *cursor, const struct syntax_map *map,
		      struct path *path)
{
	for (;;) {
		TSNode node = ts_tree_cursor_current_node(cursor);
		TSFieldId id = in_error(syntax, path) ? 0 : ts_tree_cursor_current_field_id(cursor);
		enum syntax_field field = id < SYNTAX_FIELD_MAX ? map->fields[id] : FIELD_NONE;

		if (is_kept(map, node, field)) {
			uint32_t at = syntax->count;

			if (!has_room(syntax)) {
				syntax->is_cut = true;
				return;
			}
			add_node(syntax, map, path, node, field);
			if (path->count + 1 > syntax->depth)
				syntax->depth = path->count + 1;
			if (ts_tree_cursor_goto_first_child(cursor)) {
				if (!path_push(path, at)) {
					syntax->is_cut = true;
					return;
				}
				continue;
			}
		}
		if (!go_behind(cursor, path))
			return;
	}
}

int syntax_build(struct syntax *syntax, TSNode root, const struct syntax_map *map, const char *text,
		 size_t size)
{
	TSTreeCursor cursor = ts_tree_cursor_new(root);
	struct path path = { 0 };

	*syntax = (struct syntax){ .text = text, .size = size };
	copy_tree(syntax, &cursor, map, &path);
	ts_tree_cursor_delete(&cursor);
	free(path.steps);
	return syntax->count ? 0 : -ENOMEM;
}

void syntax_done(struct syntax *syntax)
{
	free(syntax->nodes);
	*syntax = (struct syntax){ 0 };
}

uint32_t syntax_child(const struct syntax *syntax, uint32_t node, enum syntax_field field)
{
	uint32_t child = syntax->nodes[node].first;

	while (child && syntax->nodes[child].field != field)
		child = syntax->nodes[child].next;
	return child;
}

uint32_t syntax_child_kind(const struct syntax *syntax, uint32_t node, enum syntax_kind kind)
{
	uint32_t child = syntax->nodes[node].first;

	while (child && syntax->nodes[child].kind != kind)
		child = syntax->nodes[child].next;
	return child;
}

uint32_t syntax_last(const struct syntax *syntax, uint32_t node)
{
	uint32_t last = 0;

	for (uint32_t child = syntax->nodes[node].first; child; child = syntax->nodes[child].next)
		last = child;
	return last;
}

uint32_t syntax_behind(const struct syntax *syntax, uint32_t node)
{
	while (node && !syntax->nodes[node].next)
		node = syntax->nodes[node].parent;
	return node ? syntax->nodes[node].next : syntax->count;
}
