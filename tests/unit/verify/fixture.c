/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "shipped.h"
#include "verify/model/operation-text.h"

/* So long that only a text without a bound meets it. */
enum { TIME_MS = 120000, LINES_MAX = 64 << 20 };

const char *fixture_walk_for(enum verify_language language, const char *text, size_t size, unsigned time_ms)
{
	static struct buf lines;
	static struct rules *rules;
	struct judgement judgement;
	char *copy = malloc(size + 1);

	assert_non_null(copy);
	memcpy(copy, text, size);
	copy[size] = '\0';
	if (!lines.max)
		buf_init(&lines, LINES_MAX);
	buf_reset(&lines);
	if (!rules)
		rules = shipped_rules();
	judgement_init(&judgement, verify_walkers, rules_tables(rules), time_ms);
	judge_text(&judgement, language, copy, size);
	operations_put(&judgement.operations, &lines);
	judgement_done(&judgement);
	free(copy);
	assert_int_equal(buf_error(&lines), 0);
	return buf_text(&lines);
}

const char *fixture_walk(enum verify_language language, const char *text, size_t size)
{
	return fixture_walk_for(language, text, size, TIME_MS);
}

void fixture_run(enum verify_language language, const struct fixture_case *cases, size_t count)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < count; i++) {
		const char *lines = fixture_walk(language, cases[i].text, strlen(cases[i].text));

		if (str_equal(lines, cases[i].operations))
			continue;
		print_message("%s:\n%s\nexpected:\n%sfound:\n%s\n", cases[i].name, cases[i].text,
			      cases[i].operations, lines);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}
