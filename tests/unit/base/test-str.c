/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/names.h"
#include "base/str.h"
#include "base/utf8.h"

static void comparisons(void **state)
{
	assert_true(str_equal(NULL, NULL));
	assert_false(str_equal(NULL, ""));
	assert_false(str_equal("", NULL));
	assert_true(str_equal("a", "a"));
	assert_true(str_has_prefix("abc", ""));
	assert_true(str_has_prefix("abc", "abc"));
	assert_false(str_has_prefix("ab", "abc"));
	assert_true(str_has_suffix("abc", "bc"));
	assert_true(str_has_suffix("abc", ""));
	assert_false(str_has_suffix("c", "bc"));
}

static void copies_fit_or_are_empty(void **state)
{
	char out[4] = "xyz";

	assert_int_equal(str_copy(out, sizeof out, "abc"), 0);
	assert_string_equal(out, "abc");
	assert_int_equal(str_copy(out, sizeof out, "abcd"), -ENAMETOOLONG);
	assert_string_equal(out, "");
	assert_int_equal(str_copy(NULL, 0, ""), -ENAMETOOLONG);
	assert_int_equal(str_format(out, sizeof out, "%d", 123), 0);
	assert_string_equal(out, "123");
	assert_int_equal(str_format(out, sizeof out, "%d", 1234), -ENAMETOOLONG);
	assert_string_equal(out, "");
}

static void vectors(void **state)
{
	char **strv = calloc(3, sizeof *strv), **copy, **empty;

	assert_int_equal(strv_count(NULL), 0);
	strv[0] = str_dup("a");
	strv[1] = str_printf("%s-%d", "b", 2);
	assert_int_equal(strv_count((const char *const *)strv), 2);
	assert_string_equal(strv[1], "b-2");
	copy = strv_copy((const char *const *)strv);
	empty = strv_copy(NULL);
	strv_free(strv);
	assert_int_equal(strv_count((const char *const *)copy), 2);
	assert_string_equal(copy[0], "a");
	assert_string_equal(copy[1], "b-2");
	assert_null(empty[0]);
	strv_free(copy);
	strv_free(empty);
	strv_free(NULL);
	assert_null(str_dup(NULL));
}

static void normal_paths(void **state)
{
	static const char *const normal[] = { "/", "/a", "a", "/a/b", "a/b.c", "/.a/..b/c..", "/...", "..." };
	static const char *const others[] = { "",     "//",   "/a/",   "a/",   "/a//b", "a//b", ".",    "..",
					      "/.",   "/..",  "/a/.",  "a/..", "./a",   "../a", "/./a", "/a/../b",
					      "/a/./b" };

	for (size_t i = 0; i < ARRAY_SIZE(normal); i++)
		assert_true(path_is_normal(normal[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(path_is_normal(others[i]));
}

static void assert_normal(const char *path, const char *expected)
{
	char out[64];

	assert_int_equal(path_normalise(out, sizeof out, path), 0);
	assert_string_equal(out, expected);
}

static void whether_a_path_is_normal(void **state)
{
	assert_normal("/", "/");
	assert_normal("//", "/");
	assert_normal("/.", "/");
	assert_normal("/..", "/");
	assert_normal("/../../..", "/");
	assert_normal("/a/", "/a");
	assert_normal("//a///b//", "/a/b");
	assert_normal("/a/./b/.", "/a/b");
	assert_normal("/a/../b", "/b");
	assert_normal("/a/b/../../../c", "/c");
	assert_normal("/a/...", "/a/...");
	assert_normal("/a/..b/c..", "/a/..b/c..");
	assert_normal("/.a", "/.a");
	assert_normal("/\n\xff", "/\n\xff");
}

static void paths_at_the_edge_of_the_buffer(void **state)
{
	char out[5];

	assert_int_equal(path_normalise(out, sizeof out, "/abc"), 0);
	assert_string_equal(out, "/abc");
	assert_int_equal(path_normalise(out, sizeof out, "/abcd"), -ENAMETOOLONG);
	assert_string_equal(out, "");
	assert_int_equal(path_normalise(out, sizeof out, "/a/b/../../c"), 0);
	assert_int_equal(path_normalise(out, sizeof out, "/a/bcdef/../.."), -ENAMETOOLONG);
	assert_int_equal(path_normalise(out, 2, "/"), 0);
	assert_string_equal(out, "/");
	out[0] = 'x';
	assert_int_equal(path_normalise(out, 1, "/"), -ENAMETOOLONG);
	assert_string_equal(out, "");
	assert_int_equal(path_normalise(out, sizeof out, ""), -EINVAL);
	assert_int_equal(path_normalise(out, sizeof out, "a"), -EINVAL);
	assert_string_equal(out, "");
}

static void joined_paths(void **state)
{
	char out[32];

	assert_int_equal(path_join(out, sizeof out, "/a/b", "../c"), 0);
	assert_string_equal(out, "/a/c");
	assert_int_equal(path_join(out, sizeof out, "/a", "/b"), 0);
	assert_string_equal(out, "/b");
	assert_int_equal(path_join(out, sizeof out, "/a", "../../../etc"), 0);
	assert_string_equal(out, "/etc");
	assert_int_equal(path_join(out, sizeof out, "a", "b"), -EINVAL);
	assert_int_equal(path_join(out, sizeof out, "/a", ""), -EINVAL);
}

static void below_means_components(void **state)
{
	assert_true(path_is_below("/a", "/a"));
	assert_true(path_is_below("/a/b", "/a"));
	assert_false(path_is_below("/ab", "/a"));
	assert_false(path_is_below("/a", "/a/b"));
	assert_true(path_is_below("/a", "/"));
	assert_true(path_is_below("/", "/"));
	assert_false(path_is_below("/", "/a"));
	assert_string_equal(path_basename("/a/b"), "b");
	assert_string_equal(path_basename("/"), "");
	assert_string_equal(path_basename("b"), "b");
}

static void a_path_beside_another(void **state)
{
	char out[6];

	assert_int_equal(path_beside(out, sizeof out, "/a/b", "c"), 0);
	assert_string_equal(out, "/a/c");
	assert_int_equal(path_beside(out, sizeof out, "b", "c/d"), 0);
	assert_string_equal(out, "c/d");
	assert_int_equal(path_beside(out, sizeof out, "/a/b", "cde"), -ENAMETOOLONG);
}

static void names_and_their_neighbours(void **state)
{
	static const char *const names[] = { "deny", NULL, "stage", "allow" };
	char longest[200];

	assert_int_equal(names_find(names, 4, "stage"), 2);
	assert_int_equal(names_find(names, 4, "Stage"), -1);
	assert_int_equal(names_find(names, 4, ""), -1);
	assert_string_equal(names_get(names, 4, 3), "allow");
	assert_string_equal(names_get(names, 4, 1), "?");
	assert_string_equal(names_get(names, 4, 99), "?");
	assert_string_equal(names_nearest(names, 4, "alow"), "allow");
	assert_string_equal(names_nearest(names, 4, "satge"), "stage");
	assert_null(names_nearest(names, 4, "network"));
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	assert_null(names_nearest(names, 4, longest));
}

static size_t decode(const char *bytes, uint32_t *ret_rune)
{
	return utf8_decode((const uint8_t *)bytes, strlen(bytes), ret_rune);
}

static void strict_utf8(void **state)
{
	uint32_t rune = 0;

	assert_int_equal(decode("\x7f", &rune), 1);
	assert_int_equal(decode("\xc2\x80", &rune), 2);
	assert_int_equal(rune, 0x80);
	assert_int_equal(decode("\xef\xbf\xbf", &rune), 3);
	assert_int_equal(rune, 0xffff);
	assert_int_equal(decode("\xf4\x8f\xbf\xbf", &rune), 4);
	assert_int_equal(rune, 0x10ffff);
	assert_int_equal(decode("\xf4\x90\x80\x80", &rune), 0);
	assert_int_equal(decode("\xc0\x80", &rune), 0);
	assert_int_equal(decode("\xe0\x9f\xbf", &rune), 0);
	assert_int_equal(decode("\xf0\x8f\xbf\xbf", &rune), 0);
	assert_int_equal(decode("\xed\xa0\x80", &rune), 0);
	assert_int_equal(decode("\xed\xbf\xbf", &rune), 0);
	assert_int_equal(decode("\x80", &rune), 0);
	assert_int_equal(decode("\xe2\x82", &rune), 0);
	assert_int_equal(decode("\xe2(\xac", &rune), 0);
	assert_int_equal(decode("", &rune), 0);
	assert_true(utf8_is_valid("a\0b", 3));
	assert_false(utf8_is_valid("a\xff", 2));
}

/* Every code point, encoded by hand, comes back; surrogates do not. */
static void all_of_unicode(void **state)
{
	for (uint32_t rune = 0x80; rune <= 0x10ffff; rune++) {
		uint8_t bytes[4];
		size_t length = rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
		static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
		uint32_t back = 0, rest = rune;
		bool is_surrogate = rune >= 0xd800 && rune <= 0xdfff;

		for (size_t i = length - 1; i > 0; i--, rest >>= 6)
			bytes[i] = 0x80 | (rest & 0x3f);
		bytes[0] = (uint8_t)(lead[length] | rest);
		if (utf8_decode(bytes, length, &back) != (is_surrogate ? 0 : length) ||
		    back != (is_surrogate ? 0 : rune))
			fail_msg("U+%04X", rune);
		if (utf8_decode(bytes, length - 1, &back))
			fail_msg("U+%04X, one byte short", rune);
	}
}

static void hosts_before_a_port(void **state)
{
	static const char *const bare[] = { "::", "::1", "2001:db8::7", "::ffff:127.0.0.1", "fd00::/8" };
	static const char *const others[] = { "", "a.example", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080" };

	for (size_t i = 0; i < ARRAY_SIZE(bare); i++) {
		assert_string_equal(str_host_open(bare[i]), "[");
		assert_string_equal(str_host_close(bare[i]), "]");
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_string_equal(str_host_open(others[i]), "");
		assert_string_equal(str_host_close(others[i]), "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_beside_another),
		cmocka_unit_test(comparisons),
		cmocka_unit_test(copies_fit_or_are_empty),
		cmocka_unit_test(vectors),
		cmocka_unit_test(whether_a_path_is_normal),
		cmocka_unit_test(normal_paths),
		cmocka_unit_test(paths_at_the_edge_of_the_buffer),
		cmocka_unit_test(joined_paths),
		cmocka_unit_test(below_means_components),
		cmocka_unit_test(names_and_their_neighbours),
		cmocka_unit_test(strict_utf8),
		cmocka_unit_test(all_of_unicode),
		cmocka_unit_test(hosts_before_a_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
