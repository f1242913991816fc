/* SPDX-License-Identifier: Apache-2.0 */

/* Which changes of a package.json are about what it has others run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "prog/atoll-stage/review/package.h"

static bool is_same(const char *staged, const char *host)
{
	return package_text_is_same(staged, strlen(staged), host, host ? strlen(host) : 0);
}

static void what_runs_nothing_may_change(void **state)
{
	static const char host[] = "{\"name\": \"a\", \"version\": \"1\", \"scripts\": {\"test\": \"x\"}}";

	assert_true(is_same(host, host));
	assert_true(is_same("{\"scripts\":{\"test\":\"x\"},\"version\":\"2\",\"dependencies\":{\"b\":\"^1\"}}", host));
	assert_true(is_same("{\"name\": \"a\", \"version\": \"1\"}", NULL));
}

static void what_runs_something_may_not(void **state)
{
	static const char host[] = "{\"name\": \"a\", \"scripts\": {\"test\": \"x\"}}";
	static const char *const staged[] = {
		"{\"name\": \"a\", \"scripts\": {\"test\": \"y\"}}",
		"{\"name\": \"a\", \"scripts\": {\"test\": \"x\", \"postinstall\": \"y\"}}",
		"{\"name\": \"a\"}",
		"{\"name\": \"a\", \"scripts\": {\"test\": \"x\"}, \"bin\": \"./x\"}",
		"{\"name\": \"a\", \"scripts\": {\"test\": \"x\"}, \"husky\": {\"hooks\": {}}}",
		"{\"name\": \"a\", \"scripts\": {\"test\": \"x\"}, \"packageManager\": \"pnpm@1\"}",
		"{\"name\": \"a\", \"scripts\": {\"test\": \"x\"}, \"unheard-of\": 1}",
		"{\"name\": \"a\", \"scripts\": {\"test\": \"x\"}, \"scripts\": {\"test\": \"x\"}}",
		"[]", "", "{", "{\"name\": \"a\", \"scripts\": {\"test\": \"x\"}} x",
	};

	for (size_t i = 0; i < ARRAY_SIZE(staged); i++)
		if (is_same(staged[i], host))
			fail_msg("%s runs nothing else", staged[i]);
	assert_false(is_same("{\"scripts\": {\"test\": \"x\"}}", NULL));
	assert_false(is_same("{}", "nonsense"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_runs_nothing_may_change),
		cmocka_unit_test(what_runs_something_may_not),
	};

	package_prepare();
	return cmocka_run_group_tests_name("package", tests, NULL, NULL);
}
