/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Grammars whose errors are counted. At each byte that it cannot parse, tree-sitter tries every state against every
 * token, which takes no memory and much time. It then asks the grammar's scanner for what may stand
 * anywhere, which it does at no other time. Only in atoll-verify.
 */

#include <tree_sitter/api.h>

#include "verify/model/language.h"

/*
 * The same grammar, kept for the life of the process, whose errors parser_memory_spend() counts; or the grammar itself
 * where it has no scanner, or another layout than is known here. One of them is used at a time: the last one asked for.
 */
const TSLanguage *error_count_grammar(enum verify_language language, const TSLanguage *grammar);
