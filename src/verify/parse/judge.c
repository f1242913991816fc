/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/parse/judge.h"

#include <string.h>

#include "base/utf8.h"
#include "os/clock.h"
#include "verify/parse/parser-memory.h"

enum { MEND_ROUNDS = 8, PARSE_PATIENCE = 8 };

/* Kept between texts: making one costs more than most texts. One for the process, which makes one judgement
 * at a time. */
static TSParser *parsers[LANGUAGE_COUNT];
static const size_t *parse_is_over;

void judgement_init(struct judgement *judgement, const struct walker *walkers, const struct tables *tables,
		    unsigned time_ms)
{
	parser_memory_use(VERIFY_MEMORY_MAX, &parse_is_over);
	*judgement = (struct judgement){
		.walkers = walkers, .tables = tables, .deadline_ns = clock_computed_ns() + (uint64_t)time_ms * 1000000,
	};
	operations_init(&judgement->operations, &judgement->arena);
}

void judgement_done(struct judgement *judgement)
{
	arena_done(&judgement->arena);
	if (!parser_memory_is_confused())
		return;
	/* What was lost is in no tree any more, and nothing else may be left. */
	for (size_t i = 0; i < LANGUAGE_COUNT; i++) {
		ts_parser_delete(parsers[i]);
		parsers[i] = NULL;
	}
	parser_memory_drop();
}

/* Whether the cursor went to a child that has an error below it, or is one. */
static bool go_to_error(TSTreeCursor *cursor)
{
	if (!ts_tree_cursor_goto_first_child(cursor))
		return false;
	do {
		if (ts_node_has_error(ts_tree_cursor_current_node(cursor)))
			return true;
	} while (ts_tree_cursor_goto_next_sibling(cursor));
	return false;
}

/* Where the grammar lost its way first: not always where the fault is, but a place to look at. */
static TSNode first_error(TSNode root)
{
	TSTreeCursor cursor = ts_tree_cursor_new(root);
	TSNode node = root;

	for (unsigned depth = 0; depth < WALK_DEPTH_MAX; depth++) {
		if (ts_node_is_missing(node) || node_is(node, "ERROR") || !go_to_error(&cursor))
			break;
		node = ts_tree_cursor_current_node(&cursor);
	}
	ts_tree_cursor_delete(&cursor);
	return node;
}

/* NULL and a doubt where time or memory did not do. */
static TSTree *parse(struct walk *walk, const struct walker *walker)
{
	TSParser **parser = &parsers[walk->language];
	uint64_t now = clock_computed_ns(), deadline = walk->judgement->deadline_ns;
	TSTree *tree = NULL;

	if (!*parser) {
		*parser = ts_parser_new();
		ts_parser_set_cancellation_flag(*parser, parse_is_over);
		if (!ts_parser_set_language(*parser, walker->grammar())) {
			operations_doubt(walk->operations, DOUBT_LANGUAGE, walk->outer);
			return NULL;
		}
	}
	parser_memory_use(walk->language == LANGUAGE_SHELL ? VERIFY_SHELL_MEMORY_MAX : VERIFY_MEMORY_MAX,
			  &parse_is_over);
	parser_memory_begin();
	if (now < deadline) {
		/* Tree-sitter looks at the other clock: this is for what hangs. */
		ts_parser_set_timeout_micros(*parser, ((deadline - now) / 1000 + 1) * PARSE_PATIENCE);
		tree = ts_parser_parse_string(*parser, NULL, walk->text, walk->size);
	}
	if (!tree) {
		ts_parser_delete(*parser);
		*parser = NULL;
		operations_doubt(walk->operations, *parse_is_over ? DOUBT_MEMORY : DOUBT_TIME, walk->outer);
		walk->judgement->is_over = true;
	}
	return tree;
}

void judge_walk(struct walk *walk)
{
	const struct walker *walker = &walk->judgement->walkers[walk->language];
	TSTree *tree;
	TSNode root;

	if (!walker->grammar) {
		/* A line of another language beside a command is no program yet. */
		if (!walk->nesting || !walker->walk)
			operations_doubt(walk->operations, DOUBT_LANGUAGE, walk->outer);
		if (walker->walk)
			walker->walk(walk, (TSNode){ .id = NULL });
		return;
	}
	tree = parse(walk, walker);
	/* What is mended may show another place; what cannot be mended in so many rounds is no text that we know. */
	for (int round = 0; tree && walker->mend && round < MEND_ROUNDS && walker->mend(walk, ts_tree_root_node(tree));
	     round++) {
		ts_tree_delete(tree);
		tree = parse(walk, walker);
		if (round + 1 == MEND_ROUNDS)
			operations_doubt(walk->operations, DOUBT_SYNTAX, walk->outer);
	}
	if (!tree)
		return;
	root = ts_tree_root_node(tree);
	if (ts_node_has_error(root))
		operations_doubt(walk->operations, DOUBT_SYNTAX, walk_span(walk, first_error(root)));
	walker->walk(walk, root);
	ts_tree_delete(tree);
}

void judge_text(struct judgement *judgement, enum verify_language language, const char *text, size_t size)
{
	struct walk walk = {
		.judgement = judgement,
		.operations = &judgement->operations,
		.language = language,
		.text = text,
		.size = (uint32_t)size,
		.outer = { 0, (uint32_t)size },
		.is_verbatim = true,
		.parent = OPERATION_NONE,
	};

	if (!utf8_is_valid(text, size) || memchr(text, '\0', size))
		operations_doubt(&judgement->operations, DOUBT_ENCODING, (struct span){ 0, 0 });
	judge_walk(&walk);
}
