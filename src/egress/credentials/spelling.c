/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/credentials/spelling.h"

#include <string.h>

uint8_t spelling_fold(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c | 0x20;
	if (c == '-' || c == ' ')
		return '+';
	return c == '_' ? '/' : c;
}

int spelling_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool spelling_is_between_digits(uint8_t c)
{
	return c == ':' || c == ' ' || c == '-' || c == 0;
}

/* --- Escapes. --- */

static const struct {
	const char *name;
	char byte;
} entities[] = {
	{ "quot", '"' },   { "amp", '&' },    { "apos", '\'' },   { "lt", '<' },     { "gt", '>' },
	{ "sol", '/' },    { "plus", '+' },   { "equals", '=' },  { "lowbar", '_' }, { "hyphen", '-' },
	{ "dash", '-' },   { "period", '.' }, { "colon", ':' },   { "semi", ';' },   { "comma", ',' },
	{ "excl", '!' },   { "num", '#' },    { "dollar", '$' },  { "percnt", '%' }, { "ast", '*' },
	{ "commat", '@' }, { "quest", '?' },  { "lpar", '(' },    { "rpar", ')' },   { "bsol", '\\' },
	{ "verbar", '|' }, { "lsqb", '[' },   { "rsqb", ']' },    { "lcub", '{' },   { "rcub", '}' },
	{ "grave", '`' },  { "Hat", '^' },    { "tilde", '~' },
};

/* What an escape stands for: a number, as UTF-8 or as one byte. */
struct meaning {
	uint32_t number;
	bool is_byte;
};

/* As the functions below: how many bytes the escape at text has, 0 when it may go on, -1 when there is none. */
static int read_digits(const uint8_t *text, size_t size, size_t from, size_t count, uint32_t *ret_number)
{
	uint32_t number = 0;

	for (size_t i = from; i < size && i < from + count; i++) {
		int digit = spelling_digit(text[i]);

		if (digit < 0)
			return -1;
		number = number << 4 | (uint32_t)digit;
	}
	*ret_number = number;
	return size < from + count ? 0 : (int)(from + count);
}

static int read_backslash(const uint8_t *text, size_t size, struct meaning *ret_meaning)
{
	static const char letters[] = "nrtbf", bytes[] = "\n\r\t\b\f";
	const char *letter;

	if (size < 2)
		return 0;
	if (text[1] == 'u')
		return read_digits(text, size, 2, 4, &ret_meaning->number);
	ret_meaning->is_byte = true;
	if (text[1] == 'x')
		return read_digits(text, size, 2, 2, &ret_meaning->number);
	letter = text[1] ? strchr(letters, text[1]) : NULL;
	ret_meaning->number = letter ? (uint8_t)bytes[letter - letters] : text[1];
	if (!letter && ((text[1] | 0x20) >= 'a' && (text[1] | 0x20) <= 'z'))
		return -1;
	return text[1] >= '0' && text[1] <= '9' ? -1 : 2;
}

/* "&#45;" and "&#x2d;", with zeros in front as some write them. */
static int read_numbered(const uint8_t *text, size_t size, struct meaning *ret_meaning)
{
	bool is_hex = size > 2 && (text[2] | 0x20) == 'x';
	size_t first = is_hex ? 3 : 2;

	for (size_t i = first; i < size; i++) {
		int digit = spelling_digit(text[i]);

		if (text[i] == ';')
			return i > first ? (int)i + 1 : -1;
		if (digit < 0 || (!is_hex && digit > 9) || i == SPELLING_PENDING_MAX - 2)
			return -1;
		ret_meaning->number = ret_meaning->number * (is_hex ? 16 : 10) + (uint32_t)digit;
	}
	return 0;
}

static int read_entity(const uint8_t *text, size_t size, struct meaning *ret_meaning)
{
	if (size < 2)
		return 0;
	if (text[1] == '#')
		return read_numbered(text, size, ret_meaning);
	for (size_t i = 0; i < ARRAY_SIZE(entities); i++) {
		size_t length = strlen(entities[i].name), common = size - 1 < length ? size - 1 : length;

		if (memcmp(text + 1, entities[i].name, common) != 0 || (size > length + 1 && text[length + 1] != ';'))
			continue;
		ret_meaning->number = (uint8_t)entities[i].byte;
		return size > length + 1 ? (int)length + 2 : 0;
	}
	return -1;
}

static int read_escape(const uint8_t *text, size_t size, struct meaning *ret_meaning)
{
	*ret_meaning = (struct meaning){ 0 };
	if (text[0] == '\\')
		return read_backslash(text, size, ret_meaning);
	if (text[0] == '&')
		return read_entity(text, size, ret_meaning);
	if (text[0] != '%')
		return -1;
	ret_meaning->is_byte = true;
	return read_digits(text, size, 1, 2, &ret_meaning->number);
}

/* In UTF-8; nothing for a NUL. */
static size_t put_number(const struct meaning *meaning, struct spelling_unit *out, uint64_t start, uint64_t end)
{
	uint32_t number = meaning->number;
	size_t rest = meaning->is_byte || number < 0x80 ? 0 : number < 0x800 ? 1 : number < 0x10000 ? 2 : 3;
	static const uint8_t marks[] = { 0, 0xc0, 0xe0, 0xf0 };

	if (!number)
		return 0;
	for (size_t i = 0; i <= rest; i++) {
		uint32_t bits = number >> 6 * (rest - i);

		out[i] = (struct spelling_unit){ (uint8_t)(i ? 0x80 | (bits & 0x3f) : marks[rest] | bits), start, end };
	}
	return rest + 1;
}

static void shift(struct decoder *decoder, size_t count)
{
	decoder->count -= count;
	memmove(decoder->pending, decoder->pending + count, decoder->count);
	memmove(decoder->places, decoder->places + count, decoder->count * sizeof *decoder->places);
}

static size_t drain(struct decoder *decoder, bool is_end, struct spelling_unit *out)
{
	size_t count = 0;

	while (decoder->count) {
		struct meaning meaning;
		int used = read_escape(decoder->pending, decoder->count, &meaning);
		uint64_t start = decoder->places[0];

		if (used == 0 && !is_end)
			break;
		if (used > 0)
			count += put_number(&meaning, out + count, start, decoder->places[used - 1] + 1);
		else
			out[count++] = (struct spelling_unit){ decoder->pending[0], start, start + 1 };
		shift(decoder, used > 0 ? (size_t)used : 1);
	}
	return count;
}

bool decoder_may_begin(uint8_t c)
{
	return c == 0 || c == '%' || c == '\\' || c == '&';
}

size_t decoder_take(struct decoder *decoder, uint8_t c, uint64_t place, struct spelling_unit out[SPELLING_UNITS_MAX])
{
	if (!c)
		return 0;
	if (!decoder->count && !decoder_may_begin(c)) {
		out[0] = (struct spelling_unit){ c, place, place + 1 };
		return 1;
	}
	decoder->pending[decoder->count] = c;
	decoder->places[decoder->count++] = place;
	return drain(decoder, false, out);
}

size_t decoder_end(struct decoder *decoder, struct spelling_unit out[SPELLING_UNITS_MAX])
{
	return drain(decoder, true, out);
}

/* --- The table. --- */

static void put_plain(struct buf *out, const uint8_t *text, size_t size, unsigned parameter)
{
	buf_put(out, text, size);
}

/* A text that has escapes in it itself, where it is not escaped again. */
static void put_decoded(struct buf *out, const uint8_t *text, size_t size, unsigned parameter)
{
	struct spelling_unit units[SPELLING_UNITS_MAX];
	struct decoder decoder = { .count = 0 };

	for (size_t i = 0; i <= size; i++) {
		size_t count = i < size ? decoder_take(&decoder, text[i], i, units) : decoder_end(&decoder, units);

		for (size_t k = 0; k < count; k++)
			buf_put_char(out, (char)units[k].byte);
	}
}

static void put_digits(struct buf *out, const uint8_t *text, size_t size, unsigned parameter)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		buf_put_char(out, digits[text[i] >> 4]);
		buf_put_char(out, digits[text[i] & 15]);
	}
}

/*
 * What the text becomes in base64 when before bytes stand in front of it: without the characters at both ends in which
 * a neighbour has bits as well.
 */
static void put_base64(struct buf *out, const uint8_t *text, size_t size, unsigned before)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t first = (before * 8 + 5) / 6, end = (before + size) * 8 / 6;

	for (size_t i = first; i < end; i++) {
		unsigned value = 0;

		for (size_t bit = i * 6; bit < i * 6 + 6; bit++)
			value = value << 1 | (text[bit / 8 - before] >> (7 - bit % 8) & 1u);
		buf_put_char(out, digits[value]);
	}
}

const struct spelling spellings[] = {
	{ READING_PLAIN, false, put_plain, 0 },	   { READING_PLAIN, true, put_base64, 0 },
	{ READING_PLAIN, true, put_base64, 1 },	   { READING_PLAIN, true, put_base64, 2 },
	{ READING_DECODED, false, put_plain, 0 },  { READING_DECODED, false, put_decoded, 0 },
	{ READING_DECODED, true, put_base64, 0 },  { READING_DECODED, true, put_base64, 1 },
	{ READING_DECODED, true, put_base64, 2 },  { READING_DIGITS, false, put_digits, 0 },
};
const size_t spelling_count = ARRAY_SIZE(spellings);
