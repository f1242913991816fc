/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is JavaScript's own: how its grammar's nodes are called, how modules come in, and what leads to
 * functions by other ways than their names.
 */

#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/library/languages.h"
#include "verify/script/expression.h"
#include "verify/script/text.h"

const TSLanguage *tree_sitter_javascript(void);

enum { SIGNS_MIN = 40 };

const struct syntax_kind_name javascript_kinds[] = {
	{ "arguments", NODE_ARGUMENTS },
	{ "array", NODE_LIST },
	{ "array_pattern", NODE_LIST },
	{ "arrow_function", NODE_FUNCTION },
	{ "assignment_expression", NODE_ASSIGN },
	{ "assignment_pattern", NODE_DEFAULT },
	{ "augmented_assignment_expression", NODE_AUGMENT },
	{ "await_expression", NODE_SAME },
	{ "binary_expression", NODE_BINARY },
	{ "break_statement", NODE_LEAVE },
	{ "call_expression", NODE_CALL },
	{ "catch_clause", NODE_BRANCH },
	{ "class", NODE_CLASS },
	{ "class_body", NODE_BLOCK },
	{ "class_declaration", NODE_CLASS },
	{ "class_static_block", NODE_BLOCK },
	{ "comment", NODE_SKIP },
	{ "computed_property_name", NODE_SAME },
	{ "do_statement", NODE_LOOP },
	{ "else_clause", NODE_BRANCH },
	{ "empty_statement", NODE_SKIP },
	{ "escape_sequence", NODE_SKIP },
	{ "export_statement", NODE_SAME },
	{ "expression_statement", NODE_SAME },
	{ "false", NODE_FALSE },
	{ "field_definition", NODE_DECLARE },
	{ "finally_clause", NODE_BLOCK },
	{ "for_in_statement", NODE_EACH },
	{ "for_statement", NODE_LOOP },
	{ "formal_parameters", NODE_PARAMETERS },
	{ "function_declaration", NODE_FUNCTION },
	{ "function_expression", NODE_FUNCTION },
	{ "generator_function", NODE_FUNCTION },
	{ "generator_function_declaration", NODE_FUNCTION },
	{ "hash_bang_line", NODE_SKIP },
	{ "html_comment", NODE_SKIP },
	{ "identifier", NODE_NAME },
	{ "if_statement", NODE_IF },
	{ "import", NODE_NAME },
	{ "import_statement", NODE_IMPORT },
	{ "labeled_statement", NODE_BLOCK },
	{ "lexical_declaration", NODE_BLOCK },
	{ "member_expression", NODE_MEMBER },
	{ "method_definition", NODE_FUNCTION },
	{ "new_expression", NODE_NEW },
	{ "null", NODE_NONE },
	{ "number", NODE_NUMBER },
	{ "object", NODE_MAP },
	{ "object_assignment_pattern", NODE_DEFAULT },
	{ "object_pattern", NODE_MAP },
	{ "optional_chain", NODE_SKIP },
	{ "pair", NODE_PAIR },
	{ "pair_pattern", NODE_PAIR },
	{ "parenthesized_expression", NODE_SAME },
	{ "private_property_identifier", NODE_KEY },
	{ "program", NODE_BLOCK },
	{ "property_identifier", NODE_KEY },
	{ "regex", NODE_NONE },
	{ "rest_pattern", NODE_SPREAD },
	{ "return_statement", NODE_RETURN },
	{ "sequence_expression", NODE_SAME },
	{ "shorthand_property_identifier", NODE_SHORT },
	{ "shorthand_property_identifier_pattern", NODE_SHORT },
	{ "spread_element", NODE_SPREAD },
	{ "statement_block", NODE_BLOCK },
	{ "statement_identifier", NODE_SKIP },
	{ "string", NODE_TEXT },
	{ "string_fragment", NODE_SKIP },
	{ "subscript_expression", NODE_INDEX },
	{ "super", NODE_NAME },
	{ "switch_case", NODE_BRANCH },
	{ "switch_default", NODE_BRANCH },
	{ "template_string", NODE_TEXT },
	{ "template_substitution", NODE_PART },
	{ "ternary_expression", NODE_CHOICE },
	{ "this", NODE_THIS },
	{ "throw_statement", NODE_LEAVE },
	{ "true", NODE_TRUE },
	{ "unary_expression", NODE_UNARY },
	{ "undefined", NODE_NONE },
	{ "update_expression", NODE_AUGMENT },
	{ "variable_declaration", NODE_BLOCK },
	{ "variable_declarator", NODE_DECLARE },
	{ "while_statement", NODE_LOOP },
	{ "yield_expression", NODE_RETURN },
};
const size_t javascript_kind_count = ARRAY_SIZE(javascript_kinds);

static const char *const globals[] = { "global", "globalThis", "root", "self", "top", "window" };

static bool is_global(const char *name)
{
	return names_find(globals, ARRAY_SIZE(globals), name) >= 0;
}

static const struct value *text(struct script *script, uint32_t node)
{
	const struct syntax_node *at = &script->syntax.nodes[node];

	if (at->end - at->start < 2)
		return value_text(script->arena, "", 0, 0);
	return text_literal(script, node, at->start + 1, at->end - 1, false);
}

/* #!/usr/bin/env zx */
static bool is_zx(const struct script *script)
{
	const char *end = memchr(script->syntax.text, '\n', script->syntax.size);

	return end && end - script->syntax.text > 4 && memcmp(script->syntax.text, "#!", 2) == 0 &&
	       memcmp(end - 2, "zx", 2) == 0;
}

static const struct value *unbound(struct script *script, const char *name, uint32_t node)
{
	if (str_equal(name, "$") && is_zx(script))
		return value_named(script->arena, "zx.$");
	if (str_equal(name, "cd") && is_zx(script))
		return value_named(script->arena, "process.chdir");
	return is_global(name) ? value_named(script->arena, "globalThis") : script_named(script, name);
}

/* The name of a module without what says that it is Node's own; "" for files of the project. */
static const char *module_name(struct script *script, uint32_t source)
{
	uint32_t size;
	const struct value *value = source ? script_value(script, source) : &value_nothing;
	const char *name = value_is_exact(value) ? value_chars(script->arena, value, &size) : "";

	if (str_has_prefix(name, "node:"))
		name += strlen("node:");
	return *name == '.' || *name == '/' ? "" : name;
}

static void import_names(struct script *script, uint32_t names, const struct value *module)
{
	const struct syntax *syntax = &script->syntax;

	for (uint32_t at = syntax->nodes[names].first; at; at = syntax->nodes[at].next) {
		uint32_t name = syntax_child(syntax, at, FIELD_TARGET),
			 alias = syntax_child(syntax, at, FIELD_ALIAS);

		if (name)
			script_declare(script, script_text(script, alias ? alias : name),
				       module->name
					       ? script_member(script, module, script_text(script, name), at)
					       : &value_nothing);
	}
}

/* import d, {a as b} from "m"; import * as n from "m" */
static void import(struct script *script, uint32_t node)
{
	const struct syntax *syntax = &script->syntax;
	const char *name = module_name(script, syntax_child(syntax, node, FIELD_SOURCE));
	const struct value *module = *name ? script_named(script, name) : &value_nothing;
	uint32_t clause = syntax_child_kind(syntax, node, NODE_OTHER);

	for (uint32_t at = clause ? syntax->nodes[clause].first : 0; at; at = syntax->nodes[at].next) {
		uint32_t inner = syntax->nodes[at].first;

		if (syntax->nodes[at].kind == NODE_NAME)
			script_declare(script, script_text(script, at), module);
		else if (inner && syntax->nodes[inner].kind == NODE_NAME && !syntax->nodes[inner].next)
			script_declare(script, script_text(script, inner), module);
		else
			import_names(script, at, module);
	}
}

/* x.constructor is the maker of x, whose own maker is Function: code from text. */
static const struct value *constructor_of(struct script *script, const struct value *object)
{
	if (object->kind == VALUE_FUNCTION || (object->name && str_has_suffix(object->name, "(constructor)")))
		return value_named(script->arena, "Function");
	return object->name ? NULL : value_named(script->arena, "(constructor)");
}

static const struct value *member(struct script *script, const struct value *object, const char *name)
{
	if (str_equal(name, "constructor"))
		return constructor_of(script, object);
	if (str_equal(name, "length") && value_is_exact(object))
		return value_number(script->arena, object->size);
	if (str_equal(name, "length") && object->kind == VALUE_LIST && !object->is_cut)
		return value_number(script->arena, object->count);
	if (!object->name)
		return NULL;
	if (str_equal(object->name, "path") && str_equal(name, "sep"))
		return value_text(script->arena, "/", 1, 0);
	if (is_global(object->name))
		return unbound(script, name, 0);
	if (str_equal(name, "default") || str_equal(name, "__proto__"))
		return object;
	if (str_equal(object->name, "process") && str_equal(name, "argv"))
		return value_with_flags(script->arena, value_named(script->arena, "process.argv"),
					WORD_FROM_INPUT);
	if (str_equal(object->name, "process") && str_equal(name, "execPath"))
		return value_text(script->arena, "node", strlen("node"), 0);
	return NULL;
}

static const struct script_language language = {
	.language = LANGUAGE_JAVASCRIPT,
	.library = &library_ops,
	.handlers = expression_handlers,
	.text = text,
	.import = import,
	.unbound = unbound,
	.member = member,
	.arguments = "process.argv",
	.environment = "process.env",
	.index_is_member = true,
	.assigns_outward = true,
};

/* [][(![]+[])[+[]]+…: a program of six signs alone. */
static void note_signs(struct walk *walk)
{
	size_t start = 0, end;
	uint32_t index;

	for (; start < walk->size; start = end + 1) {
		end = start;
		while (end < walk->size && walk->text[end] && strchr("[]()!+", walk->text[end]))
			end++;
		if (end - start < SIGNS_MIN || !memmem(walk->text + start, end - start, "![]", 3))
			continue;
		index = walk_add(walk, OP_EVALUATE, walk->outer, 0);
		operations_add_word(walk->operations, index,
				    &(struct word){ .text = "[]", .size = 2, .flags = WORD_OBSCURED });
		return;
	}
}

void walk_javascript(struct walk *walk, TSNode root)
{
	static struct syntax_map map;

	if (!map.is_made)
		syntax_map_make(&map, tree_sitter_javascript(), javascript_kinds, javascript_kind_count);
	note_signs(walk);
	script_walk(walk, root, &language, &map);
}
