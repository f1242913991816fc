/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gate-net/names.h"

static void what_was_learned_last_holds(void **state)
{
	struct gate_names names = { 0 };
	char longest[300];

	assert_null(gate_names_find(&names, 16));
	gate_names_learn(&names, 16, "a.example.org");
	gate_names_learn(&names, 17, "b.example.org");
	assert_string_equal(gate_names_find(&names, 16), "a.example.org");
	assert_string_equal(gate_names_find(&names, 17), "b.example.org");
	gate_names_learn(&names, 16, "c.example.org");
	assert_string_equal(gate_names_find(&names, 16), "c.example.org");
	assert_null(gate_names_find(&names, 18));
	assert_null(gate_names_find(&names, 0));
	/* Longer than a name can be: forgotten, and what was there as well. */
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	gate_names_learn(&names, 16, longest);
	assert_null(gate_names_find(&names, 16));
	gate_names_done(&names);
}

static void two_numbers_never_pass_for_one_another(void **state)
{
	struct gate_names names = { 0 };

	for (uint32_t i = 16; i < 5000; i++) {
		gate_names_learn(&names, i, "x.example.org");
		assert_non_null(gate_names_find(&names, i));
		for (uint32_t other = i + 1; other < i + 200; other++)
			assert_null(gate_names_find(&names, other));
	}
	gate_names_done(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_learned_last_holds),
		cmocka_unit_test(two_numbers_never_pass_for_one_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
