/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/parse/judge.h"

#include <string.h>

#include "base/utf8.h"
#include "os/clock.h"
#include "verify/parse/parser-memory.h"

enum {
	MEND_ROUNDS = 8, PARSE_PATIENCE = 8,
	/* How a parser gets its text. Going on, it asks for each chunk two or three times; losing its way, for all of
	 * them again at each byte. So how often it asks is what a parse costs, and the same on any machine. */
	CHUNK_SIZE = 256, READS_MIN = 4096, READS_OF_CHUNK = 48,
	/* ${ in ${: what it costs to give up on them grows with their square. */
	OPEN_PARAMETERS_MAX = 250,
	/* << in one line: all that are open are copied at each word. */
	OPEN_DOCUMENTS_MAX = 250,
	HALVED_SIZE_MAX = 1 << 20,
	/* A program that was put together of many is looked at where it begins and ends. */
	SCRIPT_SIZE_MAX = 4 << 20, SCRIPT_HEAD_SIZE = 256 << 10, SCRIPT_TAIL_SIZE = 64 << 10, PACKED_LINE_SIZE = 500,
};

/* A text while it is parsed. */
struct source {
	const char *text;
	uint32_t size;
	size_t reads, reads_max;
};

/* ENDED: time or memory did not do, and nothing more is looked at. COSTLY: this text alone is not parsed. */
enum parse_result { PARSE_DONE, PARSE_ENDED, PARSE_COSTLY };

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

static const char *read_chunk(void *payload, uint32_t at, TSPoint point, uint32_t *ret_size)
{
	struct source *source = payload;
	uint32_t size = CHUNK_SIZE - at % CHUNK_SIZE;

	(void)point;
	/* The end is what a parser is done with soonest. What it makes of it is thrown away. */
	if (at >= source->size || ++source->reads > source->reads_max) {
		*ret_size = 0;
		return "";
	}
	*ret_size = source->size - at < size ? source->size - at : size;
	return source->text + at;
}

static bool has_too_many_parameters(const struct walk *walk)
{
	const char *at = walk->text;
	unsigned open = 0;

	for (; (at = strpbrk(at, "$}")) && open <= OPEN_PARAMETERS_MAX; at++)
		open += at[0] == '$' && at[1] == '{' ? 1 : at[0] == '}' && open ? -1U : 0;
	return open > OPEN_PARAMETERS_MAX;
}

static bool has_too_many_documents(const struct walk *walk)
{
	unsigned open = 0;

	for (uint32_t i = 1; i < walk->size && open <= OPEN_DOCUMENTS_MAX; i++)
		open = walk->text[i] == '\n' ? 0 : open + (walk->text[i] == '<' && walk->text[i - 1] == '<');
	return open > OPEN_DOCUMENTS_MAX;
}

static TSTree *parse_source(struct walk *walk, TSParser *parser, enum parse_result *ret_result)
{
	struct source source = {
		.text = walk->text, .size = walk->size,
		.reads_max = READS_MIN + (size_t)walk->size / CHUNK_SIZE * READS_OF_CHUNK,
	};
	TSTree *tree = ts_parser_parse(parser, NULL, (TSInput){ .payload = &source, .read = read_chunk,
								.encoding = TSInputEncodingUTF8 });

	if (tree && source.reads > source.reads_max) {
		ts_tree_delete(tree);
		*ret_result = PARSE_COSTLY;
		return NULL;
	}
	*ret_result = tree ? PARSE_DONE : PARSE_ENDED;
	return tree;
}

/* NULL, and a doubt, but for PARSE_DONE. */
static TSTree *parse(struct walk *walk, const struct walker *walker, enum parse_result *ret_result)
{
	TSParser **parser = &parsers[walk->language];
	uint64_t now = clock_computed_ns(), deadline = walk->judgement->deadline_ns;
	TSTree *tree = NULL;

	*ret_result = PARSE_ENDED;
	if (walk->language == LANGUAGE_SHELL && (has_too_many_parameters(walk) || has_too_many_documents(walk))) {
		*ret_result = PARSE_COSTLY;
		return NULL;
	}
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
		tree = parse_source(walk, *parser, ret_result);
	}
	if (!tree && *ret_result == PARSE_ENDED) {
		ts_parser_delete(*parser);
		*parser = NULL;
		operations_doubt(walk->operations, *parse_is_over ? DOUBT_MEMORY : DOUBT_TIME, walk->outer);
		walk->judgement->is_over = true;
	}
	return tree;
}

/* A part of a text as one of its own. */
static void walk_part(struct walk *walk, uint32_t start, uint32_t end)
{
	struct walk part = *walk;

	part.text = arena_text_n(walk->operations->arena, walk->text + start, end - start);
	part.size = end - start;
	part.outer = walk_span_of(walk, start, end);
	part.output = (struct origins){ 0 };
	if (!part.text || walk_is_over(walk))
		return;
	judge_walk(&part);
	origins_join(&walk->output, &part.output);
}

/*
 * A shell runs line by line until it comes to what it does not understand, so that such a place takes away nothing from
 * the lines before: the two halves are looked at each for itself, until what cannot be is one line.
 */
static void walk_halves(struct walk *walk)
{
	const char *middle = walk->text + walk->size / 2, *newline = memchr(middle, '\n', walk->size - walk->size / 2);
	uint32_t cut;

	if (!newline || newline + 1 >= walk->text + walk->size)
		newline = memrchr(walk->text, '\n', walk->size / 2);
	if (walk->language != LANGUAGE_SHELL || !newline || walk->size > HALVED_SIZE_MAX) {
		operations_doubt(walk->operations, DOUBT_TIME, walk->outer);
		return;
	}
	cut = (uint32_t)(newline + 1 - walk->text);
	walk_part(walk, 0, cut);
	walk_part(walk, cut, walk->size);
}

void judge_walk(struct walk *walk)
{
	const struct walker *walker = &walk->judgement->walkers[walk->language];
	enum parse_result result;
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
	tree = parse(walk, walker, &result);
	/* What is mended may show another place; what cannot be mended in so many rounds is no text that we know. */
	for (int round = 0; tree && walker->mend && round < MEND_ROUNDS && walker->mend(walk, ts_tree_root_node(tree));
	     round++) {
		ts_tree_delete(tree);
		tree = parse(walk, walker, &result);
		if (round + 1 == MEND_ROUNDS)
			operations_doubt(walk->operations, DOUBT_SYNTAX, walk->outer);
	}
	if (result == PARSE_COSTLY)
		walk_halves(walk);
	if (!tree)
		return;
	root = ts_tree_root_node(tree);
	if (ts_node_has_error(root))
		operations_doubt(walk->operations, DOUBT_SYNTAX, walk_span(walk, first_error(root)));
	walker->walk(walk, root);
	ts_tree_delete(tree);
}

/* Made short by a program: few lines, so that its names are letters, the same ones in each of its parts. */
static bool is_packed(const char *text)
{
	const char *at = text;
	size_t lines = 0;

	while ((at = memchr(at, '\n', (size_t)(text + SCRIPT_HEAD_SIZE - at))) && ++at < text + SCRIPT_HEAD_SIZE)
		lines++;
	return lines < SCRIPT_HEAD_SIZE / PACKED_LINE_SIZE;
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
	const char *tail;

	if (!utf8_is_valid(text, size) || memchr(text, '\0', size))
		operations_doubt(&judgement->operations, DOUBT_ENCODING, (struct span){ 0, 0 });
	if (size <= SCRIPT_SIZE_MAX || (language != LANGUAGE_PYTHON && language != LANGUAGE_JAVASCRIPT)) {
		judge_walk(&walk);
		return;
	}
	operations_doubt(&judgement->operations, DOUBT_SIZE, (struct span){ SCRIPT_HEAD_SIZE, SCRIPT_HEAD_SIZE });
	judgement->is_bundle = is_packed(text);
	walk_part(&walk, 0, SCRIPT_HEAD_SIZE);
	/* From the begin of a line: in the middle of one a parser finds its way with much effort only. */
	tail = memchr(text + size - SCRIPT_TAIL_SIZE, '\n', SCRIPT_TAIL_SIZE);
	if (tail)
		walk_part(&walk, (uint32_t)(tail + 1 - text), (uint32_t)size);
}
