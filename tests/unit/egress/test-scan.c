/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "egress/scan.h"

static const char secret[] = "sk-ant/Zk3v+9\"B=7xLp";

static struct scanner *scanner_of(const char *const *texts, size_t count)
{
	struct scanner *scanner;

	assert_int_equal(scanner_new(&scanner), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(scanner_add(scanner, (unsigned)i, texts[i], strlen(texts[i])), 0);
	assert_int_equal(scanner_finish(scanner), 0);
	return scanner;
}

static uint32_t find(const struct scanner *scanner, const char *text)
{
	return scanner_find(scanner, text, strlen(text));
}

/* base64 -w0, xxd -p, jq -R, python3 urllib.parse.quote and json.dumps say so. */
static void test_every_spelling(void **state)
{
	static const char *const found[] = {
		"sk-ant/Zk3v+9\"B=7xLp",
		"{\"k\":\"sk-ant/Zk3v+9\\\"B=7xLp\"}",
		"{\"k\":\"sk-ant\\/Zk3v+9\\\"B=7xLp\"}",
		"k=sk-ant%2FZk3v%2B9%22B%3D7xLp&x",
		"k=sk-ant%2fZk3v%2b9%22B%3d7xLp&x",
		"736b2d616e742f5a6b33762b3922423d37784c70",
		"736B2D616E742F5A6B33762B3922423D37784C70",
		"c2stYW50L1prM3YrOSJCPTd4THA=",          /* alone */
		"eHNrLWFudC9aazN2KzkiQj03eExweXk=",      /* behind x, before yy */
		"eHhzay1hbnQvWmszdis5IkI9N3hMcA==",      /* behind xx */
		"eHh4c2stYW50L1prM3YrOSJCPTd4THB5",      /* behind xxx */
	};
	static const char *const not_found[] = {
		"sk-ant/Zk3v+9\"B=7xL", "sk-ant/Zk3v+9\"B=7xLP", "c2stYW50L1prM3YrOSJCPTd4", "",
		"sk-ant/Zk3v+9\" B=7xLp",
	};
	const char *const texts[] = { secret };
	struct scanner *scanner = scanner_of(texts, 1);

	for (size_t i = 0; i < ARRAY_SIZE(found); i++)
		if (find(scanner, found[i]) != 1)
			fail_msg("not found: %s", found[i]);
	for (size_t i = 0; i < ARRAY_SIZE(not_found); i++)
		if (find(scanner, not_found[i]) != 0)
			fail_msg("found: %s", not_found[i]);
	scanner_free(scanner);
}

static void test_base64_of_urls(void **state)
{
	const char *const texts[] = { "\xff\xfe\xfd\xfb\xff\xfe\xfd\xfb" };
	struct scanner *scanner = scanner_of(texts, 1);

	assert_int_equal(find(scanner, "//79+//+/fs="), 1);
	assert_int_equal(find(scanner, "__79-__-_fs"), 1);
	scanner_free(scanner);
}

static void test_texts_within_texts(void **state)
{
	const char *const texts[] = { "abcdefgh", "xxabcdefghyy", "efghijkl", "abcdefghijkl" };
	struct scanner *scanner = scanner_of(texts, 4);

	assert_int_equal(find(scanner, "xxabcdefghyy"), 3);
	assert_int_equal(find(scanner, "xxabcdefghijkl"), 1 | 4 | 8);
	assert_int_equal(find(scanner, "xxabcdefghiefghijkl"), 1 | 4);
	scanner_free(scanner);
}

static void test_short_and_long(void **state)
{
	static char text[4 * SCAN_WORD_MAX], stream[5 * SCAN_WORD_MAX];
	struct scanner *scanner;

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)('a' + i * i % 23 + i % 3);
	assert_int_equal(scanner_new(&scanner), 0);
	assert_int_equal(scanner_add(scanner, 0, "1234567", 7), 1);
	assert_int_equal(scanner_add(scanner, 1, "12345678", 8), 0);
	assert_int_equal(scanner_add(scanner, 2, text, sizeof text), 0);
	assert_int_equal(scanner_finish(scanner), 0);
	assert_int_equal(find(scanner, "12345678"), 2);
	memcpy(stream + 7, text, SCAN_WORD_MAX);
	assert_int_equal(scanner_find(scanner, stream, 7 + SCAN_WORD_MAX), 4);
	assert_int_equal(scanner_find(scanner, stream, 6 + SCAN_WORD_MAX), 0);
	scanner_free(scanner);
}

/* What comes of text that is given in pieces of this size. */
static uint32_t stream(const struct scanner *scanner, const char *text, size_t piece, uint32_t masked, struct buf *out)
{
	size_t size = strlen(text);
	uint32_t words = 0, some;
	struct scan scan;

	scan_init(&scan, scanner);
	for (size_t at = 0; at < size; at += piece) {
		size_t count = size - at < piece ? size - at : piece;

		assert_int_equal(scan_feed(&scan, (const uint8_t *)text + at, count, masked, out, &some), 0);
		words |= some;
	}
	assert_int_equal(scan_finish(&scan, out), 0);
	scan_done(&scan);
	return words;
}

static void test_masked_across_borders(void **state)
{
	const char *const texts[] = { secret, "canary-1", "unmasked!" };
	static const char text[] = "a sk-ant/Zk3v+9\"B=7xLp b sk-ant/Zk3v sk-ant/Zk3v+9\"B=7xLp "
				   "canary-1unmasked!canary-";
	static const char wanted[] = "a ******************** b sk-ant/Zk3v ******************** "
				     "********unmasked!canary-";
	struct scanner *scanner = scanner_of(texts, 3);

	for (size_t piece = 1; piece < sizeof text; piece++) {
		cleanup_buf struct buf out;

		buf_init(&out, 1 << 16);
		assert_int_equal(stream(scanner, text, piece, 3, &out), 7);
		assert_string_equal(buf_text(&out), wanted);
	}
	scanner_free(scanner);
}

/* Who ends the stream at a hit has let go no byte of it. */
/* Two secrets may have one value: each is found, and masked for whichever of them it is asked. */
static void test_one_text_of_two_words(void **state)
{
	const char *const texts[] = { "the same value", "the same value" };
	struct scanner *scanner = scanner_of(texts, 2);

	assert_int_equal(find(scanner, "the same value"), 3);
	for (uint32_t masked = 1; masked <= 2; masked++) {
		cleanup_buf struct buf out;

		buf_init(&out, 1 << 16);
		assert_int_equal(stream(scanner, "is the same value.", 5, masked, &out), 3);
		assert_string_equal(buf_text(&out), "is **************.");
	}
	scanner_free(scanner);
}

static void test_nothing_of_a_hit_has_left(void **state)
{
	const char *const texts[] = { secret };
	struct scanner *scanner = scanner_of(texts, 1);
	cleanup_buf struct buf out;
	uint32_t words = 0;
	struct scan scan;

	buf_init(&out, 1 << 16);
	scan_init(&scan, scanner);
	assert_int_equal(scan_feed(&scan, (const uint8_t *)"say ", 4, 0, &out, &words), 0);
	for (size_t i = 0; i + 1 < strlen(secret); i++) {
		assert_int_equal(scan_feed(&scan, (const uint8_t *)secret + i, 1, 0, &out, &words), 0);
		assert_int_equal(words, 0);
		assert_string_equal(buf_text(&out), "say ");
	}
	assert_int_equal(scan_feed(&scan, (const uint8_t *)secret + strlen(secret) - 1, 1, 0, &out, &words), 0);
	assert_int_equal(words, 1);
	assert_string_equal(buf_text(&out), "say ");
	scan_done(&scan);
	scanner_free(scanner);
}

/* What cannot be the beginning of a text any more is not held. */
static void test_nothing_else_is_held(void **state)
{
	const char *const texts[] = { secret };
	struct scanner *scanner = scanner_of(texts, 1);
	cleanup_buf struct buf out;
	uint32_t words;
	struct scan scan;

	buf_init(&out, 1 << 16);
	scan_init(&scan, scanner);
	assert_int_equal(scan_feed(&scan, (const uint8_t *)"data: sk-anx\n\n", 14, 0, &out, &words), 0);
	assert_string_equal(buf_text(&out), "data: sk-anx\n\n");
	scan_done(&scan);
	scanner_free(scanner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_spelling),	  cmocka_unit_test(test_base64_of_urls),
		cmocka_unit_test(test_texts_within_texts), cmocka_unit_test(test_short_and_long),
		cmocka_unit_test(test_masked_across_borders), cmocka_unit_test(test_one_text_of_two_words),
		cmocka_unit_test(test_nothing_of_a_hit_has_left),
		cmocka_unit_test(test_nothing_else_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
