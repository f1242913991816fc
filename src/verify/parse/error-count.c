/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/parse/error-count.h"

#include <stdbool.h>
#include <stdint.h>

#include "verify/parse/parser-memory.h"

/* Of the grammars' own sources: the layout of a TSLanguage. It has a type that the installed tree-sitter has not. */
typedef uint16_t TSStateId;
#include <tree_sitter/parser.h>

enum {
	LAYOUT = 14,
	/* What an error costs, next to bytes that are copied: 5 to 20 microseconds each. */
	ERROR_COST = 12 << 10,
	/* What a scanner keeps of open here-documents is read anew at each step; so much of it costs nothing. */
	STATE_FREE = 64, STATE_COST = 40,
};

static TSLanguage counted[LANGUAGE_COUNT];
static const TSLanguage *current;

/* What the scanner may find where a parser has lost its way is a row of its own in the grammar's table. */
static bool scan(void *payload, TSLexer *lexer, const bool *wanted)
{
	size_t row = current->lex_modes[0].external_lex_state;
	bool is_error = wanted == current->external_scanner.states + row * current->external_token_count;

	if (is_error)
		parser_memory_spend(ERROR_COST);
	return current->external_scanner.scan(payload, lexer, wanted);
}

static void deserialize(void *payload, const char *state, unsigned size)
{
	if (size > STATE_FREE)
		parser_memory_spend((size_t)size * STATE_COST);
	current->external_scanner.deserialize(payload, state, size);
}

const TSLanguage *error_count_grammar(enum verify_language language, const TSLanguage *grammar)
{
	if (ts_language_version(grammar) != LAYOUT || !grammar->external_scanner.scan)
		return grammar;
	current = grammar;
	counted[language] = *grammar;
	counted[language].external_scanner.scan = scan;
	counted[language].external_scanner.deserialize = deserialize;
	return &counted[language];
}
