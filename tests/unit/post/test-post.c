/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "post/post.h"

static void the_host_is_looked_up_where_it_is_a_name(void **state)
{
	static const struct {
		const char *url, *host, *port;
	} rows[] = {
		{ "https://hook.example/x", "hook.example", "443" },
		{ "https://hook.example:8443", "hook.example", "8443" },
		{ "http://127.0.0.1:9/x", NULL, "9" },
		{ "http://[::1]/", NULL, "80" },
		{ "https://u:p@h.example/?q#f", "h.example", "443" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct post_target target = { .url = rows[i].url };

		assert_int_equal(post_target_init(&target), 0);
		if (rows[i].host)
			assert_string_equal(target.host, rows[i].host);
		else
			assert_null(target.host);
		assert_string_equal(target.port, rows[i].port);
		post_target_done(&target);
	}
	assert_int_not_equal(post_target_init(&(struct post_target){ .url = "https://" }), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_is_looked_up_where_it_is_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
