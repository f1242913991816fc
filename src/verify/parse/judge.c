/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/parse/judge.h"

#include <string.h>

#include "base/utf8.h"
#include "os/clock.h"
#include "verify/parse/error-count.h"
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
	/*
	 * What a parse may ask for of memory in all, by the size of its text. Real texts ask for 20 to 90 bytes each
	 * byte; a parser that lost its way copies all that it has at each step.
	 */
	SPENT_MIN = 1 << 20, SPENT_OF_BYTE = 200, READ_COST = 2 << 10,
	/* A text that is not parsed for what it costs is cut into so many, down to this size. */
	PIECES = 8, PIECE_SIZE_MIN = 256,
	/* What is looked at of a text at its end where a bound was hit before. */
	LAST_SIZE = 4 << 10, LAST_SPENT = 6 << 20, LAST_MEMORY = 4 << 20, LAST_LOOKS = 50000,
	/* A long text, and a program that was put together of many, is looked at where it begins and ends. */
	SCRIPT_SIZE_MAX = 256 << 10, SCRIPT_HEAD_SIZE = 176 << 10, SCRIPT_TAIL_SIZE = 48 << 10, PACKED_LINE_SIZE = 500,
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
	parser_memory_use(VERIFY_PARSERS_MAX, &parse_is_over);
	*judgement = (struct judgement){
		.walkers = walkers, .tables = tables, .deadline_ns = clock_computed_ns() + (uint64_t)time_ms * 1000000,
		.spent_max = VERIFY_SPENT_MAX, .memory_max = VERIFY_MEMORY_MAX, .looks_max = VERIFY_LOOKS_MAX,
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
	parser_memory_spend(READ_COST);
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

/* NULL for what one text may not cost: it is to be cut into smaller ones. */
static TSTree *parse_bounded(struct walk *walk, TSParser **parser, enum parse_result *ret_result)
{
	struct judgement *judgement = walk->judgement;
	size_t left = judgement->spent_max - judgement->spent, max = SPENT_MIN + (size_t)walk->size * SPENT_OF_BYTE;
	TSTree *tree;

	parser_memory_begin(max < left ? max : left);
	tree = parse_source(walk, *parser, ret_result);
	judgement->spent += parser_memory_spent() < left ? parser_memory_spent() : left;
	if (*ret_result == PARSE_ENDED && *parse_is_over && judgement->spent < judgement->spent_max)
		*ret_result = PARSE_COSTLY;
	if (!tree) {
		/* It would go on where it ended. */
		ts_parser_delete(*parser);
		*parser = NULL;
	}
	return tree;
}

/* NULL, and a doubt, but for PARSE_DONE and PARSE_COSTLY. */
static TSTree *parse(struct walk *walk, const struct walker *walker, enum parse_result *ret_result)
{
	TSParser **parser = &parsers[walk->language];
	const TSLanguage *grammar = error_count_grammar(walk->language, walker->grammar());
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
		if (!ts_parser_set_language(*parser, grammar)) {
			operations_doubt(walk->operations, DOUBT_LANGUAGE, walk->outer);
			return NULL;
		}
	}
	if (now < deadline) {
		/* Tree-sitter looks at the other clock: this is for what hangs. */
		ts_parser_set_timeout_micros(*parser, ((deadline - now) / 1000 + 1) * PARSE_PATIENCE);
		tree = parse_bounded(walk, parser, ret_result);
	}
	if (!tree && *ret_result == PARSE_ENDED) {
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

/* Behind the first line end in [from, to) that a statement may begin behind, or 0. */
static uint32_t line_behind(const struct walk *walk, uint32_t from, uint32_t to)
{
	const char *mark = walk->text + from, *end = walk->text + to;

	while (mark < end && (mark = memchr(mark, '\n', (size_t)(end - mark))))
		if (++mark < end && !strchr(" \t})]", *mark))
			return (uint32_t)(mark - walk->text);
	return 0;
}

/* Behind the first of what separates words in [from, to), in the order in which a statement begins there; or to. */
static uint32_t sign_behind(const struct walk *walk, uint32_t from, uint32_t to)
{
	for (const char *sign = "\n;|& "; *sign; sign++) {
		const char *mark = memchr(walk->text + from, *sign, to - from);

		if (mark)
			return (uint32_t)(mark + 1 - walk->text);
	}
	return to;
}

static uint32_t cut_behind(const struct walk *walk, uint32_t from, uint32_t to)
{
	uint32_t cut = line_behind(walk, from, to);

	return cut ? cut : sign_behind(walk, from, to);
}

/* Where the piece that begins at `at` ends: at a line near, so that one that is costly is a piece by itself. */
static uint32_t piece_end(const struct walk *walk, uint32_t at, uint32_t piece)
{
	uint32_t wanted = at + piece, furthest = walk->size - wanted > piece ? wanted + piece : walk->size, cut;
	const char *newline;

	if (walk->size - at <= piece)
		return walk->size;
	cut = line_behind(walk, wanted, furthest);
	newline = cut ? NULL : memrchr(walk->text + at, '\n', piece);
	if (newline)
		return (uint32_t)(newline + 1 - walk->text);
	if (!cut)
		cut = sign_behind(walk, wanted, furthest);
	return cut < furthest ? cut : cut_behind(walk, wanted, walk->size);
}

/*
 * What cannot be parsed as a whole takes away nothing from what stands before or behind it: pieces of the text are
 * looked at each for itself, until what cannot be is a line, or a part of one.
 */
static void walk_pieces(struct walk *walk)
{
	uint32_t piece = walk->size / PIECES, at = 0;

	if (walk->size < PIECE_SIZE_MIN) {
		operations_doubt(walk->operations, DOUBT_TIME, walk->outer);
		return;
	}
	while (at < walk->size && !walk_is_over(walk)) {
		uint32_t end = piece_end(walk, at, piece);

		if (at == 0 && end == walk->size) {
			operations_doubt(walk->operations, DOUBT_TIME, walk->outer);
			return;
		}
		walk_part(walk, at, end);
		at = end;
	}
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
		walk_pieces(walk);
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

/* What stands at the end of a text where a bound was hit: it is not hidden by what is costly before it. */
static void walk_last(struct walk *walk)
{
	struct judgement *judgement = walk->judgement;
	uint32_t at = walk->size > LAST_SIZE ? walk->size - LAST_SIZE : 0;

	if (!judgement->is_over || judgement->arena.has_failed)
		return;
	judgement->is_over = false;
	judgement->spent_max = judgement->spent + LAST_SPENT;
	judgement->memory_max = judgement->arena.size + LAST_MEMORY;
	judgement->looks_max = judgement->looks + LAST_LOOKS;
	walk_part(walk, at ? cut_behind(walk, at, walk->size) : 0, walk->size);
}

/* The begin and the end of what is longer than is looked at. */
static void walk_ends(struct walk *walk)
{
	struct judgement *judgement = walk->judgement;
	uint32_t head = cut_behind(walk, SCRIPT_HEAD_SIZE - LAST_SIZE, SCRIPT_HEAD_SIZE);

	operations_doubt(&judgement->operations, DOUBT_SIZE, (struct span){ head, head });
	judgement->is_bundle = walk->language != LANGUAGE_SHELL && is_packed(walk->text);
	walk_part(walk, 0, head);
	/* From the begin of a line: in the middle of one a parser finds its way with much effort only. */
	walk_part(walk, cut_behind(walk, walk->size - SCRIPT_TAIL_SIZE, walk->size), walk->size);
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
	}, last;

	if (!utf8_is_valid(text, size) || memchr(text, '\0', size))
		operations_doubt(&judgement->operations, DOUBT_ENCODING, (struct span){ 0, 0 });
	/* A walker leaves what is its own in the walk, which ends with it. */
	last = walk;
	if (size <= SCRIPT_SIZE_MAX)
		judge_walk(&walk);
	else
		walk_ends(&walk);
	walk_last(&last);
}
