/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "lang/print/print.h"
#include "policy/scalars.h"
#include "policy/snapshot/snapshot.h"

/* Whatever row is added to the table: it is stored, read back, compared and printed, without a word anywhere else. */

static struct policy base = {
	.name = "p", .project = "", .home = "",
	.network.default_origin = { "network.default", "", 0 }, .exec.default_origin = { "exec.default", "", 0 },
	.ask = { .timeout_ms = 1000, .webhook = "https://a.example/" },
	.monitor = { .sessions = MONITOR_SESSIONS, .learn = MONITOR_LEARN },
	.trust = { .start = TRUST_MEDIUM, .ceiling = TRUST_FULL, .half_life_ms = TRUST_HALF_LIFE_MS, .is_given = true,
		   .probation_sessions = 3 },
};

static int set_origins(void **state)
{
	for (size_t i = 0; i < RESOURCE_COUNT; i++)
		base.limits[i].origin = (struct rule_origin){ "default", "", 0 };
	return 0;
}

/* Another value than that of base, which a policy may have. */
static void change(enum scalar_id id, struct policy *policy)
{
	static const char *const texts[SCALAR_ROW_COUNT] = {
		[SCALAR_ASK_WEBHOOK] = "https://b.example/", [SCALAR_ASK_WEBHOOK_KEY] = "key",
		[SCALAR_ASK_WEBHOOK_KEY_FILE] = "/key", [SCALAR_TRUST_AGENT] = "agent",
	};
	const struct scalar_row *row = &scalar_rows[id];
	uint64_t value = scalar_get(id, policy);

	if (row->unit == SCALAR_TEXT) {
		assert_non_null(texts[id]);
		value = (uintptr_t)texts[id];
	} else if (row->unit == SCALAR_SWITCH) {
		value = !value;
	} else {
		value++;
		while (row->unit == SCALAR_CHOICE && !row->names[value % row->name_count])
			value++;
		value = row->unit == SCALAR_CHOICE ? value % row->name_count : value;
	}
	/* The ceiling is the highest already. */
	scalar_set(id, policy, id == SCALAR_TRUST_CEILING ? TRUST_HIGH : value);
	assert_false(scalars_equal(id, id, policy, &base));
}

static void test_each_is_stored(void **state)
{
	for (enum scalar_id id = 0; id < SCALAR_ROW_COUNT; id++) {
		cleanup_snapshot struct snapshot *snapshot = NULL;
		cleanup_buf struct buf out = { 0 };
		struct policy policy = base;

		if (!scalar_rows[id].size)
			continue;
		change(id, &policy);
		buf_init(&out, SNAPSHOT_SIZE_MAX);
		assert_int_equal(snapshot_store(&out, &policy, NULL, 0), 0);
		if (snapshot_load(&snapshot, out.bytes, out.size) != 0)
			fail_msg("%s.%s: the snapshot does not load", scalar_rows[id].section, scalar_rows[id].name);
		if (!scalars_equal(0, SCALAR_ROW_COUNT - 1, snapshot_policy(snapshot), &policy))
			fail_msg("%s.%s is lost", scalar_rows[id].section, scalar_rows[id].name);
	}
}

static void test_no_choice_without_a_name_is_loaded(void **state)
{
	for (enum scalar_id id = 0; id < SCALAR_ROW_COUNT; id++)
		for (uint64_t value = 0; value <= scalar_rows[id].name_count; value++) {
			cleanup_snapshot struct snapshot *snapshot = NULL;
			cleanup_buf struct buf out = { 0 };
			struct policy policy = base;

			if (scalar_rows[id].unit != SCALAR_CHOICE ||
			    (value < scalar_rows[id].name_count && scalar_rows[id].names[value]))
				continue;
			scalar_set(id, &policy, value);
			buf_init(&out, SNAPSHOT_SIZE_MAX);
			assert_int_equal(snapshot_store(&out, &policy, NULL, 0), 0);
			assert_int_equal(snapshot_load(&snapshot, out.bytes, out.size), -EBADMSG);
		}
}

static void test_each_is_compared_and_printed(void **state)
{
	for (enum scalar_id id = 0; id < SCALAR_ROW_COUNT; id++) {
		const struct scalar_row *row = &scalar_rows[id];
		cleanup_buf struct buf text = { 0 }, before = { 0 }, after = { 0 };
		struct policy policy = base;
		struct json json;

		if (!row->size)
			continue;
		change(id, &policy);
		buf_init(&text, 1 << 16);
		if (print_diff(&base, &policy, &text) != 1)
			fail_msg("%s.%s is not compared: %s", row->section, row->name, buf_text(&text));
		buf_init(&before, 1 << 16);
		buf_init(&after, 1 << 16);
		json_init(&json, &before);
		print_policy_json(&base, &json);
		json_init(&json, &after);
		print_policy_json(&policy, &json);
		if (str_equal(buf_text(&before), buf_text(&after)))
			fail_msg("%s.%s is not in JSON", row->section, row->name);
		buf_reset(&before);
		buf_reset(&after);
		print_policy(&base, &before);
		print_policy(&policy, &after);
		if (str_equal(buf_text(&before), buf_text(&after)))
			fail_msg("%s.%s is not shown", row->section, row->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_stored),
		cmocka_unit_test(test_no_choice_without_a_name_is_loaded),
		cmocka_unit_test(test_each_is_compared_and_printed),
	};

	return cmocka_run_group_tests_name("lang-scalars", tests, set_origins, NULL);
}
