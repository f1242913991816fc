/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/str.h"
#include "http/readings.h"

static bool has(const struct readings *readings, const char *text)
{
	for (size_t i = 0; i < readings->count; i++)
		if (str_equal(readings->texts[i], text))
			return true;
	return false;
}

/* The first, as it was sent, is wanted[0]; the others are all of wanted. certain: NULL where these are all. */
static void assert_readings(const char *path, const char *certain, const char *const *wanted)
{
	struct readings readings;
	size_t count = 0;

	assert_int_equal(readings_make(path, 0, &readings), 0);
	assert_string_equal(readings.texts[0], wanted[0]);
	for (; wanted[count]; count++)
		if (!has(&readings, wanted[count]))
			fail_msg("%s is not read as %s", path, wanted[count]);
	if (readings.count != count)
		fail_msg("%s has %zu readings; the last is %s", path, readings.count,
			 readings.texts[readings.count - 1]);
	assert_true(!readings.certain == !certain);
	if (certain)
		assert_string_equal(readings.certain, certain);
	readings_done(&readings);
}

#define READ(path, ...) assert_readings(path, NULL, (const char *const[]){ __VA_ARGS__, NULL })

static void test_what_everybody_reads_alike(void **state)
{
	READ("/", "/");
	READ("/v1/%6Dessages/%7euser/a b", "/v1/messages/~user/a b");
	READ("/v1/a:b@c,d=e+f!", "/v1/a:b@c,d=e+f!");
	READ("/v1/a.b/..c/...", "/v1/a.b/..c/...");
	READ("/%C3%A4/%E6%96%87", "/\xc3\xa4/\xe6\x96\x87");
}

static void test_one_step(void **state)
{
	READ("/v1/../admin", "/v1/../admin", "/admin");
	READ("/a%2Fb", "/a%2Fb", "/a/b");
	READ("/a//b", "/a//b", "/a/b");
	READ("//a/b", "//a/b", "/a/b", "/b");
	READ("/a;x=1/b", "/a;x=1/b", "/a/b", "/a");
	READ("/a\\b", "/a\\b", "/a/b");
	READ("/a%3Ab", "/a%3Ab", "/a:b");
	READ("/a%2561", "/a%2561", "/aa");
	READ("/a%3Fb", "/a%3Fb", "/a?b", "/a");
	READ("/a./b", "/a./b", "/a/b");
	READ("/a\xef\xbc\x8f" "b", "/a\xef\xbc\x8f" "b", "/a/b");
	READ("/a\xc0\xaf" "b", "/a\xc0\xaf" "b", "/a/b");
	READ("/a%25u002fb", "/a%25u002fb", "/a%u002fb", "/a/b");
}

/* Escaped dots are dot segments to some who leave plain ones, and the other way round. */
static void test_orders_of_steps(void **state)
{
	READ("/a/%2e%2e/../b", "/a/../../b", "/b", "/a/b");
	READ("/a//../b", "/a//../b", "/a/b", "/a/../b", "/b");
	READ("/a%252Fb", "/a%252Fb", "/a%2Fb", "/a/b");
}

static void test_more_than_can_be_told(void **state)
{
	static const char many[] = "/v1/x/a%3Bb%3Fc%25d%3Ae%2Ff;g%5Ch//i";
	struct readings readings;

	assert_int_equal(readings_make(many, 0, &readings), 0);
	assert_string_equal(readings.certain, "/v1/x");
	assert_int_equal(readings.count, READINGS_MAX);
	assert_string_equal(readings.texts[0], many);
	readings_done(&readings);
	assert_int_equal(readings_make("/v1/x/a%3Bb%3Fc%25d%3Ae%2Ff;g%5Ch//i/..%252f..;", 0, &readings), 0);
	assert_string_equal(readings.certain, "/");
	readings_done(&readings);
	assert_int_equal(readings_make("/v1/x/y%0a", 0, &readings), 0);
	assert_string_equal(readings.certain, "/");
	readings_done(&readings);
}

static void test_queries_that_climb(void **state)
{
	struct readings readings;

	assert_int_equal(readings_climbs_of("?a=b&c=../../x..y/.../z"), 1);
	assert_int_equal(readings_climbs_of("?a=/../..%2f..%252F%2e%2e\\..;x/%EF%BC%8E./.%09./"), 7);
	assert_int_equal(readings_climbs_of("?"), 0);
	for (uint32_t climbs = 1; climbs < 5; climbs++) {
		static const char *const certain[] = { NULL, "/v1/a", "/v1", "/", "/" };

		assert_int_equal(readings_make("/v1/a/b", climbs, &readings), 0);
		assert_int_equal(readings.count, 1);
		assert_string_equal(readings.certain, certain[climbs]);
		readings_done(&readings);
	}
}

/* Bounded in number and size, whatever is sent; what is left is still told. */
static void test_hostile_paths(void **state)
{
	static const char *const pieces[] = { "%25", "/..", "%2f", ";", "//", "%5c", ".", "%3f", "\xc0\xae",
					      "%25u002e" };
	struct readings readings;
	struct buf path;

	buf_init(&path, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(pieces) * ARRAY_SIZE(pieces); i++) {
		buf_reset(&path);
		buf_put_text(&path, "/v1/");
		while (path.size < 8100)
			buf_printf(&path, "%s%s", pieces[i / ARRAY_SIZE(pieces)], pieces[i % ARRAY_SIZE(pieces)]);
		assert_int_equal(readings_make(buf_text(&path), 0, &readings), 0);
		assert_true(readings.count >= 1 && readings.count <= READINGS_MAX);
		readings_done(&readings);
	}
	buf_done(&path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_everybody_reads_alike), cmocka_unit_test(test_one_step),
		cmocka_unit_test(test_orders_of_steps), cmocka_unit_test(test_more_than_can_be_told),
		cmocka_unit_test(test_queries_that_climb), cmocka_unit_test(test_hostile_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
