/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looks for known texts (secrets, canaries, placeholders) in streams of bytes, as they are and in the encodings that
 * programs put them in: percent-encoding, base64 at each alignment, hexadecimal, JSON. Exact: what is compressed,
 * encrypted or cut up is not seen. Pure and bounded: time per byte does not depend on how many texts there are. Runs in
 * atoll-egress.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	SCAN_WORD_MIN = 8,         /* a shorter text is met by accident, and is not looked for */
	SCAN_WORD_MAX = 1024,      /* a longer one is known by its first bytes */
	SCAN_WORDS_MAX = 32,
	SCAN_SPELLING_MAX = 3 * SCAN_WORD_MAX,
	SCAN_FEED_MAX = 64 << 10,
};

/* All texts, made once. */
struct scanner;

/* -ENOMEM. */
int scanner_new(struct scanner **ret_scanner) MUST_USE;
void scanner_free(struct scanner *scanner);

/*
 * One more text, before the first stream: size bytes (copied, and wiped by scanner_free()); word (below SCAN_WORDS_MAX)
 * is what a hit tells. 0; 1 when it is too short and is not looked for; -E2BIG, -ENOMEM.
 */
int scanner_add(struct scanner *scanner, unsigned word, const void *text, size_t size) MUST_USE;

/* After the last text. -ENOMEM. */
int scanner_finish(struct scanner *scanner) MUST_USE;

/* The words of which one was met in these bytes alone, as bits. */
uint32_t scanner_find(const struct scanner *scanner, const void *bytes, size_t size);

/* One stream: what may yet become a hit is held back, so that a text which is not to pass passes in no part. */
struct scan {
	const struct scanner *scanner; /* borrowed */
	uint32_t state;
	struct buf held;
};

void scan_init(struct scan *scan, const struct scanner *scanner);
void scan_done(struct scan *scan);

/*
 * The next bytes, at most SCAN_FEED_MAX. Appends to out what can be let go; the words that were met are *ret_words, and
 * of those in masked every byte is '*' in out. The number of bytes never changes. -ENOMEM.
 */
int scan_feed(struct scan *scan, const uint8_t *bytes, size_t size, uint32_t masked, struct buf *out,
	      uint32_t *ret_words) MUST_USE;

/* The end: what was held goes, for nothing follows. */
int scan_finish(struct scan *scan, struct buf *out) MUST_USE;
