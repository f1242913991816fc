/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/credentials/scan.h"

#include <string.h>
#include <sys/mman.h>

#include "os/clock.h"

/*
 * Theory of operation. Each spelling of each text is known by its length and one hash (Rabin and Karp, 1987) with a
 * random key. Of each reading of a stream the hashes of all its beginnings are kept for as far as the longest text
 * goes; the hash of its last n units is the difference of two of them. So each byte costs the same multiplications and
 * comparisons whether it goes on with a secret or not: an automaton (Aho and Corasick) would walk other nodes, take
 * other time, and know how far it has come. No text is kept, and of a part of one nothing is known here at all.
 * What is left out for speed depends on the stream alone: a text in base64 is compared where as many characters of
 * base64 stand in a row, and so for digits.
 */

enum { FORMS_MAX = 4096, GROW = 64 };

/* One spelling of one text, or of several that have it in common. */
struct form {
	uint64_t hash;
	uint32_t words, parts, heads;
	uint32_t size;                 /* in units of its reading */
	uint32_t rest;                 /* that the text has behind its head */
	uint8_t reading;
	bool is_base64;
};

/* All of one reading and length. */
struct window {
	uint64_t power;                /* of the base, to the length */
	uint32_t size;
	size_t first, count;           /* of the forms */
};

/* The windows of one reading that are compared under one condition, shorter ones first. */
enum { GROUP_COUNT = 2 * READING_COUNT };

static size_t group_of(enum reading reading, bool is_base64)
{
	return 2 * (size_t)reading + is_base64;
}

/* What a byte is, so that each is looked at once. */
enum { OF_BASE64 = 1, BEGINS_ESCAPE = 2, IS_DIGIT = 4, IS_BETWEEN_DIGITS = 8, ENDS_LINE = 16 };

struct scanner {
	uint64_t base, values[256];    /* the key: bytes that are one when folded have one value */
	uint8_t classes[256];
	struct form *forms;            /* sorted, when it is finished */
	struct window *windows;
	size_t form_count, room;
	size_t first_window[GROUP_COUNT + 1];
	uint32_t longest[READING_COUNT];
	size_t hold;
	bool has_line_ends;            /* within a text */
	struct scan *scratch;          /* for scanner_find(): the gate has one thread */
};

/* The beginning of a reading up to one unit. */
struct mark {
	uint64_t hash;
	uint64_t start;                /* of that unit, in the stream */
};

struct track {
	struct mark *marks;            /* a ring */
	uint64_t mask;
	uint64_t count;                /* of units */
	uint64_t since;                /* no text begins before this one */
	uint64_t base64_since;         /* nor one in base64 */
	uint64_t hash;
	uint64_t open_until;           /* by then a text is whole whose head was met, or it is none */
	uint32_t open;                 /* of which words that was */
};

struct scan {
	const struct scanner *scanner;
	struct track tracks[READING_COUNT];
	struct decoder decoder;
	uint64_t escaped_until;        /* units of READING_DECODED with the last escape */
	uint64_t fed, released;        /* bytes */
	uint64_t safe;                 /* no text goes on across this place */
	struct buf held;
	uint32_t masked;               /* of this call */
	struct scan_met met;
};

static bool is_of_base64(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
	       c == '-' || c == '_';
}

static int make_key(struct scanner *scanner)
{
	uint64_t values[256];
	int r = random_bytes(&scanner->base, sizeof scanner->base);

	if (r == 0)
		r = random_bytes(values, sizeof values);
	scanner->base |= 1;
	for (size_t i = 0; r == 0 && i < 256; i++) {
		uint8_t c = (uint8_t)i;

		scanner->values[i] = values[spelling_fold(c)];
		scanner->classes[i] = (uint8_t)((is_of_base64(c) ? OF_BASE64 : 0) |
						(decoder_may_begin(c) ? BEGINS_ESCAPE : 0) |
						(spelling_digit(c) >= 0 ? IS_DIGIT : 0) |
						(spelling_is_between_digits(c) ? IS_BETWEEN_DIGITS : 0) |
						(c && c < ' ' ? ENDS_LINE : 0));
	}
	explicit_bzero(values, sizeof values);
	return r;
}

int scanner_new(struct scanner **ret_scanner)
{
	struct scanner *scanner = calloc(1, sizeof *scanner);
	int r;

	if (!scanner)
		return -ENOMEM;
	r = make_key(scanner);
	if (r < 0) {
		free(scanner);
		return r;
	}
	*ret_scanner = scanner;
	return 0;
}

void scanner_free(struct scanner *scanner)
{
	if (!scanner)
		return;
	scan_free(scanner->scratch);
	if (scanner->forms)
		explicit_bzero(scanner->forms, scanner->room * sizeof *scanner->forms);
	free(scanner->forms);
	free(scanner->windows);
	explicit_bzero(scanner, sizeof *scanner);
	free(scanner);
}

/* --- Texts. --- */

/* By hand: realloc() would leave copies behind. */
static int grow(struct scanner *scanner)
{
	size_t room = scanner->room ? 2 * scanner->room : GROW;
	struct form *forms;

	if (scanner->form_count < scanner->room)
		return 0;
	if (room > FORMS_MAX)
		return -E2BIG;
	forms = calloc(room, sizeof *forms);
	if (!forms)
		return -ENOMEM;
	if (scanner->forms) {
		memcpy(forms, scanner->forms, scanner->form_count * sizeof *forms);
		explicit_bzero(scanner->forms, scanner->room * sizeof *forms);
		free(scanner->forms);
	}
	scanner->forms = forms;
	scanner->room = room;
	return 0;
}

static uint64_t hash_of(const struct scanner *scanner, const uint8_t *units, size_t size)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < size; i++)
		hash = hash * scanner->base + scanner->values[units[i]];
	return hash;
}

static int add_form(struct scanner *scanner, const struct spelling *spelling, const struct buf *units,
		    const struct form *meant)
{
	struct form form = *meant;
	int r = buf_error(units);

	/* Of a part the plain spelling is enough: it is told, and nothing rests on it. */
	if (r < 0 || units->size < SCAN_WORD_MIN || (form.parts && spelling->is_base64))
		return r;
	form.reading = (uint8_t)spelling->reading;
	form.is_base64 = spelling->is_base64;
	form.size = (uint32_t)units->size;
	form.hash = hash_of(scanner, units->bytes, units->size);
	/* "as it is" and "decoded" are mostly the same */
	for (size_t i = 0; i < scanner->form_count; i++)
		if (scanner->forms[i].hash == form.hash && scanner->forms[i].reading == form.reading &&
		    scanner->forms[i].size == form.size) {
			scanner->forms[i].words |= form.words;
			scanner->forms[i].parts |= form.parts;
			scanner->forms[i].heads |= form.heads;
			if (scanner->forms[i].rest < form.rest)
				scanner->forms[i].rest = form.rest;
			return 0;
		}
	r = grow(scanner);
	if (r == 0)
		scanner->forms[scanner->form_count++] = form;
	return r;
}

/* Its first units, of the size bytes of a text; head of them when it is above 0. */
static int spell(struct buf *units, const struct spelling *spelling, const uint8_t *text, size_t size, size_t head,
		 uint32_t *ret_rest)
{
	size_t whole;

	buf_reset(units);
	spelling->put(units, text, size, spelling->parameter);
	whole = units->size;
	if (head) {
		buf_reset(units);
		spelling->put(units, text, head, spelling->parameter);
	}
	*ret_rest = (uint32_t)(whole > units->size ? whole - units->size : 0);
	return buf_error(units);
}

static int add(struct scanner *scanner, const struct form *meant, const uint8_t *text, size_t size, size_t head)
{
	struct form form = *meant;
	struct buf units;
	int r = 0;

	if (size < SCAN_WORD_MIN)
		return 1;
	if (size > SCAN_WORD_MAX)
		size = SCAN_WORD_MAX;
	buf_init(&units, 2 * SCAN_WORD_MAX);
	if (!buf_reserve(&units, 2 * SCAN_WORD_MAX))
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < spelling_count; i++) {
		r = spell(&units, &spellings[i], text, size, head, &form.rest);
		if (r == 0)
			r = add_form(scanner, &spellings[i], &units, &form);
	}
	explicit_bzero(units.bytes, units.capacity);
	buf_done(&units);
	for (size_t i = 0; i < size; i++)
		scanner->has_line_ends = scanner->has_line_ends || (text[i] > 0 && text[i] < ' ');
	if (scanner->hold < SPELLING_BYTES_PER_BYTE * size + SPELLING_PENDING_MAX)
		scanner->hold = SPELLING_BYTES_PER_BYTE * size + SPELLING_PENDING_MAX;
	return r;
}

int scanner_add(struct scanner *scanner, unsigned word, const void *text, size_t size)
{
	return add(scanner, &(struct form){ .words = 1u << word }, text, size, 0);
}

int scanner_add_part(struct scanner *scanner, unsigned word, const void *text, size_t size)
{
	return add(scanner, &(struct form){ .parts = 1u << word }, text, size, 0);
}

int scanner_add_head(struct scanner *scanner, unsigned word, const void *text, size_t size, size_t head)
{
	if (head < SCAN_WORD_MIN || head >= size || head >= SCAN_WORD_MAX)
		return 1;
	return add(scanner, &(struct form){ .heads = 1u << word }, text, size, head);
}

static int compare(const void *left, const void *right)
{
	const struct form *a = left, *b = right;

	size_t a_group = group_of(a->reading, a->is_base64), b_group = group_of(b->reading, b->is_base64);

	if (a_group != b_group)
		return a_group < b_group ? -1 : 1;
	return (a->size > b->size) - (a->size < b->size);
}

static void add_window(struct scanner *scanner, size_t first, size_t *count)
{
	const struct form *form = &scanner->forms[first];
	struct window *last = *count ? &scanner->windows[*count - 1] : NULL;

	if (last && compare(form, &scanner->forms[last->first]) == 0) {
		last->count++;
		return;
	}
	last = &scanner->windows[(*count)++];
	*last = (struct window){ .power = 1, .size = form->size, .first = first, .count = 1 };
	for (uint32_t i = 0; i < form->size; i++)
		last->power *= scanner->base;
	if (form->size > scanner->longest[form->reading])
		scanner->longest[form->reading] = form->size;
	for (size_t group = group_of(form->reading, form->is_base64); group < GROUP_COUNT; group++)
		scanner->first_window[group + 1] = *count;
}

int scanner_finish(struct scanner *scanner)
{
	size_t count = 0;

	scanner->windows = calloc(scanner->form_count + 1, sizeof *scanner->windows);
	if (!scanner->windows)
		return -ENOMEM;
	if (scanner->form_count)
		qsort(scanner->forms, scanner->form_count, sizeof *scanner->forms, compare);
	for (size_t i = 0; i < scanner->form_count; i++)
		add_window(scanner, i, &count);
	/* A hash and its key are enough to find a weak password. As far as the limit allows: kept out of swap. */
	(void)!mlock(scanner, sizeof *scanner);
	if (scanner->forms)
		(void)!mlock(scanner->forms, scanner->room * sizeof *scanner->forms);
	return scan_new(&scanner->scratch, scanner);
}

/* --- Streams. --- */

int scan_new(struct scan **ret_scan, const struct scanner *scanner)
{
	struct scan *scan = calloc(1, sizeof *scan);

	if (!scan)
		return -ENOMEM;
	scan->scanner = scanner;
	buf_init(&scan->held, SCAN_HOLD_MAX + SCAN_FEED_MAX);
	for (int reading = 0; reading < READING_COUNT; reading++) {
		struct track *track = &scan->tracks[reading];
		uint64_t room = 2;

		while (room <= scanner->longest[reading])
			room *= 2;
		track->mask = room - 1;
		track->marks = calloc(room, sizeof *track->marks);
		if (!track->marks) {
			scan_free(scan);
			return -ENOMEM;
		}
	}
	*ret_scan = scan;
	return 0;
}

void scan_free(struct scan *scan)
{
	if (!scan)
		return;
	for (int reading = 0; reading < READING_COUNT; reading++)
		free(scan->tracks[reading].marks);
	if (scan->held.bytes)
		explicit_bzero(scan->held.bytes, scan->held.capacity);
	buf_done(&scan->held);
	explicit_bzero(scan, sizeof *scan);
	free(scan);
}

/* A text, or its head, that is whole with the byte before end. */
static void note_match(struct scan *scan, struct track *track, const struct form *form, uint64_t start, uint64_t end)
{
	if (form->heads) {
		track->open = form->heads | (track->count < track->open_until ? track->open : 0);
		if (track->open_until < track->count + form->rest)
			track->open_until = track->count + form->rest;
	}
	scan->met.words |= form->words;
	scan->met.parts |= form->parts;
	if (start < scan->released) {
		scan->met.late |= form->words;
		start = scan->released;
	}
	if (form->words & scan->masked && start < end)
		memset(scan->held.bytes + (start - scan->released), '*', end - start);
}

/* Compares those of a group that are not longer than so many units at the end. */
static inline void compare_windows(struct scan *scan, enum reading reading, bool is_base64, uint64_t units,
				   uint64_t end)
{
	const struct scanner *scanner = scan->scanner;
	struct track *track = &scan->tracks[reading];
	size_t group = group_of(reading, is_base64), last = scanner->first_window[group + 1];

	for (size_t i = scanner->first_window[group]; i < last; i++) {
		const struct window *window = &scanner->windows[i];
		const struct form *forms = scanner->forms + window->first;
		uint64_t hash;

		if (units < window->size)
			return;
		hash = track->hash - track->marks[(track->count - window->size) & track->mask].hash * window->power;
		for (size_t k = 0; k < window->count; k++)
			if (hash == forms[k].hash)
				note_match(scan, track, &forms[k],
				     track->marks[(track->count - window->size + 1) & track->mask].start, end);
	}
}

static inline void add_unit(struct scan *scan, struct track *track, uint8_t value, uint64_t start)
{
	track->hash = track->hash * scan->scanner->base + scan->scanner->values[value];
	track->count++;
	track->marks[track->count & track->mask] = (struct mark){ track->hash, start };
}

static inline void take_text_unit(struct scan *scan, enum reading reading, const struct spelling_unit *unit)
{
	struct track *track = &scan->tracks[reading];

	add_unit(scan, track, unit->byte, unit->start);
	if (!(scan->scanner->classes[unit->byte] & OF_BASE64))
		track->base64_since = track->count;
	/* Where it has not differed from the plain reading for long enough nothing else can be met in it. */
	if (reading == READING_DECODED && track->count >= scan->escaped_until + scan->scanner->longest[reading])
		return;
	compare_windows(scan, reading, false, track->count - track->since, unit->end);
	if (track->count != track->base64_since)
		compare_windows(scan, reading, true, track->count - track->base64_since, unit->end);
}

/* What may be, or belong to, an escape; and NUL. */
static void take_escaped(struct scan *scan, uint8_t c, uint64_t place)
{
	struct spelling_unit units[SPELLING_UNITS_MAX];
	size_t count = decoder_take(&scan->decoder, c, place, units);

	scan->escaped_until = scan->tracks[READING_DECODED].count + count;
	for (size_t i = 0; i < count; i++)
		take_text_unit(scan, READING_DECODED, &units[i]);
}

static inline void take_byte(struct scan *scan, uint8_t c)
{
	struct spelling_unit unit = { c, scan->fed, scan->fed + 1 };
	struct track *digits = &scan->tracks[READING_DIGITS];
	uint8_t class = scan->scanner->classes[c];

	scan->fed++;
	take_text_unit(scan, READING_PLAIN, &unit);
	if (!scan->decoder.count && !(class & BEGINS_ESCAPE))
		take_text_unit(scan, READING_DECODED, &unit);
	else
		take_escaped(scan, c, unit.start);
	if (class & IS_DIGIT) {
		add_unit(scan, digits, c, unit.start);
		compare_windows(scan, READING_DIGITS, false, digits->count - digits->since, unit.end);
	} else if (!(class & IS_BETWEEN_DIGITS)) {
		digits->since = digits->count;
	}
	if (class & ENDS_LINE && !scan->scanner->has_line_ends) {
		scan->safe = scan->fed;
		for (int reading = 0; reading < READING_COUNT; reading++)
			scan->tracks[reading].open_until = 0;
	}
}

static void take_end(struct scan *scan)
{
	struct spelling_unit units[SPELLING_UNITS_MAX];
	size_t count = decoder_end(&scan->decoder, units);

	if (count)
		scan->escaped_until = scan->tracks[READING_DECODED].count + count;
	for (size_t i = 0; i < count; i++)
		take_text_unit(scan, READING_DECODED, &units[i]);
}

/* Nothing of what came before counts any more. */
static void forget(struct scan *scan)
{
	for (int reading = 0; reading < READING_COUNT; reading++)
		scan->tracks[reading].since = scan->tracks[reading].base64_since = scan->tracks[reading].open_until =
			scan->tracks[reading].count;
	scan->decoder.count = 0;
	scan->met = (struct scan_met){ 0 };
	scan->masked = 0;
}

struct scan_met scanner_find(const struct scanner *scanner, const void *bytes, size_t size)
{
	struct scan *scan = scanner->scratch;
	const uint8_t *at = bytes;

	if (size < SCAN_WORD_MIN)
		return (struct scan_met){ 0 };
	forget(scan);
	for (size_t i = 0; i < size; i++)
		take_byte(scan, at[i]);
	take_end(scan);
	scan->met.late = 0;
	return scan->met;
}

static int release_until(struct scan *scan, uint64_t until, struct buf *out)
{
	if (until <= scan->released)
		return 0;
	buf_put(out, scan->held.bytes, until - scan->released);
	buf_consume(&scan->held, until - scan->released);
	scan->released = until;
	return buf_error(out);
}

int scan_feed(struct scan *scan, const uint8_t *bytes, size_t size, uint32_t masked, struct buf *out,
	      struct scan_met *ret_met)
{
	uint64_t until;

	buf_put(&scan->held, bytes, size);
	if (buf_error(&scan->held) < 0)
		return buf_error(&scan->held);
	scan->met = (struct scan_met){ 0 };
	scan->masked = masked;
	for (size_t i = 0; i < size; i++)
		take_byte(scan, bytes[i]);
	*ret_met = scan->met;
	until = scan->fed > scan->scanner->hold ? scan->fed - scan->scanner->hold : 0;
	return release_until(scan, until > scan->safe ? until : scan->safe, out);
}

uint32_t scan_open(const struct scan *scan)
{
	uint32_t words = 0;

	for (int reading = 0; reading < READING_COUNT; reading++)
		if (scan->tracks[reading].count < scan->tracks[reading].open_until)
			words |= scan->tracks[reading].open;
	return words;
}

int scan_release(struct scan *scan, struct buf *out)
{
	return release_until(scan, scan->fed, out);
}

int scan_finish(struct scan *scan, uint32_t masked, struct buf *out, struct scan_met *ret_met)
{
	int r;

	scan->met = (struct scan_met){ 0 };
	scan->masked = masked;
	take_end(scan);
	*ret_met = scan->met;
	r = release_until(scan, scan->fed, out);
	forget(scan);
	return r;
}
