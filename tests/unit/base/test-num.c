/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/num.h"

typedef int parse_function(const char *text, uint64_t *ret_value);

struct sample {
	const char *text;
	int result;
	uint64_t value;
};

static void check(parse_function *parse, const struct sample *samples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 4711;
		int r = parse(samples[i].text, &value);

		if (r != samples[i].result)
			fail_msg("\"%s\" gives %d, not %d", samples[i].text, r, samples[i].result);
		assert_true(value == (r < 0 ? 4711 : samples[i].value));
	}
}

#define CHECK(parse, ...) check(parse, (const struct sample[]){ __VA_ARGS__ }, \
				ARRAY_SIZE(((const struct sample[]){ __VA_ARGS__ })))

static void plain_numbers(void **state)
{
	CHECK(num_parse_u64, { "0", 0, 0 }, { "007", 0, 7 }, { "18446744073709551615", 0, UINT64_MAX },
	      { "18446744073709551616", -ERANGE }, { "99999999999999999999999", -ERANGE }, { "", -EINVAL },
	      { "-1", -EINVAL }, { "+1", -EINVAL }, { " 1", -EINVAL }, { "1 ", -EINVAL }, { "0x10", -EINVAL },
	      { "1k", -EINVAL }, { "1.0", -EINVAL });
}

static void sizes(void **state)
{
	CHECK(num_parse_size, { "0", 0, 0 }, { "4096", 0, 4096 }, { "64KiB", 0, 65536 }, { "1kB", 0, 1000 },
	      { "3B", 0, 3 }, { "10GiB", 0, 10ULL << 30 }, { "1TiB", 0, 1ULL << 40 }, { "2TB", 0, 2000000000000ULL },
	      { "unlimited", 0, NUM_UNLIMITED }, { "16777215TiB", 0, 16777215ULL << 40 }, { "16777216TiB", -ERANGE },
	      { "18446744073709551615", -ERANGE }, { "1K", -EINVAL }, { "1kib", -EINVAL }, { "1 KiB", -EINVAL },
	      { "KiB", -EINVAL }, { "1.5GiB", -EINVAL }, { "Unlimited", -EINVAL }, { "1KiBx", -EINVAL });
}

static void counts(void **state)
{
	CHECK(num_parse_count, { "200", 0, 200 }, { "200k", 0, 200000 }, { "3M", 0, 3000000 }, { "2G", 0, 2000000000 },
	      { "unlimited", 0, NUM_UNLIMITED }, { "1K", -EINVAL }, { "1Ki", -EINVAL }, { "18446744073710G", -ERANGE });
}

static void durations(void **state)
{
	CHECK(num_parse_duration, { "250ms", 0, 250 }, { "90s", 0, 90000 }, { "15m", 0, 900000 }, { "2h", 0, 7200000 },
	      { "1d", 0, 86400000 }, { "1h30m", 0, 5400000 }, { "1m500ms", 0, 60500 }, { "0s", 0, 0 },
	      { "unlimited", 0, NUM_UNLIMITED }, { "90", -EINVAL }, { "1h30", -EINVAL }, { "h", -EINVAL },
	      { "", -EINVAL },
	      { "1hm", -EINVAL }, { "1 h", -EINVAL }, { "1us", -EINVAL }, { "213503982335d", -ERANGE },
	      { "213503982334d23h59m", -ERANGE });
}

static void cpus(void **state)
{
	CHECK(num_parse_cpus, { "2", 0, 2000 }, { "1.5", 0, 1500 }, { "0.25", 0, 250 }, { "0.001", 0, 1 },
	      { "unlimited", 0, NUM_UNLIMITED }, { "1.", -EINVAL }, { ".5", -EINVAL }, { "1.2345", -EINVAL },
	      { "1.5x", -EINVAL }, { "-1", -EINVAL }, { "1000001", -ERANGE });
}

static void rates(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t amount, period_ms;
	} samples[] = {
		{ "10MiB/s", 0, 10 << 20, 1000 }, { "600/min", 0, 600, 60000 }, { "5k/h", 0, 5000, 3600000 },
		{ "10", -EINVAL }, { "10/", -EINVAL }, { "/s", -EINVAL }, { "10/d", -EINVAL },
		{ "unlimited/s", -EINVAL },
		{ "10/s/s", -EINVAL }, { "00000000000000000000000000000000000001/s", -EINVAL },
		{ "99999999999999999999/s", -ERANGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		uint64_t amount = 0, period_ms = 0;
		int r = num_parse_rate(samples[i].text, &amount, &period_ms);

		if (r != samples[i].result)
			fail_msg("\"%s\" gives %d, not %d", samples[i].text, r, samples[i].result);
		assert_true(amount == samples[i].amount && period_ms == samples[i].period_ms);
	}
}

static void assert_round_trip(uint64_t value)
{
	char text[32];
	uint64_t back;

	num_format_size(value, text);
	assert_int_equal(num_parse_size(text, &back), 0);
	assert_true(back == value);
	num_format_count(value, text);
	assert_int_equal(num_parse_count(text, &back), 0);
	assert_true(back == value);
	num_format_duration(value, text);
	assert_int_equal(num_parse_duration(text, &back), 0);
	assert_true(back == value);
}

static void what_is_formatted_is_parsed_back(void **state)
{
	uint64_t value = 1;

	for (int shift = 0; shift < 64; shift++) {
		assert_round_trip(1ULL << shift);
		assert_round_trip((1ULL << shift) - 1);
		assert_round_trip((1ULL << shift) + 1);
	}
	for (uint64_t power = 1; power < UINT64_MAX / 10; power *= 10)
		assert_round_trip(power);
	for (int i = 0; i < 10000; i++) {
		value = value * 6364136223846793005ULL + 1442695040888963407ULL;
		assert_round_trip(value >> (i % 64));
	}
	assert_round_trip(NUM_UNLIMITED);
	assert_round_trip(NUM_UNLIMITED - 1);
}

static void shortest_texts(void **state)
{
	char text[32];

	num_format_size(4ULL << 30, text);
	assert_string_equal(text, "4GiB");
	num_format_size(1536 << 10, text);
	assert_string_equal(text, "1536KiB");
	num_format_duration(5400000, text);
	assert_string_equal(text, "1h30m");
	num_format_duration(0, text);
	assert_string_equal(text, "0s");
	num_format_count(200000, text);
	assert_string_equal(text, "200k");
}

static void texts_for_people(void **state)
{
	char text[32];

	num_format_size_human(1503238553, text);
	assert_string_equal(text, "1.4 GiB");
	num_format_size_human(UINT64_MAX - 1, text);
	assert_string_equal(text, "16384 PiB");
	num_format_duration_human(812, text);
	assert_string_equal(text, "812 ms");
	num_format_duration_human(7380000, text);
	assert_string_equal(text, "2 h 03 min");
	num_format_duration_human(UINT64_MAX - 1, text);
	assert_true(strlen(text) < sizeof text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_numbers),
		cmocka_unit_test(sizes),
		cmocka_unit_test(counts),
		cmocka_unit_test(durations),
		cmocka_unit_test(cpus),
		cmocka_unit_test(rates),
		cmocka_unit_test(what_is_formatted_is_parsed_back),
		cmocka_unit_test(shortest_texts),
		cmocka_unit_test(texts_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
