/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/scan.h"

#include <string.h>
#include <sys/mman.h>

/*
 * The automaton of Aho and Corasick (1975): a tree of all spellings; where it does not go on, fail leads to the longest
 * end of what was read that is a beginning of one. Children are lists, for secrets are random and branch at their
 * beginning only, where the root has a table.
 */

enum { ROOT, NODES_MAX = 1 << 20, GROW = 1024 };

struct node {
	uint32_t child, sibling, fail;
	uint32_t words;                /* whose spelling it is: two secrets may be, or have in them, the same text */
	uint16_t depth, hit_size;      /* hit_size: of the longest spelling that ends here; 0: none does */
	uint8_t byte;
};

struct scanner {
	struct node *nodes;
	uint32_t count, room;
	uint32_t first[256];           /* of the root */
};

int scanner_new(struct scanner **ret_scanner)
{
	struct scanner *scanner = calloc(1, sizeof *scanner);

	if (!scanner)
		return -ENOMEM;
	scanner->nodes = calloc(GROW, sizeof *scanner->nodes);
	if (!scanner->nodes) {
		free(scanner);
		return -ENOMEM;
	}
	scanner->room = GROW;
	scanner->count = 1;
	*ret_scanner = scanner;
	return 0;
}

void scanner_free(struct scanner *scanner)
{
	if (!scanner)
		return;
	explicit_bzero(scanner->nodes, scanner->room * sizeof *scanner->nodes);
	free(scanner->nodes);
	explicit_bzero(scanner->first, sizeof scanner->first);
	free(scanner);
}

/* 0 (no node but the root has it): there is none. */
static uint32_t child_of(const struct scanner *scanner, uint32_t parent, uint8_t byte)
{
	uint32_t at;

	if (parent == ROOT)
		return scanner->first[byte];
	for (at = scanner->nodes[parent].child; at; at = scanner->nodes[at].sibling)
		if (scanner->nodes[at].byte == byte)
			return at;
	return 0;
}

/* By hand: realloc() would leave copies behind. */
static int grow(struct scanner *scanner)
{
	uint32_t room = scanner->room * 2;
	struct node *nodes;

	if (scanner->count < scanner->room)
		return 0;
	if (room > NODES_MAX)
		return -E2BIG;
	nodes = calloc(room, sizeof *nodes);
	if (!nodes)
		return -ENOMEM;
	memcpy(nodes, scanner->nodes, scanner->count * sizeof *nodes);
	explicit_bzero(scanner->nodes, scanner->room * sizeof *nodes);
	free(scanner->nodes);
	scanner->nodes = nodes;
	scanner->room = room;
	return 0;
}

static int add_child(struct scanner *scanner, uint32_t parent, uint8_t byte)
{
	int r = grow(scanner);
	uint32_t id = scanner->count;

	if (r < 0)
		return r;
	scanner->nodes[id] = (struct node){
		.sibling = scanner->nodes[parent].child,
		.depth = (uint16_t)(scanner->nodes[parent].depth + 1),
		.byte = byte,
	};
	scanner->nodes[parent].child = id;
	if (parent == ROOT)
		scanner->first[byte] = id;
	scanner->count++;
	return (int)id;
}

static int add_spelling(struct scanner *scanner, unsigned word, const struct buf *spelling)
{
	const uint8_t *bytes = spelling->bytes;
	uint32_t at = ROOT;

	if (buf_error(spelling) < 0)
		return buf_error(spelling);
	if (spelling->size < SCAN_WORD_MIN)
		return 0;
	for (size_t i = 0; i < spelling->size; i++) {
		uint32_t next = child_of(scanner, at, bytes[i]);
		int added = next ? 0 : add_child(scanner, at, bytes[i]);

		if (added < 0)
			return added;
		at = next ? next : (uint32_t)added;
	}
	scanner->nodes[at].hit_size = (uint16_t)spelling->size;
	scanner->nodes[at].words |= 1u << word;
	return 0;
}

/* --- Spellings. --- */

static const char upper_hex[] = "0123456789ABCDEF", lower_hex[] = "0123456789abcdef";

static bool is_unreserved(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

static void put_plain(struct buf *out, const uint8_t *text, size_t size, const char *unused)
{
	buf_put(out, text, size);
}

static void put_percent(struct buf *out, const uint8_t *text, size_t size, const char *digits)
{
	for (size_t i = 0; i < size; i++) {
		if (is_unreserved(text[i])) {
			buf_put_char(out, (char)text[i]);
			continue;
		}
		buf_put_char(out, '%');
		buf_put_char(out, digits[text[i] >> 4]);
		buf_put_char(out, digits[text[i] & 15]);
	}
}

static void put_hex(struct buf *out, const uint8_t *text, size_t size, const char *digits)
{
	for (size_t i = 0; i < size; i++) {
		buf_put_char(out, digits[text[i] >> 4]);
		buf_put_char(out, digits[text[i] & 15]);
	}
}

/* also: what is escaped beside quotes and backslashes; some writers escape the slash. */
static void put_json(struct buf *out, const uint8_t *text, size_t size, const char *also)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] && (strchr("\"\\", text[i]) || strchr(also, text[i])))
			buf_put_char(out, '\\');
		buf_put_char(out, (char)text[i]);
	}
}

static const struct {
	void (*put)(struct buf *out, const uint8_t *text, size_t size, const char *parameter);
	const char *parameter;
} spellings[] = {
	{ put_plain, NULL },	 { put_percent, upper_hex }, { put_percent, lower_hex }, { put_hex, upper_hex },
	{ put_hex, lower_hex },	 { put_json, "" },	     { put_json, "/" },
};

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/*
 * What the text becomes in base64 when before bytes stand in front of it: without the characters at both ends in which
 * a neighbour has bits as well.
 */
static void put_base64(struct buf *out, const uint8_t *text, size_t size, size_t before, const char *digits)
{
	size_t first = (before * 8 + 5) / 6, end = (before + size) * 8 / 6;

	for (size_t i = first; i < end; i++) {
		unsigned value = 0;

		for (size_t bit = i * 6; bit < i * 6 + 6; bit++)
			value = value << 1 | (text[bit / 8 - before] >> (7 - bit % 8) & 1u);
		buf_put_char(out, digits[value]);
	}
}

int scanner_add(struct scanner *scanner, unsigned word, const void *text, size_t size)
{
	static const char *const alphabets[] = { LETTERS "+/", LETTERS "-_" };
	struct buf spelling;
	int r = 0;

	if (size < SCAN_WORD_MIN)
		return 1;
	if (size > SCAN_WORD_MAX)
		size = SCAN_WORD_MAX;
	buf_init(&spelling, SCAN_SPELLING_MAX);
	if (!buf_reserve(&spelling, SCAN_SPELLING_MAX))
		return -ENOMEM;
	buf_reset(&spelling);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(spellings); i++) {
		buf_reset(&spelling);
		spellings[i].put(&spelling, text, size, spellings[i].parameter);
		r = add_spelling(scanner, word, &spelling);
	}
	for (size_t i = 0; r == 0 && i < 3 * ARRAY_SIZE(alphabets); i++) {
		buf_reset(&spelling);
		put_base64(&spelling, text, size, i % 3, alphabets[i / 3]);
		r = add_spelling(scanner, word, &spelling);
	}
	explicit_bzero(spelling.bytes, spelling.capacity);
	buf_done(&spelling);
	return r;
}

/* --- The automaton. --- */

static uint32_t step(const struct scanner *scanner, uint32_t state, uint8_t byte)
{
	uint32_t next;

	while (!(next = child_of(scanner, state, byte)) && state != ROOT)
		state = scanner->nodes[state].fail;
	return next;
}

static void settle(struct scanner *scanner, uint32_t parent, uint32_t id)
{
	struct node *node = &scanner->nodes[id];
	const struct node *fail;

	node->fail = parent == ROOT ? ROOT : step(scanner, scanner->nodes[parent].fail, node->byte);
	fail = &scanner->nodes[node->fail];
	if (!node->hit_size && fail->hit_size) {
		node->hit_size = fail->hit_size;
		node->words = fail->words;
	}
}

/* Breadth first: where a node fails to is nearer to the root. */
int scanner_finish(struct scanner *scanner)
{
	uint32_t *queue = calloc(scanner->count, sizeof *queue);
	size_t head = 0, tail = 1;

	if (!queue)
		return -ENOMEM;
	while (head < tail) {
		uint32_t parent = queue[head++];

		for (uint32_t id = scanner->nodes[parent].child; id; id = scanner->nodes[id].sibling) {
			settle(scanner, parent, id);
			queue[tail++] = id;
		}
	}
	free(queue);
	/* As far as the limit allows: kept out of swap. */
	(void)!mlock(scanner->nodes, scanner->room * sizeof *scanner->nodes);
	return 0;
}

/* Where a longer text ends another one may end as well: every hit at this place. */
static uint32_t words_at(const struct scanner *scanner, uint32_t state)
{
	uint32_t words = 0;

	for (uint32_t at = state; scanner->nodes[at].hit_size; at = scanner->nodes[at].fail)
		words |= scanner->nodes[at].words;
	return words;
}

uint32_t scanner_find(const struct scanner *scanner, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint32_t state = ROOT, words = 0;

	for (size_t i = 0; i < size; i++) {
		state = step(scanner, state, at[i]);
		words |= words_at(scanner, state);
	}
	return words;
}

/* --- Streams. --- */

void scan_init(struct scan *scan, const struct scanner *scanner)
{
	*scan = (struct scan){ .scanner = scanner, .state = ROOT };
	buf_init(&scan->held, SCAN_SPELLING_MAX + SCAN_FEED_MAX);
}

static void wipe(struct buf *held)
{
	if (held->bytes)
		explicit_bzero(held->bytes, held->capacity);
	buf_done(held);
}

void scan_done(struct scan *scan)
{
	wipe(&scan->held);
}

/* The longest hit at end that is to be masked: shorter ones lie within it. */
static void mask(struct scan *scan, size_t end, uint32_t masked)
{
	const struct node *nodes = scan->scanner->nodes;

	for (uint32_t at = scan->state; nodes[at].hit_size; at = nodes[at].fail)
		if (masked & nodes[at].words) {
			memset(scan->held.bytes + end - nodes[at].hit_size, '*', nodes[at].hit_size);
			return;
		}
}

int scan_feed(struct scan *scan, const uint8_t *bytes, size_t size, uint32_t masked, struct buf *out,
	      uint32_t *ret_words)
{
	struct buf *held = &scan->held;
	size_t before = held->size, kept;

	*ret_words = 0;
	buf_put(held, bytes, size);
	if (buf_error(held) < 0)
		return buf_error(held);
	for (size_t i = 0; i < size; i++) {
		uint32_t words;

		scan->state = step(scan->scanner, scan->state, bytes[i]);
		words = words_at(scan->scanner, scan->state);
		*ret_words |= words;
		if (words & masked)
			mask(scan, before + i + 1, masked);
	}
	kept = scan->scanner->nodes[scan->state].depth;
	buf_put(out, held->bytes, held->size - kept);
	buf_consume(held, held->size - kept);
	return buf_error(out);
}

int scan_finish(struct scan *scan, struct buf *out)
{
	buf_put(out, scan->held.bytes, scan->held.size);
	wipe(&scan->held);
	scan_init(scan, scan->scanner);
	return buf_error(out);
}
