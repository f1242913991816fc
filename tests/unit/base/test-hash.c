/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/str.h"

enum { SMALL = 700, MILLION = 1000000 };

static uint8_t bytes[MILLION];

static void fill(void)
{
	uint32_t value = 1;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)((value = value * 1664525u + 1013904223u) >> 24);
}

static void expect_hex(const void *text, size_t size, const char *wanted)
{
	char hex[HASH_HEX_SIZE];
	struct hash hash;

	hash_bytes(&hash, text, size);
	hash_to_hex(&hash, hex);
	assert_string_equal(hex, wanted);
}

static void pieces_may_begin_and_end_anywhere(void **state)
{
	struct hash whole, split;

	fill();
	for (size_t size = 0; size < SMALL; size += 37) {
		hash_bytes(&whole, bytes, size);
		for (size_t at = 0; at <= size; at++) {
			const struct hash_piece pieces[] = { { bytes, at / 2 }, { bytes + at / 2, at - at / 2 },
							     { bytes + at, size - at } };

			hash_pieces(&split, pieces, ARRAY_SIZE(pieces));
			assert_memory_equal(&split, &whole, sizeof split);
		}
	}
}

/* Long pieces go by the processor's own instructions, where it has them, and short ones never. */
static void long_pieces_are_as_short_ones(void **state)
{
	enum { SHORT = 1000 };

	fill();
	for (size_t size = 3900; size < 14000; size += 61) {
		struct hash_stream stream, in_short;
		size_t begin = size % 131;
		struct hash whole, wanted;

		hash_stream_begin(&stream);
		hash_stream_begin(&in_short);
		hash_stream_add(&stream, bytes, begin);
		hash_stream_add(&stream, bytes + begin, size);
		hash_stream_add(&stream, bytes + begin + size, size);
		hash_stream_end(&stream, &whole);
		for (size_t at = 0; at < begin + 2 * size; at += SHORT)
			hash_stream_add(&in_short, bytes + at,
					begin + 2 * size - at < SHORT ? begin + 2 * size - at : SHORT);
		hash_stream_end(&in_short, &wanted);
		assert_memory_equal(&whole, &wanted, sizeof whole);
	}
}

/* FIPS 180-4's examples, and NIST's million. */
static void known_hashes(void **state)
{
	static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

	expect_hex("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	expect_hex("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect_hex(two_blocks, strlen(two_blocks),
		   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(bytes, 'a', sizeof bytes);
	expect_hex(bytes, sizeof bytes, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_may_begin_and_end_anywhere),
		cmocka_unit_test(long_pieces_are_as_short_ones),
		cmocka_unit_test(known_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
