/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The memory of tree-sitter: bounded, and proof against a fault of it. It ends the process where malloc()
 * fails, so what it takes is counted, and a flag that it looks at is set before that. And it counts the
 * children of a node in 16 bits (0.20.7): for a text that it cannot parse with more than 65,535 tokens in one
 * place it frees an address inside of a block. So each block has a mark, what has none is not freed, and all
 * that is left over can be freed at once. One for the process.
 */

#include <stdbool.h>
#include <stddef.h>

/* Makes tree-sitter use it. max: bytes beyond which *ret_is_over becomes 1. Any number of times. */
void parser_memory_use(size_t max, const size_t **ret_is_over);

/*
 * Before a parse: *is_over is 0 again unless there is still too much. max: bytes that the parse may ask for in all,
 * also where they are given back. A parser that lost its way copies what it has at each step, and this counts it.
 */
void parser_memory_begin(size_t max);

/* Counts something else that a parse costs, in bytes, as if it had asked for them. */
void parser_memory_spend(size_t bytes);

/* What was asked for since then. */
size_t parser_memory_spent(void);

/* Whether something was freed that is none of its blocks since parser_memory_drop(). */
bool parser_memory_is_confused(void);

/* Frees all: no parser and no tree is in use, or will be. */
void parser_memory_drop(void);

/* What tree-sitter holds now, in bytes, with the marks of its blocks: for tests of leaks. */
size_t parser_memory_size(void);
