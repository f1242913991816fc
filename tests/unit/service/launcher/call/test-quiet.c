/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/str.h"
#include "service/launcher/call/daemon.h"

enum { MS = 1000000 };

/* What nobody waits for: behind the last call, never beside one, and yet at some time. */
static void quiet_is_behind_the_last_call(void **state)
{
	static const struct {
		size_t under_way;
		uint64_t last_ms, since_ms, now_ms, wanted_ms;
	} rows[] = {
		{ 0, 0, 1000, 1000, 0 },         /* nobody ever called */
		{ 0, 999, 990, 1000, 1002 },
		{ 0, 997, 990, 1000, 0 },
		{ 1, 500, 990, 1000, 1003 },     /* somebody waits */
		{ 1, 500, 902, 1000, 1002 },     /* but not for ever */
		{ 1, 1000, 900, 1000, 0 },
		{ 0, 1000, 900, 1000, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct daemon daemon = {
			.due.calls = { .under_way = rows[i].under_way, .last_ns = rows[i].last_ms * MS },
		};

		assert_int_equal(daemon_quiet_at(&daemon, rows[i].since_ms * MS, rows[i].now_ms * MS),
				 rows[i].wanted_ms * MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(quiet_is_behind_the_last_call) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
