/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a text may be spelled in a stream. A stream is read in three ways at once: as it is, with escapes undone, and as
 * digits alone. In each of these readings a text has few spellings, all of a fixed length, and they stand in one table.
 * What no reading shows: compression, encryption, base32, double escapes, quoted-printable, octal escapes, base64 or
 * hexadecimal that is broken into lines, UTF-16 and UTF-32 of what is not ASCII. Pure. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum reading {
	READING_PLAIN,     /* each byte */
	/* Escapes are the bytes that they stand for (percent, JSON, HTML, \x); NUL bytes are left out (UTF-16). */
	READING_DECODED,
	READING_DIGITS,    /* hexadecimal digits; blanks, colons and hyphens between them are left out */
	READING_COUNT,
};

enum { SPELLING_PENDING_MAX = 12, SPELLING_UNITS_MAX = SPELLING_PENDING_MAX + 4 };

struct spelling {
	enum reading reading;
	bool is_base64;
	/* Appends the units that the text becomes in its reading, not folded. Nothing: it has no such spelling. */
	void (*put)(struct buf *out, const uint8_t *text, size_t size, unsigned parameter);
	unsigned parameter;
};

extern const struct spelling spellings[];
extern const size_t spelling_count;

/* No spelling has more bytes for a byte of the text, but for a few that escape with more digits than it takes. */
enum { SPELLING_BYTES_PER_BYTE = 6 };

/* Capital letters are small ones, and what two alphabets of base64, or two ways to escape a blank, differ in is one. */
uint8_t spelling_fold(uint8_t c);

/* The value of a hexadecimal digit, or -1. */
int spelling_digit(uint8_t c);

/* Whether it may stand between two of them. */
bool spelling_is_between_digits(uint8_t c);

/* One byte of READING_DECODED, and which bytes of the stream it stands for: from start up to end. */
struct spelling_unit {
	uint8_t byte;
	uint64_t start, end;
};

/* What may yet become an escape. All zero at the beginning. */
struct decoder {
	uint8_t pending[SPELLING_PENDING_MAX];
	uint64_t places[SPELLING_PENDING_MAX];
	size_t count;
};

/* Whether an escape begins with it, or it is left out. */
bool decoder_may_begin(uint8_t c);

/* The byte at this place of the stream. How many units it brings, in out. */
size_t decoder_take(struct decoder *decoder, uint8_t c, uint64_t place, struct spelling_unit out[SPELLING_UNITS_MAX]);

/* Nothing follows: the rest. */
size_t decoder_end(struct decoder *decoder, struct spelling_unit out[SPELLING_UNITS_MAX]);
