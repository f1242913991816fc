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
		cmocka_unit_test(known_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
