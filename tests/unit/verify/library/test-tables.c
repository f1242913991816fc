/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verify/library/languages.h"
#include "verify/script/text.h"

const TSLanguage *tree_sitter_python(void);
const TSLanguage *tree_sitter_javascript(void);

/* The table is searched by halves: a row that stands in the wrong place is never found. */
static void text_functions_are_sorted(void **state)
{
	for (size_t i = 1; i < text_function_count; i++)
		assert_true(strcmp(text_functions[i - 1].name, text_functions[i].name) < 0);
}

/* A row that names no effect of its kind would be a function that is known and does nothing. */
static bool has_handler(enum effect_kind kind)
{
	return library_file_handlers[kind] || library_process_handlers[kind] || library_code_handlers[kind] ||
	       library_network_handlers[kind];
}

static void every_effect_has_a_handler(void **state)
{
	for (int kind = 0; kind < EFFECT_KIND_COUNT; kind++)
		if (!has_handler((enum effect_kind)kind))
			fail_msg("nothing is made of effect %d", kind);
}

/* A new grammar that calls a node otherwise would make the walker blind to it. */
static void assert_grammar_has(const TSLanguage *language, const struct syntax_kind_name *kinds, size_t count)
{
	assert_true(ts_language_version(language) <= TREE_SITTER_LANGUAGE_VERSION);
	assert_true(ts_language_symbol_count(language) < SYNTAX_SYMBOL_MAX);
	assert_true(ts_language_field_count(language) < SYNTAX_FIELD_MAX);
	for (size_t i = 0; i < count; i++) {
		if (!ts_language_symbol_for_name(language, kinds[i].name, (uint32_t)strlen(kinds[i].name),
						 true))
			fail_msg("the grammar has no \"%s\"", kinds[i].name);
	}
}

static void grammars_have_the_nodes_that_are_looked_for(void **state)
{
	assert_grammar_has(tree_sitter_python(), python_kinds, python_kind_count);
	assert_grammar_has(tree_sitter_javascript(), javascript_kinds, javascript_kind_count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_functions_are_sorted),
		cmocka_unit_test(every_effect_has_a_handler),
		cmocka_unit_test(grammars_have_the_nodes_that_are_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
