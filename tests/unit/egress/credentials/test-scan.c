/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "egress/credentials/scan.h"

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
	return scanner_find(scanner, text, strlen(text)).words;
}

/* base64 -w0, xxd -p, jq -R, and Python's quote(), json.dumps(), html.escape() and bytes.hex(":") say so. */
static const char *const spelled[] = {
	"sk-ant/Zk3v+9\"B=7xLp",
	"SK-ANT/ZK3V+9\"B=7XLP",                  /* in capital letters */
	"sk-ant/zk3v+9\"b=7xlp",
	"{\"k\":\"sk-ant/Zk3v+9\\\"B=7xLp\"}",
	"{\"k\":\"sk-ant\\/Zk3v+9\\\"B=7xLp\"}",
	"sk\\u002dant\\u002fZk3v\\u002B9\\u0022B\\u003d7xLp",
	("\\u0073\\u006b\\u002d\\u0061\\u006e\\u0074\\u002f\\u005a\\u006b\\u0033\\u0076\\u002b"
	 "\\u0039\\u0022\\u0042\\u003d\\u0037\\u0078\\u004c\\u0070"),
	"sk\\x2dant/Zk3v\\x2b9\\x22B=7xLp",
	"sk\\-ant\\/Zk3v\\+9\\\"B\\=7xLp",        /* as a shell quotes */
	"k=sk-ant%2FZk3v%2B9%22B%3D7xLp&x",
	"k=sk-ant%2fZk3v%2b9%22B%3d7xLp&x",
	"k=sk%2Dant%2FZk3v%2B9%22B%3D7xLp&x",     /* unreserved */
	"%73%6B%2D%61%6E%74%2F%5A%6B%33%76%2B%39%22%42%3D%37%78%4C%70",
	"<b>sk-ant/Zk3v+9&quot;B=7xLp</b>",
	"<b>sk-ant/Zk3v+9&#34;B=7xLp</b>",
	"<b>sk&#45;ant&#x2F;Zk3v&#x2b;9&#034;B&equals;7xLp</b>",
	"<b>sk&hyphen;ant&sol;Zk3v&plus;9&quot;B&#61;7xLp</b>",
	"736b2d616e742f5a6b33762b3922423d37784c70",
	"736B2D616E742F5A6B33762B3922423D37784C70",
	"73:6b:2d:61:6e:74:2f:5a:6b:33:76:2b:39:22:42:3d:37:78:4c:70",
	"73:6B:2D:61:6E:74:2F:5A:6B:33:76:2B:39:22:42:3D:37:78:4C:70",
	"73 6b 2d 61 6e 74 2f 5a 6b 33 76 2b 39 22 42 3d 37 78 4c 70",
	"73-6b-2d-61-6e-74-2f-5a-6b-33-76-2b-39-22-42-3d-37-78-4c-70",
	"736b 2d61 6e74 2f5a 6b33 762b 3922 423d 3778 4c70",
	"c2stYW50L1prM3YrOSJCPTd4THA=",          /* alone */
	"eHNrLWFudC9aazN2KzkiQj03eExweXk=",      /* behind x, before yy */
	"eHhzay1hbnQvWmszdis5IkI9N3hMcA==",      /* behind xx */
	"eHh4c2stYW50L1prM3YrOSJCPTd4THB5",      /* behind xxx */
	"c2stYW50L1prM3YrOSJCPTd4THA%3D",
	"{\"k\":\"eHNrLWFudC9aazN2KzkiQj03eExweXk\\u003d\"}",
	"eHNrLWFudC9aazN2KzkiQj03eExweXk%3D",
};

static void test_every_spelling(void **state)
{
	static const char *const not_found[] = {
		"sk-ant/Zk3v+9\"B=7xL", "sk-ant/Zk3v+9\"B=7xLq", "c2stYW50L1prM3YrOSJCPTd4", "",
		"sk-ant/Zk3v+9\"=B7xLp", "sk-ant/Zk3v+9\" B=7xLp", "k-ant/Zk3v+9\"B=7xLp",
		"sk-ant%2FZk3v%2B9%22B%3D7xL%7", "73:6b:2d:61:6e:74:2f:5a:6b:33:76:2b:39:22:42:3d:37:78:4c:7",
		/* What the head of spelling.h says. */
		"sk%252Dant%252FZk3v%252B9%2522B%253D7xLp", "sk=2Dant=2FZk3v=2B9=22B=3D7xLp",
		"sk\\055ant/Zk3v+9\"B=7xLp",
	};
	const char *const texts[] = { secret };
	struct scanner *scanner = scanner_of(texts, 1);

	for (size_t i = 0; i < ARRAY_SIZE(spelled); i++)
		if (find(scanner, spelled[i]) != 1)
			fail_msg("not found: %s", spelled[i]);
	for (size_t i = 0; i < ARRAY_SIZE(not_found); i++)
		if (find(scanner, not_found[i]) != 0)
			fail_msg("found: %s", not_found[i]);
	scanner_free(scanner);
}

/* As UTF-16 and UTF-32 in either order of bytes. */
static void test_every_spelling_in_wide_characters(void **state)
{
	static const size_t widths[] = { 2, 2, 4, 4 }, places[] = { 0, 1, 0, 3 };
	const char *const texts[] = { secret };
	struct scanner *scanner = scanner_of(texts, 1);

	for (size_t i = 0; i < ARRAY_SIZE(spelled); i++)
		for (size_t k = 0; k < ARRAY_SIZE(widths); k++) {
			char wide[1024] = { 0 };

			for (size_t at = 0; spelled[i][at]; at++)
				wide[at * widths[k] + places[k]] = spelled[i][at];
			if (!(scanner_find(scanner, wide, strlen(spelled[i]) * widths[k]).words & 1))
				fail_msg("not found as %zu: %s", k, spelled[i]);
		}
	scanner_free(scanner);
}

static void test_other_letters(void **state)
{
	const char *const texts[] = { "pässword=ÿ€x", "100%41 percent" };
	static const char *const found[] = {
		"pässword=ÿ€x", "p\\u00e4ssword=\\u00ff\\u20acx", "p&#228;ssword=&#xff;&#8364;x",
		"p%C3%A4ssword%3d%c3%bf%e2%82%acx",
	};
	static const char *const percent[] = { "100%41 percent", "100%2541+percent", "100%2541%20percent",
					       "100%41&#32;percent", "100\\u002541 percent" };
	struct scanner *scanner = scanner_of(texts, 2);

	for (size_t i = 0; i < ARRAY_SIZE(found); i++)
		if (find(scanner, found[i]) != 1)
			fail_msg("not found: %s", found[i]);
	for (size_t i = 0; i < ARRAY_SIZE(percent); i++)
		if (find(scanner, percent[i]) != 2)
			fail_msg("not found: %s", percent[i]);
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
	assert_int_equal(scanner_add_part(scanner, 1, "a long part", 11), 0);
	assert_int_equal(scanner_finish(scanner), 0);
	assert_int_equal(find(scanner, "12345678"), 2);
	assert_int_equal(find(scanner, "a long part"), 0);
	assert_int_equal(scanner_find(scanner, "A long part", 11).parts, 2);
	memcpy(stream + 7, text, SCAN_WORD_MAX);
	assert_int_equal(scanner_find(scanner, stream, 7 + SCAN_WORD_MAX).words, 4);
	assert_int_equal(scanner_find(scanner, stream, 6 + SCAN_WORD_MAX).words, 0);
	scanner_free(scanner);
}

/* What comes of text that is given in pieces of this size. */
static uint32_t stream(const struct scanner *scanner, const char *text, size_t piece, uint32_t masked, struct buf *out)
{
	size_t size = strlen(text);
	struct scan_met met;
	struct scan *scan;
	uint32_t words = 0;

	assert_int_equal(scan_new(&scan, scanner), 0);
	for (size_t at = 0; at < size; at += piece) {
		size_t count = size - at < piece ? size - at : piece;

		assert_int_equal(scan_feed(scan, (const uint8_t *)text + at, count, masked, out, &met), 0);
		words |= met.words;
		assert_int_equal(met.late, 0);
	}
	assert_int_equal(scan_finish(scan, masked, out, &met), 0);
	scan_free(scan);
	return words | met.words;
}

static void test_masked_across_borders(void **state)
{
	const char *const texts[] = { secret, "canary-1", "unmasked!" };
	static const char text[] = "a sk-ant/Zk3v+9\"B=7xLp b sk-ant/Zk3v sk-ant/Zk3v+9\"B=7xLp "
				   "canary-1unmasked!canary-&#45; sk&#45;ant%2fZk3v\\u002b9\\\"B=7xLp\n"
				   "%73:6b:2d:61:6e:74:2f:5A:6b:33:76:2b:39:22:42:3d:37:78:4c:70: "
				   "canary%2d1 canary&#x2d;1";
	static const char wanted[] = "a ******************** b sk-ant/Zk3v ******************** "
				     "********unmasked!canary-&#45; ********************************\n"
				     "%***********************************************************: "
				     "********** *************";
	struct scanner *scanner = scanner_of(texts, 3);

	for (size_t piece = 1; piece < sizeof text; piece++) {
		cleanup_buf struct buf out;

		buf_init(&out, 1 << 16);
		assert_int_equal(stream(scanner, text, piece, 3, &out), 7);
		assert_string_equal(buf_text(&out), wanted);
	}
	scanner_free(scanner);
}

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

/* Who ends the stream at a hit has let go no byte of it. */
static void test_nothing_of_a_hit_has_left(void **state)
{
	const char *const texts[] = { secret };
	struct scanner *scanner = scanner_of(texts, 1);
	cleanup_buf struct buf out;
	struct scan_met met;
	struct scan *scan;

	for (size_t i = 0; i < ARRAY_SIZE(spelled); i++) {
		bool is_met = false;
		size_t at = 0;

		buf_init(&out, 1 << 16);
		assert_int_equal(scan_new(&scan, scanner), 0);
		assert_int_equal(scan_feed(scan, (const uint8_t *)"say\n", 4, 0, &out, &met), 0);
		for (; spelled[i][at] && !is_met; at++) {
			assert_int_equal(scan_feed(scan, (const uint8_t *)spelled[i] + at, 1, 0, &out, &met), 0);
			is_met = met.words;
		}
		assert_true(is_met);
		assert_string_equal(buf_text(&out), "say\n");
		scan_free(scan);
		buf_done(&out);
	}
	scanner_free(scanner);
}

/* Always as many bytes are held, but those of a line that is over, which no text goes on behind. */
static void test_how_much_is_held(void **state)
{
	enum { HELD = SPELLING_BYTES_PER_BYTE * (sizeof secret - 1) + SPELLING_PENDING_MAX };
	const char *const texts[] = { secret };
	struct scanner *scanner = scanner_of(texts, 1);
	cleanup_buf struct buf out;
	struct scan_met met;
	struct scan *scan;

	buf_init(&out, 1 << 16);
	assert_int_equal(scan_new(&scan, scanner), 0);
	for (size_t i = 1; i < 3 * HELD; i++) {
		uint8_t byte = (uint8_t)(i % 7 ? secret[i % (sizeof secret - 1)] : 'x');

		assert_int_equal(scan_feed(scan, &byte, 1, 0, &out, &met), 0);
		assert_int_equal(out.size, i > HELD ? i - HELD : 0);
	}
	assert_int_equal(scan_feed(scan, (const uint8_t *)"data: sk-ant\n\nsk-ant", 20, 0, &out, &met), 0);
	assert_int_equal(out.size, 3 * HELD - 1 + 14);
	assert_int_equal(scan_release(scan, &out), 0);
	assert_int_equal(out.size, 3 * HELD - 1 + 20);
	scan_free(scan);
	scanner_free(scanner);
}

/* From its head on, in every spelling, until it is whole or cannot be. */
static void test_where_a_text_may_go_on(void **state)
{
	static const char *const heads[] = {
		"sk-ant/Zk3v+", "SK-ANT/ZK3V+", "sk%2dant%2fZk3v%2b", "sk\\u002dant\\/Zk3v&#43;",
		"736b2d616e742f5a6b33762b", "73:6b:2d:61:6e:74:2f:5a:6b:33:76:2b", "c2stYW50L1prM3Yr",
	};
	struct scanner *scanner;
	cleanup_buf struct buf out;
	struct scan_met met;

	buf_init(&out, 1 << 16);
	assert_int_equal(scanner_new(&scanner), 0);
	assert_int_equal(scanner_add(scanner, 3, secret, strlen(secret)), 0);
	assert_int_equal(scanner_add_head(scanner, 3, secret, strlen(secret), 12), 0);
	assert_int_equal(scanner_add_head(scanner, 4, secret, 12, 12), 1);
	assert_int_equal(scanner_finish(scanner), 0);
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		size_t size = strlen(heads[i]);

		/* Right or wrong behind it: 8 units more, or a line's end. */
		for (size_t more = 0; more <= 9; more++) {
			struct scan *scan;

			assert_int_equal(scan_new(&scan, scanner), 0);
			assert_int_equal(scan_feed(scan, (const uint8_t *)heads[i], size - 1, 8, &out, &met), 0);
			assert_int_equal(scan_open(scan), 0);
			assert_int_equal(scan_feed(scan, (const uint8_t *)heads[i] + size - 1, 1, 8, &out, &met), 0);
			assert_int_equal(scan_open(scan), 8);
			assert_int_equal(scan_feed(scan, (const uint8_t *)"aaaaaaaaa", more, 8, &out, &met), 0);
			if (i < 4)
				assert_int_equal(scan_open(scan), more < 8 ? 8 : 0);
			assert_int_equal(scan_feed(scan, (const uint8_t *)"\n", 1, 8, &out, &met), 0);
			assert_int_equal(scan_open(scan), 0);
			scan_free(scan);
		}
	}
	scanner_free(scanner);
}

/* What was let go is met all the same when it is whole, and is told to be late; what is still there is masked. */
static void test_let_go_in_the_middle(void **state)
{
	const char *const texts[] = { secret };
	struct scanner *scanner = scanner_of(texts, 1);
	size_t size = strlen(secret);
	struct scan_met met;
	struct scan *scan;

	for (size_t i = 1; i < size; i++) {
		cleanup_buf struct buf out;

		buf_init(&out, 1 << 16);
		assert_int_equal(scan_new(&scan, scanner), 0);
		assert_int_equal(scan_feed(scan, (const uint8_t *)secret, i, 1, &out, &met), 0);
		assert_int_equal(scan_release(scan, &out), 0);
		assert_int_equal(out.size, i);
		assert_int_equal(met.words, 0);
		assert_int_equal(scan_feed(scan, (const uint8_t *)secret + i, size - i, 1, &out, &met), 0);
		assert_int_equal(met.words, 1);
		assert_int_equal(met.late, 1);
		assert_int_equal(scan_finish(scan, 1, &out, &met), 0);
		for (size_t k = i; k < size; k++)
			assert_int_equal(out.bytes[k], '*');
		scan_free(scan);
	}
	scanner_free(scanner);
}

/* A text with line ends in it, as a private key has them, is not let go at them. */
static void test_texts_of_several_lines(void **state)
{
	const char *const texts[] = { "--BEGIN--\nline one\nline two\n" };
	struct scanner *scanner = scanner_of(texts, 1);
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 16);
	assert_int_equal(stream(scanner, "x--BEGIN--\nline one\nline two\ny", 1, 1, &out), 1);
	assert_string_equal(buf_text(&out), "x****************************y");
	assert_int_equal(find(scanner, "\"--BEGIN--\\nline one\\nline two\\n\""), 1);
	scanner_free(scanner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_spelling),
		cmocka_unit_test(test_every_spelling_in_wide_characters),
		cmocka_unit_test(test_other_letters),
		cmocka_unit_test(test_base64_of_urls),
		cmocka_unit_test(test_texts_within_texts),
		cmocka_unit_test(test_short_and_long),
		cmocka_unit_test(test_masked_across_borders),
		cmocka_unit_test(test_one_text_of_two_words),
		cmocka_unit_test(test_nothing_of_a_hit_has_left),
		cmocka_unit_test(test_how_much_is_held),
		cmocka_unit_test(test_where_a_text_may_go_on),
		cmocka_unit_test(test_let_go_in_the_middle),
		cmocka_unit_test(test_texts_of_several_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
