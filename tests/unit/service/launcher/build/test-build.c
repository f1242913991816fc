/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "service/launcher/build/archives.h"
#include "service/launcher/build/log.h"
#include "service/launcher/build/settings.h"

static struct err err;
static const char *const no_commands[2];

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define STEPS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static struct plan read_plan(const char *const *strings, const char *base, const char *const commands[2])
{
	struct plan plan;

	assert_int_equal(plan_read(&plan, strings, base, commands, &err), 0);
	return plan;
}

static void steps_are_known_by_all_before_them(void **state)
{
	const char *const *first = STEPS("RUN", "", "", "1", "make", "RUN", "", "", "1", "test");
	const char *const *other = STEPS("RUN", "", "", "1", "make it", "RUN", "", "", "1", "test");
	struct plan a = read_plan(first, "base", no_commands), b = read_plan(first, "base", no_commands);
	struct plan c = read_plan(other, "base", no_commands), d = read_plan(first, "another", no_commands);
	struct plan e = read_plan(first, "base", (const char *const[2]){ "start", NULL });
	struct plan f = read_plan(first, "base", (const char *const[2]){ NULL, "start" });

	assert_int_equal(a.count, 2);
	assert_string_equal(a.steps[1].hash, b.steps[1].hash);
	assert_string_equal(a.end, b.end);
	assert_string_not_equal(a.steps[0].hash, a.steps[1].hash);
	assert_string_not_equal(a.steps[1].hash, c.steps[1].hash);
	assert_string_not_equal(a.steps[0].hash, d.steps[0].hash);
	assert_string_equal(a.steps[1].hash, e.steps[1].hash);
	assert_string_not_equal(a.end, e.end);
	assert_string_not_equal(e.end, f.end);
	for (size_t i = 0; i < 6; i++)
		plan_done((struct plan *[]){ &a, &b, &c, &d, &e, &f }[i]);
}

/* Two lists of arguments are never the same bytes. */
static void arguments_do_not_run_together(void **state)
{
	struct plan a = read_plan(STEPS("RUN", "", "", "2", "ab", "user"), "base", no_commands);
	struct plan b = read_plan(STEPS("RUN", "", "", "2", "a", "buser"), "base", no_commands);
	struct plan c = read_plan(STEPS("COPY", HASH, "", "2", "a", "b"), "base", no_commands);
	struct plan d = read_plan(STEPS("COPY", HASH, "1", "2", "a", "b"), "base", no_commands);

	assert_string_not_equal(a.steps[0].hash, b.steps[0].hash);
	/* To force a step makes no other one of it. */
	assert_string_equal(c.steps[0].hash, d.steps[0].hash);
	assert_true(!c.steps[0].is_forced && d.steps[0].is_forced);
	plan_done(&a);
	plan_done(&b);
	plan_done(&c);
	plan_done(&d);
}

static void steps_that_are_wrong(void **state)
{
	const char *const *const bad[] = {
		STEPS("FROM", "", "", "1", "a"), STEPS("RUN", "", "", "0"), STEPS("RUN", "", "", "3", "a", "b", "c"),
		STEPS("ENV", "", "", "1", "A"), STEPS("ENV", "", "", "2", "A=B", "c"), STEPS("ENV", "", "", "2", "", "c"),
		STEPS("COPY", "", "", "2", "a", "b"), STEPS("COPY", "abc", "", "2", "a", "b"),
		STEPS("RUN", "", "", "2", "a"), STEPS("RUN", "", "", "x", "a"), STEPS("RUN", "", ""), STEPS("RUN"),
		STEPS("WORKDIR", "", "", "2", "a", "b"),
	};
	const char **many = calloc(4 * (PLAN_STEPS_MAX + 1) + PLAN_STEPS_MAX + 2, sizeof *many);
	struct plan plan;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(plan_read(&plan, bad[i], "base", no_commands, &err), -EINVAL);
		assert_non_null(strstr(err.message, "step 1"));
	}
	assert_non_null(many);
	for (size_t i = 0; i <= PLAN_STEPS_MAX; i++)
		memcpy(many + 5 * i, STEPS("RUN", "", "", "1", "true"), 5 * sizeof *many);
	assert_int_equal(plan_read(&plan, many, "base", no_commands, &err), -EINVAL);
	many[5 * PLAN_STEPS_MAX] = NULL;
	assert_int_equal(plan_read(&plan, many, "base", no_commands, &err), 0);
	assert_int_equal(plan.count, PLAN_STEPS_MAX);
	plan_done(&plan);
	free(many);
}

static void settings_follow_the_steps(void **state)
{
	const char *const *steps = STEPS("ENV", "", "", "6", "A", "1", "B", "${A}-$A-$NONE-$-${", "A", "2", "WORKDIR", "",
					 "", "1", "/srv", "WORKDIR", "", "", "1", "../opt/x/", "ENV", "", "", "2", "PATH",
					 "/mine:$PATH", "USER", "", "", "1", "root", "WORKDIR", "", "", "1", "~/w");
	struct plan plan = read_plan(steps, "base", no_commands);
	struct build_settings settings;
	char path[PATH_MAX];

	assert_int_equal(settings_begin(&settings, NULL), 0);
	assert_string_equal(settings.cwd, "/home/user");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(settings_apply(&settings, &plan.steps[i], &err), 0);
	assert_string_equal(settings.cwd, "/opt/x");
	assert_int_equal(settings_path(&settings, "to", path, &err), 0);
	assert_string_equal(path, "/opt/x/to");
	for (size_t i = 3; i < plan.count; i++)
		assert_int_equal(settings_apply(&settings, &plan.steps[i], &err), 0);
	assert_int_equal(strv_count((const char *const *)settings.env), 3);
	assert_string_equal(settings.env[0], "A=2");
	assert_string_equal(settings.env[1], "B=1-1--$-${");
	assert_string_equal(settings.env[2],
			    "PATH=/mine:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	assert_string_equal(settings.user, "root");
	assert_string_equal(settings.cwd, "/home/user/w");
	assert_int_equal(settings_path(&settings, "~other", path, &err), -EINVAL);
	settings_done(&settings);
	plan_done(&plan);
}

/* A value that doubles with each step ends at its bound. */
static void values_are_bounded(void **state)
{
	struct plan plan = read_plan(STEPS("ENV", "", "", "2", "A", "0123456789$A$A"), "base", no_commands);
	struct build_settings settings;
	int r = 0;

	assert_int_equal(settings_begin(&settings, NULL), 0);
	for (size_t i = 0; r == 0 && i < 64; i++)
		r = settings_apply(&settings, &plan.steps[0], &err);
	assert_int_equal(r, -EINVAL);
	settings_done(&settings);
	plan_done(&plan);
}

static void a_log_has_lines_and_an_end(void **state)
{
	struct build_log log;
	char line[256];

	build_log_init(&log);
	build_log_output(&log, 1, 1, "one\ntw", 6);
	build_log_output(&log, 2, 2, "other\n", 6);
	build_log_output(&log, 3, 1, "o\r\n\n", 4);
	build_log_output(&log, 4, 1, "rest", 4);
	assert_int_equal(log.count, 3);
	build_log_flush(&log, 5);
	assert_int_equal(log.count, 4);
	assert_string_equal(log.entries[1].text, "other");
	assert_string_equal(log.entries[2].text, "two");
	assert_string_equal(log.entries[3].text, "rest");
	assert_string_equal(log.entries[3].step, "base");
	memset(line, 'x', sizeof line);
	for (size_t i = 0; i < 100; i++)
		build_log_output(&log, 6, 1, line, sizeof line);
	assert_true(strlen(log.entries[4].text) < BUILD_LOG_LINE_MAX);
	for (size_t i = 0; i < 2 * BUILD_LOG_ENTRIES_MAX; i++)
		build_log_output(&log, 7, 1, "x\n", 2);
	assert_true(log.count <= BUILD_LOG_ENTRIES_MAX);
	assert_non_null(strstr(log.entries[log.count - 1].text, "full"));
	build_log_done(&log);
}

static void hashes_of_archives(void **state)
{
	assert_true(archives_hash_is_valid(HASH));
	assert_false(archives_hash_is_valid(""));
	assert_false(archives_hash_is_valid(HASH "0"));
	assert_false(archives_hash_is_valid("../../../../../../../../../../../../../../../../../../../../../../"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_known_by_all_before_them),
		cmocka_unit_test(arguments_do_not_run_together),
		cmocka_unit_test(steps_that_are_wrong),
		cmocka_unit_test(settings_follow_the_steps),
		cmocka_unit_test(values_are_bounded),
		cmocka_unit_test(a_log_has_lines_and_an_end),
		cmocka_unit_test(hashes_of_archives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
