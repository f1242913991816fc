/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two words and a stream, all arbitrary: in pieces the same is found as at once, a word that stands there plainly is
 * found, the number of bytes stays, and only bytes of hits change; whether they are let go in between makes no
 * difference to what is found.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/credentials/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { WORD_SIZE = 10, WORDS = 2, HEAD_SIZE = WORDS * WORD_SIZE + 1 };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void try_stream(const struct scanner *scanner, const uint8_t *bytes, size_t size, size_t piece, bool lets_go)
{
	cleanup_buf struct buf out;
	struct scan_met some;
	struct scan *scan;
	uint32_t words = 0;

	buf_init(&out, size + 1);
	require(scan_new(&scan, scanner) == 0);
	for (size_t at = 0, count; at < size; at += count) {
		count = size - at < piece ? size - at : piece;
		require(scan_feed(scan, bytes + at, count, 3, &out, &some) == 0);
		words |= some.words;
		require(!some.late || lets_go);
		if (lets_go)
			require(scan_release(scan, &out) == 0 && out.size == at + count);
	}
	require(scan_finish(scan, 3, &out, &some) == 0 && out.size == size);
	words |= some.words;
	require(words == scanner_find(scanner, bytes, size).words);
	for (size_t i = 0; i < size; i++)
		require(out.bytes[i] == bytes[i] || (words && out.bytes[i] == '*'));
	scan_free(scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct scanner *scanner;

	if (size < HEAD_SIZE || size > SCAN_FEED_MAX)
		return 0;
	require(scanner_new(&scanner) == 0);
	for (unsigned word = 0; word < WORDS; word++)
		require(scanner_add(scanner, word, bytes + word * WORD_SIZE, WORD_SIZE) == 0);
	require(scanner_finish(scanner) == 0);
	for (unsigned word = 0; word < WORDS; word++)
		if (memmem(bytes + HEAD_SIZE, size - HEAD_SIZE, bytes + word * WORD_SIZE, WORD_SIZE))
			require(scanner_find(scanner, bytes + HEAD_SIZE, size - HEAD_SIZE).words != 0);
	try_stream(scanner, bytes + HEAD_SIZE, size - HEAD_SIZE, 1, false);
	try_stream(scanner, bytes + HEAD_SIZE, size - HEAD_SIZE, 1, true);
	try_stream(scanner, bytes + HEAD_SIZE, size - HEAD_SIZE, bytes[HEAD_SIZE - 1] + 1u, false);
	scanner_free(scanner);
	return 0;
}
