/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looks for known texts (secrets, canaries, placeholders) in streams of bytes, as they are and as programs spell them
 * (spelling.h). Exact: what is compressed, encrypted or cut up is not seen.
 *
 * Whoever sends a guess must not learn how much of it was right. So nothing here depends on a part of a text: neither
 * time, nor memory, nor which bytes are held back. A text is met whole, or it is not. Pure and bounded. Runs in
 * atoll-egress.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/credentials/spelling.h"

enum {
	SCAN_WORD_MIN = 8,         /* a shorter text is met by accident, and is not looked for */
	SCAN_WORD_MAX = 1024,      /* a longer one is known by its first bytes */
	SCAN_WORDS_MAX = 32,
	SCAN_HOLD_MAX = SPELLING_BYTES_PER_BYTE * SCAN_WORD_MAX + SPELLING_PENDING_MAX,
	SCAN_FEED_MAX = 64 << 10,
};

/* All texts, made once. */
struct scanner;

/* -ENOMEM, and what getrandom(2) says. */
int scanner_new(struct scanner **ret_scanner) MUST_USE;
void scanner_free(struct scanner *scanner);

/*
 * One more text, before the first stream: size bytes (not kept); word (below SCAN_WORDS_MAX) is what a hit tells. 0; 1
 * when it is too short and is not looked for; -E2BIG, -ENOMEM.
 */
int scanner_add(struct scanner *scanner, unsigned word, const void *text, size_t size) MUST_USE;

/* The same for a part of a text that is so long that nobody has it by chance. */
int scanner_add_part(struct scanner *scanner, unsigned word, const void *text, size_t size) MUST_USE;

/*
 * Its first head bytes as well, which are so many that nobody guesses them: for scan_open(). 1 when no head of it is to
 * be looked for.
 */
int scanner_add_head(struct scanner *scanner, unsigned word, const void *text, size_t size, size_t head) MUST_USE;

/* After the last text. -ENOMEM. */
int scanner_finish(struct scanner *scanner) MUST_USE;

/* Which words were met, as bits. */
struct scan_met {
	uint32_t words;
	uint32_t parts;      /* of which a long part was */
	uint32_t late;       /* words, of which some bytes had been let go before the last one came */
};

/* What was met in these bytes alone. */
struct scan_met scanner_find(const struct scanner *scanner, const void *bytes, size_t size);

/* One stream: its last bytes are held back, always the same number. */
struct scan;

/* -ENOMEM. scanner is borrowed. */
int scan_new(struct scan **ret_scan, const struct scanner *scanner) MUST_USE;
void scan_free(struct scan *scan);

/*
 * The next bytes, at most SCAN_FEED_MAX. Appends to out all but the last bytes of the stream, of which so many are held
 * as the longest text may have; up to a line's end all goes, for no text goes on behind it. Of the words in masked that
 * were met every byte is '*' that is still held. The number of bytes never changes. -ENOMEM.
 */
int scan_feed(struct scan *scan, const uint8_t *bytes, size_t size, uint32_t masked, struct buf *out,
	      struct scan_met *ret_met) MUST_USE;

/*
 * The words whose head stands so near to the end of what came that the text may yet go on: released now, it would be
 * cut. What stands behind a head does not matter, be it right or wrong.
 */
uint32_t scan_open(const struct scan *scan);

/* What is held goes, though more may follow: a text that is whole by then is met all the same, and is late. */
int scan_release(struct scan *scan, struct buf *out) MUST_USE;

/* The end: what was held goes, for nothing follows. As scan_feed(). */
int scan_finish(struct scan *scan, uint32_t masked, struct buf *out, struct scan_met *ret_met) MUST_USE;
