/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge.h"

#include <malloc.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "verify/language.h"

/*
 * Tree-sitter ends the process where malloc() fails, so its memory is counted here, and a parse that takes too much is
 * cancelled before that. Its allocator and the flag are one for the process, which makes one judgement at a time.
 */
static size_t parser_memory, parse_is_cancelled;

static void *counted(void *memory)
{
	parser_memory += malloc_usable_size(memory);
	if (parser_memory > VERIFY_MEMORY_MAX)
		parse_is_cancelled = 1;
	return memory;
}

static void *must_have(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void *parser_malloc(size_t size)
{
	return counted(must_have(malloc(size ? size : 1)));
}

static void *parser_calloc(size_t count, size_t size)
{
	return counted(must_have(calloc(count ? count : 1, size ? size : 1)));
}

static void parser_free(void *memory)
{
	parser_memory -= malloc_usable_size(memory);
	free(memory);
}

static void *parser_realloc(void *memory, size_t size)
{
	parser_memory -= malloc_usable_size(memory);
	return counted(must_have(realloc(memory, size ? size : 1)));
}

uint64_t judge_clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void judgement_init(struct judgement *judgement, unsigned time_ms)
{
	static bool is_set;

	if (!is_set) {
		ts_set_allocator(parser_malloc, parser_calloc, parser_realloc, parser_free);
		is_set = true;
	}
	*judgement = (struct judgement){ .deadline_us = judge_clock_us() + (uint64_t)time_ms * 1000 };
	operations_init(&judgement->operations, &judgement->arena);
}

void judgement_done(struct judgement *judgement)
{
	arena_done(&judgement->arena);
}

/* Where the grammar lost its way first: not always where the fault is, but a place to look at. */
static TSNode first_error(TSNode node)
{
	for (unsigned depth = 0; depth < WALK_DEPTH_MAX; depth++) {
		uint32_t count = ts_node_child_count(node), i;

		if (ts_node_is_missing(node) || node_is(node, "ERROR"))
			return node;
		for (i = 0; i < count; i++) {
			if (ts_node_has_error(ts_node_child(node, i)))
				break;
		}
		if (i == count)
			return node;
		node = ts_node_child(node, i);
	}
	return node;
}

/* NULL and a doubt where time or memory did not do. */
static TSTree *parse(struct walk *walk, const struct language *language)
{
	static TSParser *parsers[LANGUAGE_COUNT]; /* kept: making one costs more than most texts */
	TSParser **parser = &parsers[walk->language];
	uint64_t now = judge_clock_us(), deadline = walk->judgement->deadline_us;
	TSTree *tree = NULL;

	if (!*parser) {
		*parser = ts_parser_new();
		ts_parser_set_cancellation_flag(*parser, &parse_is_cancelled);
		if (!ts_parser_set_language(*parser, language->grammar())) {
			operations_doubt(walk->operations, DOUBT_LANGUAGE, walk->outer);
			return NULL;
		}
	}
	parse_is_cancelled = 0;
	if (now < deadline) {
		ts_parser_set_timeout_micros(*parser, deadline - now);
		tree = ts_parser_parse_string(*parser, NULL, walk->text, walk->size);
	}
	if (!tree) {
		ts_parser_delete(*parser);
		*parser = NULL;
		operations_doubt(walk->operations, parse_is_cancelled ? DOUBT_MEMORY : DOUBT_TIME, walk->outer);
		walk->judgement->is_over = true;
	}
	return tree;
}

void judge_walk(struct walk *walk)
{
	const struct language *language = language_get(walk->language);
	TSTree *tree;
	TSNode root;

	if (!language->grammar) {
		operations_doubt(walk->operations, DOUBT_LANGUAGE, walk->outer);
		return;
	}
	tree = parse(walk, language);
	if (!tree)
		return;
	root = ts_tree_root_node(tree);
	if (ts_node_has_error(root))
		operations_doubt(walk->operations, DOUBT_SYNTAX, walk_span(walk, first_error(root)));
	language->walk(walk, root);
	ts_tree_delete(tree);
}

void judge_text(struct judgement *judgement, enum verify_language language, const char *text, size_t size)
{
	struct walk walk = {
		.judgement = judgement, .operations = &judgement->operations, .language = language, .text = text,
		.size = (uint32_t)size, .outer = { 0, (uint32_t)size }, .is_verbatim = true, .parent = OPERATION_NONE,
	};

	if (!utf8_is_valid(text, size))
		operations_doubt(&judgement->operations, DOUBT_ENCODING, (struct span){ 0, 0 });
	judge_walk(&walk);
}

void judge_command(struct judgement *judgement, const struct word *words, size_t count, struct span span)
{
	struct walk walk = {
		.judgement = judgement, .operations = &judgement->operations, .language = LANGUAGE_SHELL, .text = "",
		.outer = span, .parent = OPERATION_NONE,
	};
	struct command command = { .words = words, .count = count, .span = span };

	walk_command(&walk, &command);
}
