/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "service/launcher/call/pressure.h"

static void the_share_of_ten_seconds_is_read(void **state)
{
	static const struct {
		const char *text;
		uint32_t share;
	} cases[] = {
		{ "some avg10=0.00 avg60=9.00 avg300=9.00 total=0\nfull avg10=9.00 avg60=0 avg300=0 total=0\n", 0 },
		{ "some avg10=0.07 avg60=0.00", 7 }, { "some avg10=20.50 ", 2050 }, { "some avg10=100.00 ", 10000 },
	};
	uint32_t share;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(pressure_parse(cases[i].text, &share), 0);
		assert_int_equal(share, cases[i].share);
	}
}

static void what_is_none_is_no_pressure(void **state)
{
	static const char *const cases[] = {
		"", "some", "some avg10=", "some avg10=x", "some avg10=1", "some avg10=1.5", "some avg10=-1.00",
		"some avg10=100.01", "some avg10=99999999999999999999.00", "full avg10=1.00",
	};
	uint32_t share = 1234;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(pressure_parse(cases[i], &share), -EBADMSG);
	assert_int_equal(share, 1234);
}

static void this_machine_says_something_or_nothing(void **state)
{
	uint32_t share = 0;
	int r = pressure_memory(&share);

	assert_true(r == -ENOENT || r == -EOPNOTSUPP || (r == 0 && share <= 10000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_share_of_ten_seconds_is_read),
		cmocka_unit_test(what_is_none_is_no_pressure),
		cmocka_unit_test(this_machine_says_something_or_nothing),
	};

	return cmocka_run_group_tests_name("pressure", tests, NULL, NULL);
}
