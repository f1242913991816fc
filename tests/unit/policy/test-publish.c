/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/publish.h"

static void what_is_written_is_read(void **state)
{
	static const struct {
		const char *text;
		uint16_t port, host_port;
		bool is_inet6;
	} rows[] = {
		{ "8080", 8080, 0, false },
		{ "0:8080", 8080, 0, false },
		{ "18080:80", 80, 18080, false },
		{ "127.0.0.1:1:65535", 65535, 1, false },
		{ "[::1]:0:80", 80, 0, true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct publish_rule rule = { 0 };

		assert_int_equal(publish_parse(rows[i].text, &rule), 0);
		assert_int_equal(rule.port, rows[i].port);
		assert_int_equal(rule.host_port, rows[i].host_port);
		assert_int_equal(rule.is_inet6, rows[i].is_inet6);
	}
}

static void everything_else_is_refused(void **state)
{
	static const struct {
		const char *text;
		int error;
	} rows[] = {
		{ "", -EINVAL }, { "0", -EINVAL }, { "65536", -EINVAL }, { "80 ", -EINVAL }, { "-1", -EINVAL },
		{ "x:80", -EINVAL }, { ":80", -EINVAL }, { "80:", -EINVAL }, { "80:0", -EINVAL },
		{ "0.0.0.0:80:80", -EADDRNOTAVAIL }, { "::1:80:80", -EADDRNOTAVAIL }, { "[::]:80:80", -EADDRNOTAVAIL },
		{ "127.0.0.2:80:80", -EADDRNOTAVAIL }, { "127.0.0.1:70000:80", -EINVAL },
		{ "127.0.0.1::80", -EINVAL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct publish_rule rule = { 0 };

		assert_int_equal(publish_parse(rows[i].text, &rule), rows[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(everything_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
