/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two words and a stream, all arbitrary: in pieces the same is found as at once, a word that stands there plainly is
 * found, the number of bytes stays, and only bytes of hits change.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { WORD_SIZE = 10, WORDS = 2, HEAD_SIZE = WORDS * WORD_SIZE + 1 };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void try_stream(const struct scanner *scanner, const uint8_t *bytes, size_t size, size_t piece)
{
	cleanup_buf struct buf out;
	uint32_t words = 0, some;
	struct scan scan;

	buf_init(&out, size + 1);
	scan_init(&scan, scanner);
	for (size_t at = 0; at < size; at += piece) {
		require(scan_feed(&scan, bytes + at, size - at < piece ? size - at : piece, 3, &out, &some) == 0);
		words |= some;
	}
	require(scan_finish(&scan, &out) == 0 && out.size == size);
	require(words == scanner_find(scanner, bytes, size));
	for (size_t i = 0; i < size; i++)
		require(out.bytes[i] == bytes[i] || (words && out.bytes[i] == '*'));
	scan_done(&scan);
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
			require(scanner_find(scanner, bytes + HEAD_SIZE, size - HEAD_SIZE) != 0);
	try_stream(scanner, bytes + HEAD_SIZE, size - HEAD_SIZE, 1);
	try_stream(scanner, bytes + HEAD_SIZE, size - HEAD_SIZE, bytes[HEAD_SIZE - 1] + 1u);
	scanner_free(scanner);
	return 0;
}
