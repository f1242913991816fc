/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/protocol/query.h"
#include "service/protocol/time.h"

static void test_pairs(void **state)
{
	const char *query = "path=%2Fa+b%26&&x&y=%C3%A9";
	struct query_pair pair;

	assert_int_equal(query_next(&query, &pair), 1);
	assert_string_equal(pair.name, "path");
	assert_string_equal(pair.value, "/a b&");
	assert_int_equal(query_next(&query, &pair), 1);
	assert_string_equal(pair.name, "x");
	assert_string_equal(pair.value, "");
	assert_int_equal(query_next(&query, &pair), 1);
	assert_string_equal(pair.value, "é");
	assert_int_equal(query_next(&query, &pair), 0);
}

static void test_refuses_nonsense(void **state)
{
	static const char *const bad[] = { "a=%00", "a=%", "a=%2", "a=%zz", "%=b" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *query = bad[i];
		struct query_pair pair;

		assert_int_equal(query_next(&query, &pair), -EINVAL);
	}
}

static void test_signature(void **state)
{
	struct query_signature signature;

	assert_int_equal(query_get_signature("path=a&signature=v1_x%2By&signature_expiration=17", &signature), 0);
	assert_true(signature.is_there);
	assert_string_equal(signature.text, "v1_x+y");
	assert_int_equal(signature.expires_s, 17);
	assert_int_equal(query_get_signature("path=a", &signature), 0);
	assert_false(signature.is_there);
	assert_int_equal(query_get_signature("signature=a&signature_expiration=0", &signature), -EINVAL);
	assert_int_equal(query_get_signature("signature=a&signature_expiration=x", &signature), -EINVAL);
}

static void test_metadata_is_escaped_twice(void **state)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1000);
	/* {"a b":"c&d"}: what encodeURIComponent() and URLSearchParams make of it, undone once as a value of a query
	 */
	assert_int_equal(query_read_metadata("a%2520b=c%2526d", &out, 4), 1);
	assert_memory_equal(out.bytes, "a b\0c&d\0", 8);
	assert_int_equal(query_read_metadata("a=b&c=d", &out, 1), -EINVAL);
}

static void test_lists(void **state)
{
	assert_true(query_list_has("running,paused", "paused"));
	assert_false(query_list_has("running,paused", "pause"));
	assert_false(query_list_has("", "paused"));
}

static void test_times(void **state)
{
	static const char *const bad[] = { "",
					   "2026-13-01T00:00:00Z",
					   "2026-01-01",
					   "2026-01-01T00:00:00",
					   "1969-12-31T23:59:59Z",
					   "2026-01-01T00:00:00Zx",
					   "2026-01-01T00:00:00+1:00" };
	char text[TIME_SIZE];
	uint64_t ms;

	for (uint64_t i = 0; i < 4000; i++) {
		uint64_t from = i * UINT64_C(63115200123);

		time_format(from, text);
		assert_int_equal(time_parse(text, &ms), 0);
		assert_int_equal(ms, from);
	}
	time_format(1795600800123, text);
	assert_string_equal(text, "2026-11-25T10:00:00.123Z");
	assert_int_equal(time_parse("2026-11-25T11:00:00.1239+01:00", &ms), 0);
	assert_int_equal(ms, 1795600800123);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(time_parse(bad[i], &ms), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),	  cmocka_unit_test(test_refuses_nonsense),
		cmocka_unit_test(test_signature), cmocka_unit_test(test_metadata_is_escaped_twice),
		cmocka_unit_test(test_lists),	  cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
