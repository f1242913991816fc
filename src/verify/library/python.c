/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is Python's own: how its grammar's nodes are called, how strings are written, what imports mean, and
 * what the tricks lead to that reach a function by other ways than its name.
 */

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/library/languages.h"
#include "verify/script/expression.h"
#include "verify/script/text.h"

const TSLanguage *tree_sitter_python(void);

const struct syntax_kind_name python_kinds[] = {
	{ "aliased_import", NODE_AS },
	{ "argument_list", NODE_ARGUMENTS },
	{ "as_pattern", NODE_AS },
	{ "as_pattern_target", NODE_SAME },
	{ "assignment", NODE_DECLARE },
	{ "attribute", NODE_MEMBER },
	{ "augmented_assignment", NODE_AUGMENT },
	{ "await", NODE_SAME },
	{ "binary_operator", NODE_BINARY },
	{ "block", NODE_BLOCK },
	{ "boolean_operator", NODE_BINARY },
	{ "break_statement", NODE_LEAVE },
	{ "call", NODE_CALL },
	{ "case_clause", NODE_BRANCH },
	{ "case_pattern", NODE_SKIP },
	{ "class_definition", NODE_CLASS },
	{ "comment", NODE_SKIP },
	{ "comparison_operator", NODE_COMPARE },
	{ "concatenated_string", NODE_TEXTS },
	{ "conditional_expression", NODE_CHOICE },
	{ "decorated_definition", NODE_SAME },
	{ "default_parameter", NODE_DEFAULT },
	{ "dictionary", NODE_MAP },
	{ "dictionary_comprehension", NODE_COMPREHENSION },
	{ "dictionary_splat", NODE_SPREAD_MAP },
	{ "dictionary_splat_pattern", NODE_SPREAD_MAP },
	{ "elif_clause", NODE_IF },
	{ "else_clause", NODE_BRANCH },
	{ "except_clause", NODE_BRANCH },
	{ "except_group_clause", NODE_BRANCH },
	{ "expression_list", NODE_LIST },
	{ "expression_statement", NODE_SAME },
	{ "false", NODE_FALSE },
	{ "finally_clause", NODE_BLOCK },
	{ "float", NODE_NUMBER },
	{ "for_in_clause", NODE_FOR_IN },
	{ "for_statement", NODE_EACH },
	{ "format_specifier", NODE_SKIP },
	{ "function_definition", NODE_FUNCTION },
	{ "generator_expression", NODE_COMPREHENSION },
	{ "global_statement", NODE_GLOBAL },
	{ "identifier", NODE_NAME },
	{ "if_statement", NODE_IF },
	{ "import_from_statement", NODE_IMPORT_FROM },
	{ "import_statement", NODE_IMPORT },
	{ "integer", NODE_NUMBER },
	{ "interpolation", NODE_PART },
	{ "keyword_argument", NODE_KEYWORD },
	{ "lambda", NODE_FUNCTION },
	{ "lambda_parameters", NODE_PARAMETERS },
	{ "line_continuation", NODE_SKIP },
	{ "list", NODE_LIST },
	{ "list_comprehension", NODE_COMPREHENSION },
	{ "list_pattern", NODE_LIST },
	{ "list_splat", NODE_SPREAD },
	{ "list_splat_pattern", NODE_SPREAD },
	{ "module", NODE_BLOCK },
	{ "named_expression", NODE_DECLARE },
	{ "none", NODE_NONE },
	{ "nonlocal_statement", NODE_GLOBAL },
	{ "pair", NODE_PAIR },
	{ "parameters", NODE_PARAMETERS },
	{ "parenthesized_expression", NODE_SAME },
	{ "parenthesized_list_splat", NODE_SAME },
	{ "pattern_list", NODE_LIST },
	{ "raise_statement", NODE_LEAVE },
	{ "return_statement", NODE_RETURN },
	{ "set", NODE_LIST },
	{ "set_comprehension", NODE_COMPREHENSION },
	{ "slice", NODE_SLICE },
	{ "string", NODE_TEXT },
	{ "string_content", NODE_SKIP },
	{ "string_end", NODE_SKIP },
	{ "string_start", NODE_SKIP },
	{ "subscript", NODE_INDEX },
	{ "true", NODE_TRUE },
	{ "tuple", NODE_LIST },
	{ "tuple_pattern", NODE_LIST },
	{ "type", NODE_SKIP },
	{ "type_conversion", NODE_SKIP },
	{ "type_parameter", NODE_SKIP },
	{ "typed_default_parameter", NODE_DEFAULT },
	{ "unary_operator", NODE_UNARY },
	{ "while_statement", NODE_LOOP },
	{ "wildcard_import", NODE_WILDCARD },
	{ "yield", NODE_RETURN },
};
const size_t python_kind_count = ARRAY_SIZE(python_kinds);

/* The quotes' size and the prefix's say where the content is. */
static const struct value *text(struct script *script, uint32_t node)
{
	const struct syntax_node *at = &script->syntax.nodes[node];
	const char *bytes = script->syntax.text;
	uint32_t start = at->start,
		 end = at->end > script->syntax.size ? (uint32_t)script->syntax.size : at->end, quotes = 1;
	bool is_raw = false;

	for (; start < end && isalpha((unsigned char)bytes[start]); start++)
		is_raw |= tolower((unsigned char)bytes[start]) == 'r';
	if (end - start >= 6 && bytes[start] == bytes[start + 1] && bytes[start] == bytes[start + 2])
		quotes = 3;
	if (end - start < 2 * quotes)
		return value_text(script->arena, "", 0, 0);
	return text_literal(script, node, start + quotes, end - quotes, is_raw);
}

static const struct value *unbound(struct script *script, const char *name, uint32_t node)
{
	if (str_equal(name, "__file__"))
		return value_named(script->arena, "__file__");
	if (str_equal(name, "__builtins__"))
		return value_named(script->arena, "builtins");
	return script_named(script, name);
}

/* What importing a dotted name gives: `import a.b` binds a. */
static void import_one(struct script *script, uint32_t node)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t alias = 0, name = node;
	const char *dotted;
	char *first;

	if (syntax->nodes[node].kind == NODE_AS) {
		alias = syntax_child(syntax, node, FIELD_ALIAS);
		name = syntax_child(syntax, node, FIELD_TARGET);
	}
	if (!name)
		return;
	dotted = script_text(script, name);
	if (alias) {
		script_declare(script, script_text(script, alias), script_named(script, dotted));
		return;
	}
	first = arena_text_n(script->arena, dotted, strcspn(dotted, "."));
	if (first)
		script_declare(script, first, script_named(script, first));
}

/* `from module import *`: all names of the module that rows are of become variables. */
static void import_all(struct script *script, const char *module)
{
	size_t size = strlen(module);

	for (size_t i = 0; i < script->tables->calls.count; i++) {
		const char *name = ((const struct effect *)script->tables->calls.items)[i].name;

		if (strncmp(name, module, size) == 0 && name[size] == '.' && !strpbrk(name + size + 1, ".("))
			script_declare(script, name + size + 1, script_named(script, name));
	}
}

static void import_from(struct script *script, uint32_t node)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t source = syntax_child(syntax, node, FIELD_SOURCE);
	const char *module = source ? script_text(script, source) : "";

	for (uint32_t at = syntax->nodes[node].first; at; at = syntax->nodes[at].next) {
		uint32_t name = at, alias = 0;
		const char *text;

		if (syntax->nodes[at].field != FIELD_TARGET)
			continue;
		if (syntax->nodes[at].kind == NODE_AS) {
			alias = syntax_child(syntax, at, FIELD_ALIAS);
			name = syntax_child(syntax, at, FIELD_TARGET);
		}
		if (!name)
			continue;
		text = script_text(script, name);
		/* What another file of the project defines is not known here. */
		script_declare(
			script, alias ? script_text(script, alias) : text,
			*module == '.' || !*module
				? &value_nothing
				: script_named(script, value_name_join(script->arena, module, ".", text)));
	}
	if (syntax_child_kind(syntax, node, NODE_WILDCARD))
		import_all(script, module);
}

static void import(struct script *script, uint32_t node)
{
	const struct syntax *syntax = &script->syntax;

	if (syntax->nodes[node].kind == NODE_IMPORT_FROM) {
		import_from(script, node);
		return;
	}
	for (uint32_t at = syntax->nodes[node].first; at; at = syntax->nodes[at].next)
		import_one(script, at);
}

static const struct value *member(struct script *script, const struct value *object, const char *name)
{
	if (!object->name)
		return NULL;
	/* builtins.eval is eval. */
	if (str_equal(object->name, "builtins"))
		return str_equal(name, "__dict__") ? value_named(script->arena, "globals()")
						   : script_named(script, name);
	if (str_equal(name, "__dict__"))
		return value_with_name(script->arena, object,
				       value_name_join(script->arena, object->name, ".", "__dict__"));
	if (str_equal(object->name, "sys") && str_equal(name, "argv"))
		return value_with_flags(script->arena, value_named(script->arena, "sys.argv"),
					WORD_FROM_INPUT);
	if (str_equal(object->name, "sys") && str_equal(name, "executable"))
		return value_text(script->arena, "python3", strlen("python3"), 0);
	if (str_equal(name, "sep") && (str_equal(object->name, "os") || str_equal(object->name, "os.path")))
		return value_text(script->arena, "/", 1, 0);
	if (str_equal(object->name, "stat") && str_equal(name, "S_ISUID"))
		return value_with_name(script->arena, value_number(script->arena, 04000), "stat.S_ISUID");
	if (str_equal(object->name, "stat") && str_equal(name, "S_ISGID"))
		return value_with_name(script->arena, value_number(script->arena, 02000), "stat.S_ISGID");
	if (str_equal(name, "__globals__"))
		return value_named(script->arena, "globals()");
	if (str_equal(name, "__call__"))
		return object;
	/* Parts of a path are texts, but no longer the path. */
	if (object->kind == VALUE_TEXT &&
	    (str_equal(name, "name") || str_equal(name, "stem") || str_equal(name, "suffix")))
		return value_taint(script->arena, object);
	return NULL;
}

/* globals()["os"], sys.modules["os"], vars(os)["system"], os.__dict__["system"] */
static const struct value *find_index(struct script *script, const struct value *object, const char *key)
{
	static const char *const tables[] = { "globals()", "locals()", "sys.modules", "vars()" };
	const char *name = object->name;
	const struct value *value;
	char *module;

	if (!name || !key)
		return NULL;
	if (str_equal(name, "vars()") && object->subject)
		return script_member(script, object->subject, key, 0);
	if (names_find(tables, ARRAY_SIZE(tables), name) >= 0) {
		value = script_lookup(script, key);
		return value ? value : unbound(script, key, 0);
	}
	if (!str_has_suffix(name, ".__dict__"))
		return NULL;
	module = arena_text_n(script->arena, name, strlen(name) - strlen(".__dict__"));
	return module ? script_member(script, script_named(script, module), key, 0) : NULL;
}

static const struct script_language language = {
	.language = LANGUAGE_PYTHON,
	.library = &library_ops,
	.handlers = expression_handlers,
	.text = text,
	.import = import,
	.unbound = unbound,
	.member = member,
	.index = find_index,
	.arguments = "sys.argv",
	.environment = "os.environ",
};

void walk_python(struct walk *walk, TSNode root)
{
	static struct syntax_map map;

	if (!map.is_made)
		syntax_map_make(&map, tree_sitter_python(), python_kinds, python_kind_count);
	script_walk(walk, root, &language, &map);
}
