/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "egress/dns/host-names.h"
#include "policy/synthetic.h"

static int assign_addresses(struct host_names *names, const char *host, uint8_t address4[4], uint8_t address6[16])
{
	uint32_t number;
	int r = host_names_assign(names, host, &number);

	if (r == 0)
		synthetic_make(number, address4, address6);
	return r;
}

static void mapped(const uint8_t address4[4], uint8_t out[16])
{
	memset(out, 0, 16);
	out[10] = out[11] = 0xff;
	memcpy(out + 12, address4, 4);
}

static void one_address_a_name(void **state)
{
	struct host_names *names = host_names_new(8);
	uint8_t a4[4], a6[16], again4[4], again6[16], other4[4], other6[16], address[16];

	assert_int_equal(assign_addresses(names, "a.example.org", a4, a6), 0);
	assert_int_equal(assign_addresses(names, "b.example.org", other4, other6), 0);
	assert_int_equal(assign_addresses(names, "a.example.org", again4, again6), 0);
	assert_memory_equal(a4, again4, 4);
	assert_memory_equal(a6, again6, 16);
	assert_memory_not_equal(a4, other4, 4);
	assert_int_equal(a4[0], 198);
	assert_int_equal(a4[1], 18);
	assert_int_equal(a6[0], 0xfd);
	mapped(a4, address);
	assert_string_equal(host_names_find(names, address), "a.example.org");
	assert_string_equal(host_names_find(names, a6), "a.example.org");
	assert_string_equal(host_names_find(names, other6), "b.example.org");
	host_names_free(names);
}

static void nobodys_addresses(void **state)
{
	static const uint8_t rows[][16] = {
		{ [10] = 0xff, [11] = 0xff, [12] = 198, [13] = 18, [15] = SYNTHETIC_GATE },
		{ [10] = 0xff, [11] = 0xff, [12] = 198, [13] = 18, [15] = SYNTHETIC_FIRST + 1 },
		{ [10] = 0xff, [11] = 0xff, [12] = 198, [13] = 20, [15] = SYNTHETIC_FIRST },
		{ [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 },
		{ [12] = 198, [13] = 18, [15] = SYNTHETIC_FIRST },
		{ 0xfd, 0x61, 0x74, 0x6f, 0x6c, 0x6c, [6] = 1, [15] = SYNTHETIC_FIRST },
		{ [0] = 0xfd, [15] = SYNTHETIC_FIRST },
	};
	struct host_names *names = host_names_new(8);
	uint8_t a4[4], a6[16];

	assert_int_equal(assign_addresses(names, "a.example.org", a4, a6), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_null(host_names_find(names, rows[i]));
	host_names_free(names);
}

static void the_one_not_used_for_longest_goes_first(void **state)
{
	enum { MAX = 100 };
	struct host_names *names = host_names_new(MAX);
	uint8_t first4[4], first6[16], second4[4], second6[16], a4[4], a6[16];
	char host[64];

	assert_int_equal(assign_addresses(names, "first.example.org", first4, first6), 0);
	assert_int_equal(assign_addresses(names, "second.example.org", second4, second6), 0);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(str_format(host, sizeof host, "n%d.example.org", i), 0);
		assert_int_equal(assign_addresses(names, host, a4, a6), 0);
		assert_string_equal(host_names_find(names, a6), host);
		assert_string_equal(host_names_find(names, first6), "first.example.org");
	}
	assert_string_not_equal(host_names_find(names, second6), "second.example.org");
	assert_int_equal(host_names_count_reused(names), 1000 + 2 - MAX);
	assert_int_equal(assign_addresses(names, "second.example.org", a4, a6), 0);
	assert_string_equal(host_names_find(names, a6), "second.example.org");
	host_names_free(names);
}

static void as_many_as_there_may_be(void **state)
{
	struct host_names *names = host_names_new(SIZE_MAX);
	uint8_t a4[4], a6[16];
	char host[64];

	for (int i = 0; i < NAMES_MAX + 10; i++) {
		assert_int_equal(str_format(host, sizeof host, "n%d.example.org", i), 0);
		assert_int_equal(assign_addresses(names, host, a4, a6), 0);
		assert_true(a4[0] == 198 && (a4[1] & 0xfe) == 18);
	}
	assert_string_equal(host_names_find(names, a6), host);
	host_names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_address_a_name),
		cmocka_unit_test(nobodys_addresses),
		cmocka_unit_test(the_one_not_used_for_longest_goes_first),
		cmocka_unit_test(as_many_as_there_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
