/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "notify/answer.h"

#define HASH "\"hash\":\"sha256:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\""

static int parse(const char *text, struct answer *answer)
{
	const char *why = NULL;
	int r = answer_parse(text, strlen(text), answer, &why);

	assert_true(r == 0 || why);
	return r;
}

static void an_answer_is_read(void **state)
{
	struct answer answer;

	assert_int_equal(parse("{\"question\":3," HASH ",\"answer\":\"allow\"}", &answer), 0);
	assert_int_equal(answer.question, 3);
	assert_true(answer.is_allowed && answer.scope == ASKING_ONCE && answer.amount == 0);
	for (size_t i = 0; i < sizeof answer.hash; i++)
		assert_int_equal(answer.hash[i], i);
	assert_int_equal(parse("{\"scope\":\"time\",\"seconds\":60,\"answer\":\"allow\"," HASH ",\"question\":1}",
			       &answer), 0);
	assert_true(answer.scope == ASKING_TIME && answer.amount == 60000);
	assert_int_equal(parse("{\"scope\":\"uses\",\"uses\":4,\"answer\":\"allow\"," HASH ",\"question\":1}",
			       &answer), 0);
	assert_true(answer.scope == ASKING_USES && answer.amount == 4);
	assert_int_equal(parse("{\"scope\":\"session\",\"answer\":\"allow\"," HASH ",\"question\":1}", &answer), 0);
	assert_true(answer.scope == ASKING_SESSION && answer.amount == 0);
	assert_int_equal(parse(" {\"answer\":\"deny\"," HASH ",\"question\":4294967295}\n", &answer), 0);
	assert_false(answer.is_allowed);
}

static void all_else_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "{}", "[]", "null", "true", "{\"question\":3,\"answer\":\"allow\"}", "{\"question\":3," HASH "}",
		"{" HASH ",\"answer\":\"allow\"}", "{\"question\":0," HASH ",\"answer\":\"allow\"}",
		"{\"question\":4294967296," HASH ",\"answer\":\"allow\"}",
		"{\"question\":\"3\"," HASH ",\"answer\":\"allow\"}",
		"{\"question\":3.0," HASH ",\"answer\":\"allow\"}",
		"{\"question\":3," HASH ",\"answer\":true}", "{\"question\":3," HASH ",\"answer\":\"ALLOW\"}",
		"{\"question\":3," HASH ",\"answer\":\"allow\\u0000\"}",
		"{\"question\":3," HASH ",\"answer\":\"allow\",\"scope\":\"forever\"}",
		"{\"question\":3," HASH ",\"answer\":\"allow\",\"scope\":\"uses\"}",
		"{\"question\":3," HASH ",\"answer\":\"allow\",\"scope\":\"time\",\"uses\":1}",
		"{\"question\":3," HASH ",\"answer\":\"allow\",\"uses\":1}",
		"{\"question\":3," HASH ",\"answer\":\"allow\",\"scope\":\"uses\",\"uses\":-1}",
		"{\"question\":3," HASH ",\"answer\":\"allow\",\"scope\":\"time\",\"seconds\":99999999}",
		"{\"question\":3," HASH ",\"answer\":\"deny\",\"scope\":\"session\"}",
		"{\"question\":3," HASH ",\"answer\":\"deny\",\"answer\":\"allow\"}",
		"{\"question\":3," HASH ",\"answer\":\"allow\",\"more\":1}",
		"{\"question\":3," HASH ",\"answer\":\"allow\"}x", "{\"question\":3," HASH ",\"answer\":\"allow\"",
		"{\"question\":3,\"hash\":\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\","
		"\"answer\":\"allow\"}",
		"{\"question\":3,\"hash\":\"sha256:000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F\","
		"\"answer\":\"allow\"}",
		"{\"question\":3,\"hash\":\"sha256:00\",\"answer\":\"allow\"}",
	};
	struct answer answer;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &answer) == 0)
			fail_msg("taken: %s", bad[i]);
}

static void a_long_one_is_not_looked_at(void **state)
{
	char text[ANSWER_MAX + 200];
	struct answer answer;
	int size = snprintf(text, sizeof text, "{\"question\":3," HASH ",\"answer\":\"allow\"}%*s", ANSWER_MAX, "");

	assert_true(size > ANSWER_MAX && size < (int)sizeof text);
	assert_int_not_equal(parse(text, &answer), 0);
	text[ANSWER_MAX] = 0;
	assert_int_equal(parse(text, &answer), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_read),
		cmocka_unit_test(all_else_is_refused),
		cmocka_unit_test(a_long_one_is_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
