/* SPDX-License-Identifier: Apache-2.0 */

/* What another policy would have decided about records that are written here. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "learn/compare.h"
#include "session.h"

static const char wide[] = "atoll: 1\nextends: none\nfiles: {read: [/data]}\n"
			   "network: {allow: [{host: a.example, ports: [443]}]}\n";
static const char narrow[] = "atoll: 1\nextends: none\nfiles: {read: [/data/a]}\n"
			     "exec: {default: deny, allow: [/usr/bin/cat, /usr/bin/python3.11]}\n";

static struct comparison comparison;
static struct buf out;

static void compare(const char *before, const char *after, bool is_without_listings)
{
	struct comparison_sides sides = { session_policy(SESSION_BEFORE, before), session_policy(SESSION_OTHER, after),
					  is_without_listings };

	assert_int_equal(comparison_make(&comparison, &sides, session_log()), 0);
}

static int end(void **state)
{
	comparison_done(&comparison);
	session_end();
	buf_done(&out);
	return 0;
}

static void record_some(void)
{
	session_record("file.open", "\"/data/a\"", "allow", "");
	session_record("file.open", "\"/data/b\"", "allow", "\"count\":3");
	session_record("file.open", "\"/data/b\"", "allow", "\"count\":2");
	session_record("net.connect", "\"a.example\"", "allow", "\"port\":443");
	session_record("exec.start", "\"/usr/bin/cat\"", "allow", "\"argv\":[\"cat\"]");
	session_record("exec.start", "\"/usr/bin/true\"", "allow", "");
	session_record("session.end", "\"x\"", "", "");
}

static void equal_policies_differ_in_nothing(void **state)
{
	record_some();
	compare(wide, wide, false);
	assert_int_equal(comparison.different, 0);
	assert_int_equal(comparison.same, 1 + 5 + 1 + 2);
	assert_true(comparison.log.has_end);
}

static void each_difference_is_told_once_with_its_first_record(void **state)
{
	record_some();
	compare(wide, narrow, false);
	assert_int_equal(comparison.different, 5 + 1 + 1);
	assert_int_equal(comparison.same, 2);
	assert_int_equal(comparison.tally.count, 3);
	assert_int_equal(comparison.kept[0].before, VERDICT_ALLOW);
	assert_int_equal(comparison.kept[0].after, VERDICT_DENY);
	assert_int_equal(comparison.tally.items[0].record, 2);
	assert_int_equal(comparison.tally.items[0].count, 5);
	buf_init(&out, 1 << 20);
	comparison_format(&comparison, &(struct comparison_names){ "session", "narrow" }, &out);
	assert_non_null(strstr(buf_text(&out), "record 2  allow → deny  file.read /data/b  (5 times)"));
	assert_non_null(strstr(buf_text(&out), "net.connect a.example:443"));
	assert_non_null(strstr(buf_text(&out), "exec /usr/bin/true"));
	buf_reset(&out);
	comparison_format_json(&comparison, &(struct comparison_names){ "session", "narrow" }, &out);
	assert_non_null(strstr(buf_text(&out), "\"same\":2,\"different\":7"));
}

static void what_widens_is_a_difference_too(void **state)
{
	session_record("file.open", "\"/data/b\"", "deny", "");
	compare(narrow, wide, false);
	assert_int_equal(comparison.different, 1);
	assert_int_equal(comparison.kept[0].before, VERDICT_DENY);
}

static void programs_are_what_they_lead_to(void **state)
{
	/* By the one name or the other, with what interprets them; not at all where nobody resolved it. */
	session_record("exec.start", "\"/usr/bin/python3\"", "allow", "\"path\":\"/usr/bin/python3.11\"");
	session_record("exec.start", "\"bin/python\"", "allow", "\"path\":\"/usr/bin/python3.11\"");
	session_record("exec.start", "\"bin/unknown\"", "allow", "");
	session_record("exec.start", "\"/usr/local/bin/cat\"", "allow", "\"errno\":\"ENOENT\"");
	session_record("exec.start", "\"/usr/bin/cat\"", "allow", "\"interpreters\":[\"/usr/bin/env\"]");
	compare(wide, narrow, false);
	assert_int_equal(comparison.relative, 1);
	assert_int_equal(comparison.same, 3);
	assert_int_equal(comparison.different, 1);
	assert_non_null(strstr(comparison.tally.items[0].key, "/usr/bin/env"));
}

static void a_name_that_a_rule_has_is_enough(void **state)
{
	static const char named[] = "atoll: 1\nextends: none\nexec: {default: deny, allow: [/usr/bin/python3]}\n";
	static const char denied[] = "atoll: 1\nextends: none\nexec: {deny: [/usr/bin/python3.11]}\n";

	session_record("exec.start", "\"/usr/bin/python3\"", "allow", "\"path\":\"/usr/bin/python3.11\"");
	compare(wide, named, false);
	assert_int_equal(comparison.different, 0);
	comparison_done(&comparison);
	compare(wide, denied, false);
	assert_int_equal(comparison.different, 1);
}

static void listings_are_left_out_where_nobody_wants_them(void **state)
{
	session_record("file.open", "\"/data\"", "allow", "\"flags\":\"O_RDONLY|O_DIRECTORY\"");
	compare(wide, narrow, false);
	assert_int_equal(comparison.different, 1);
	comparison_done(&comparison);
	compare(wide, narrow, true);
	assert_int_equal(comparison.different, 0);
}

static void what_cannot_be_read_is_counted(void **state)
{
	session_line("{\"type\":\"exec.start\",\"subject\":7}");
	session_line("nothing");
	session_record("file.open", "\"/data/\\u0000\"", "allow", "");
	session_record("exec.start", "\"/x\"", "allow", "\"path\":\"/a\\u0000b\"");
	session_record("policy.change", "\"x\"", "", "\"policy_hash\":\"x\"");
	compare(wide, narrow, false);
	assert_int_equal(comparison.log.unreadable, 4);
	assert_int_equal(comparison.same + comparison.different, 0);
	assert_true(comparison.log.is_policy_changed && !comparison.log.has_end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(equal_policies_differ_in_nothing, end),
		cmocka_unit_test_teardown(each_difference_is_told_once_with_its_first_record, end),
		cmocka_unit_test_teardown(what_widens_is_a_difference_too, end),
		cmocka_unit_test_teardown(programs_are_what_they_lead_to, end),
		cmocka_unit_test_teardown(a_name_that_a_rule_has_is_enough, end),
		cmocka_unit_test_teardown(listings_are_left_out_where_nobody_wants_them, end),
		cmocka_unit_test_teardown(what_cannot_be_read_is_counted, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
