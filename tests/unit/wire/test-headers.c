/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wire/headers.h"

static void headers_have_a_host_a_name_and_a_value(void **state)
{
	static const struct {
		const char *triples[7];
		int result;
		const char *entry;
	} rows[] = {
		{ { NULL }, 0, "" },
		{ { "a.example", "X-A", "b" }, 1, "" },
		{ { "a.example", "X-A", "b", "b_c.example", "authorization", "Bearer \xc3\xa9" }, 2, "" },
		{ { "a.example", "X-A" }, -EINVAL, "" },
		{ { "*.example", "X-A", "b" }, -EINVAL, "*.example" },
		{ { "A.example", "X-A", "b" }, -EINVAL, "A.example" },
		{ { ".example", "X-A", "b" }, -EINVAL, ".example" },
		{ { "a.example.", "X-A", "b" }, -EINVAL, "a.example." },
		{ { "a.example:443", "X-A", "b" }, -EINVAL, "a.example:443" },
		{ { "", "X-A", "b" }, -EINVAL, "" },
		{ { "a.example", "", "b" }, -EINVAL, "" },
		{ { "a.example", "X A", "b" }, -EINVAL, "X A" },
		{ { "a.example", "X-A:", "b" }, -EINVAL, "X-A:" },
		{ { "a.example", "Transfer-Encoding", "b" }, -EINVAL, "Transfer-Encoding" },
		{ { "a.example", "HOST", "b" }, -EINVAL, "HOST" },
		{ { "a.example", "X-A", "" }, -EINVAL, "X-A" },
		{ { "a.example", "X-A", "b\nc" }, -EINVAL, "X-A" },
		{ { "a.example", "X-A", "b\x7f" }, -EINVAL, "X-A" },
		{ { "a.example", "X-A", "b", "a.example", "te", "b" }, -EINVAL, "te" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *why, *entry;

		assert_int_equal(headers_check(rows[i].triples, &why, &entry), rows[i].result);
		assert_int_equal(why != NULL, rows[i].result < 0);
		if (why)
			assert_string_equal(entry, rows[i].entry);
	}
}

static void headers_are_bounded(void **state)
{
	const char *triples[3 * (HEADERS_MAX + 1) + 1] = { NULL }, *why, *entry;
	char *value = malloc(HEADERS_BYTES_MAX + 1);

	assert_non_null(value);
	for (size_t i = 0; i < HEADERS_MAX; i++) {
		triples[3 * i] = "a";
		triples[3 * i + 1] = "b";
		triples[3 * i + 2] = "c";
	}
	assert_int_equal(headers_check(triples, &why, &entry), HEADERS_MAX);
	memset(value, 'v', HEADERS_BYTES_MAX);
	value[HEADERS_BYTES_MAX] = 0;
	triples[2] = value;
	assert_int_equal(headers_check(triples, &why, &entry), -EINVAL);
	triples[2] = "c";
	triples[3 * HEADERS_MAX] = "a";
	triples[3 * HEADERS_MAX + 1] = "b";
	triples[3 * HEADERS_MAX + 2] = "c";
	assert_int_equal(headers_check(triples, &why, &entry), -EINVAL);
	free(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_have_a_host_a_name_and_a_value),
		cmocka_unit_test(headers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
