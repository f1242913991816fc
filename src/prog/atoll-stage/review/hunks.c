/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/review/hunks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 3, LINE_MAX = TEXT_SIZE_MAX + 2 };

static int index_lines(struct hunk_text *text, const struct text_piece *piece)
{
	const char *bytes = piece->bytes, *end = bytes + piece->size;
	size_t count = 0;

	text->piece = *piece;
	for (const char *at = bytes; piece->size && at < end; count++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		at = newline ? newline + 1 : end;
	}
	text->starts = calloc(count + 1, sizeof *text->starts);
	if (!text->starts)
		return -ENOMEM;
	text->count = count;
	for (size_t i = 0; i < count; i++) {
		const char *at = bytes + text->starts[i], *newline = memchr(at, '\n', (size_t)(end - at));

		text->starts[i + 1] = newline ? (size_t)(newline + 1 - bytes) : piece->size;
	}
	return 0;
}

static const char *line_at(const struct hunk_text *text, size_t line)
{
	return (const char *)text->piece.bytes + text->starts[line];
}

static size_t size_of(const struct hunk_text *text, size_t first, size_t count)
{
	return text->starts[first + count] - text->starts[first];
}

/* The parsing. */

struct parser {
	struct hunks *hunks;
	size_t old_at, new_at, capacity;
	bool is_in_block, begins_hunk;
};

static bool parse_number(const char **at, const char *end, size_t *ret_number)
{
	size_t number = 0;
	const char *first = *at;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		if (number > TEXT_SIZE_MAX)
			return false;
		number = number * 10 + (size_t)(**at - '0');
	}
	*ret_number = number;
	return *at > first;
}

/* "12,3": the line where it begins, from 0. With a count of 0 the number is that of the line before. */
static bool parse_range(const char **at, const char *end, char mark, size_t *ret_line)
{
	size_t line, count = 1;

	if (end - *at < 2 || *(*at)++ != mark || !parse_number(at, end, &line))
		return false;
	if (*at < end && **at == ',') {
		(*at)++;
		if (!parse_number(at, end, &count))
			return false;
	}
	if (count && !line)
		return false;
	*ret_line = count ? line - 1 : line;
	return true;
}

static int parse_header(struct parser *parser, const char *line, size_t size)
{
	const char *at = line + 3, *end = line + size;

	if (size < 4 || memcmp(line, "@@ ", 3) != 0 || !parse_range(&at, end, '-', &parser->old_at) || at == end ||
	    *at++ != ' ' || !parse_range(&at, end, '+', &parser->new_at))
		return -EBADMSG;
	parser->is_in_block = false;
	parser->begins_hunk = true;
	return 0;
}

static struct hunk_block *block(struct parser *parser)
{
	struct hunks *hunks = parser->hunks;

	if (parser->is_in_block)
		return &hunks->blocks[hunks->count - 1];
	if (hunks->count == parser->capacity) {
		size_t wanted = parser->capacity ? parser->capacity * 2 : 16;
		struct hunk_block *grown = realloc(hunks->blocks, wanted * sizeof *grown);

		if (!grown)
			return NULL;
		hunks->blocks = grown;
		parser->capacity = wanted;
	}
	hunks->blocks[hunks->count] = (struct hunk_block){
		.old_at = parser->old_at, .new_at = parser->new_at, .begins_hunk = parser->begins_hunk,
	};
	parser->is_in_block = true;
	parser->begins_hunk = false;
	return &hunks->blocks[hunks->count++];
}

static int parse_line(struct parser *parser, const char *line, size_t size)
{
	struct hunk_block *changed;

	switch (*line) {
	case '@':
		return parse_header(parser, line, size);
	case '\\':
		return 0;
	case ' ':
		parser->is_in_block = false;
		parser->old_at++;
		parser->new_at++;
		return 0;
	case '-':
	case '+':
		changed = block(parser);
		if (!changed)
			return -ENOMEM;
		changed->old_count += *line == '-';
		changed->new_count += *line == '+';
		parser->old_at += *line == '-';
		parser->new_at += *line == '+';
		return 0;
	default:
		return -EBADMSG;
	}
}

/* Whether the lines from both places on, up to these ends, are the same bytes. */
static bool is_gap_equal(const struct hunks *hunks, size_t old_at, size_t new_at, size_t old_end, size_t new_end)
{
	size_t count = old_end - old_at;

	return old_end >= old_at && new_end >= new_at && new_end - new_at == count && old_end <= hunks->old.count &&
	       new_end <= hunks->new.count &&
	       size_of(&hunks->old, old_at, count) == size_of(&hunks->new, new_at, count) &&
	       (!count || memcmp(line_at(&hunks->old, old_at), line_at(&hunks->new, new_at),
				 size_of(&hunks->old, old_at, count)) == 0);
}

/* Whether the blocks are all that differs. */
static bool is_whole(const struct hunks *hunks)
{
	size_t old_at = 0, new_at = 0;

	for (size_t i = 0; i < hunks->count; i++) {
		const struct hunk_block *at = &hunks->blocks[i];

		if (!is_gap_equal(hunks, old_at, new_at, at->old_at, at->new_at) ||
		    at->old_count > hunks->old.count - at->old_at || at->new_count > hunks->new.count - at->new_at)
			return false;
		old_at = at->old_at + at->old_count;
		new_at = at->new_at + at->new_count;
	}
	return is_gap_equal(hunks, old_at, new_at, hunks->old.count, hunks->new.count);
}

int hunks_parse(struct hunks *ret_hunks, const struct text_piece *difference, const struct text_piece *old,
		const struct text_piece *new)
{
	struct hunks hunks = { 0 };
	struct parser parser = { .hunks = &hunks };
	int r = index_lines(&hunks.old, old);

	if (r == 0)
		r = index_lines(&hunks.new, new);
	for (size_t at = 0; r == 0 && at < difference->size;) {
		const char *line = (const char *)difference->bytes + at;
		const char *newline = memchr(line, '\n', difference->size - at);
		size_t size = newline ? (size_t)(newline - line) : difference->size - at;

		r = size ? parse_line(&parser, line, size) : -EBADMSG;
		at += size + 1;
	}
	if (r == 0 && !is_whole(&hunks))
		r = -EBADMSG;
	if (r < 0)
		hunks_done(&hunks);
	else
		*ret_hunks = hunks;
	return r;
}

int hunks_load(struct hunks *ret_hunks, struct text_worker *worker, const struct text_piece *old,
	       const struct text_piece *new)
{
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, TEXT_RESULT_MAX + 1);
	r = text_worker_lines(worker, old, new, &out);
	return r < 0 ? r : hunks_parse(ret_hunks, &(struct text_piece){ out.bytes, out.size }, old, new);
}

void hunks_done(struct hunks *hunks)
{
	free(hunks->old.starts);
	free(hunks->new.starts);
	free(hunks->blocks);
	*hunks = (struct hunks){ 0 };
}

/* What is done with them. */

size_t hunks_end(const struct hunks *hunks, size_t first)
{
	size_t end = first + 1;

	while (end < hunks->count && !hunks->blocks[end].begins_hunk)
		end++;
	return end;
}

void hunks_split(struct hunks *hunks, size_t first)
{
	for (size_t i = first, end = hunks_end(hunks, first); i < end; i++)
		hunks->blocks[i].begins_hunk = true;
}

struct showing {
	void (*on_line)(void *context, const char *line, size_t size);
	void *context;
	struct buf line;
};

static void show_lines(struct showing *showing, char mark, const struct hunk_text *text, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++) {
		size_t size = size_of(text, i, 1);
		bool ends = size && line_at(text, i)[size - 1] == '\n';

		buf_reset(&showing->line);
		buf_put_char(&showing->line, mark);
		buf_put(&showing->line, line_at(text, i), size - ends);
		showing->on_line(showing->context, (const char *)showing->line.bytes, showing->line.size);
		if (!ends)
			showing->on_line(showing->context, "\\ No newline at end of file", 27);
	}
}

static void show_header(struct showing *showing, size_t old_at, size_t old_count, size_t new_at, size_t new_count)
{
	buf_reset(&showing->line);
	buf_printf(&showing->line, "@@ -%zu,%zu +%zu,%zu @@", old_at + (old_count > 0), old_count,
		   new_at + (new_count > 0), new_count);
	showing->on_line(showing->context, (const char *)showing->line.bytes, showing->line.size);
}

void hunks_show(const struct hunks *hunks, size_t first,
		void (*on_line)(void *context, const char *line, size_t size), void *context)
{
	struct showing showing = { .on_line = on_line, .context = context };
	size_t end = hunks_end(hunks, first);
	const struct hunk_block *begin = &hunks->blocks[first], *last = &hunks->blocks[end - 1];
	size_t before = first ? begin->old_at - (begin[-1].old_at + begin[-1].old_count) : begin->old_at;
	size_t behind = (end < hunks->count ? hunks->blocks[end].old_at : hunks->old.count) -
			(last->old_at + last->old_count);
	size_t at;

	before = before < CONTEXT ? before : CONTEXT;
	behind = behind < CONTEXT ? behind : CONTEXT;
	at = begin->old_at - before;
	buf_init(&showing.line, LINE_MAX);
	show_header(&showing, at, last->old_at + last->old_count + behind - at, begin->new_at - before,
		    last->new_at + last->new_count + behind - (begin->new_at - before));
	for (size_t i = first; i < end; i++) {
		const struct hunk_block *changed = &hunks->blocks[i];

		show_lines(&showing, ' ', &hunks->old, at, changed->old_at - at);
		show_lines(&showing, '-', &hunks->old, changed->old_at, changed->old_count);
		show_lines(&showing, '+', &hunks->new, changed->new_at, changed->new_count);
		at = changed->old_at + changed->old_count;
	}
	show_lines(&showing, ' ', &hunks->old, at, behind);
	buf_done(&showing.line);
}

size_t hunks_taken(const struct hunks *hunks)
{
	size_t count = 0;

	for (size_t i = 0; i < hunks->count; i++)
		count += hunks->blocks[i].is_taken;
	return count;
}

void hunks_put_result(const struct hunks *hunks, struct buf *out)
{
	size_t at = 0;

	for (size_t i = 0; i < hunks->count; i++) {
		const struct hunk_block *changed = &hunks->blocks[i];

		if (!changed->is_taken)
			continue;
		buf_put(out, line_at(&hunks->old, at), size_of(&hunks->old, at, changed->old_at - at));
		buf_put(out, line_at(&hunks->new, changed->new_at),
			size_of(&hunks->new, changed->new_at, changed->new_count));
		at = changed->old_at + changed->old_count;
	}
	if (at < hunks->old.count)
		buf_put(out, line_at(&hunks->old, at), size_of(&hunks->old, at, hunks->old.count - at));
}
