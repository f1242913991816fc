/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "policy/compare/parts.h"
#include "policy/scalars.h"

static const struct file_rule files[] = { { "/usr", FILE_READ, 0, NULL, { "files.read[0]", "/a.yaml", 1 } } },
			      elsewhere[] = { { "/usr", FILE_READ, 0, NULL, { "files.read[7]", "/b.yaml", 9 } } },
			      other[] = { { "/usr", FILE_WRITE, 0, NULL, { "files.read[0]", "/a.yaml", 1 } } };
static const struct net_rule uses_one[] = { { .verdict = VERDICT_ALLOW, .host = "a.org",
					      .inject = { INJECT_BEARER, "h", NULL, NULL, "one", NULL } } },
			     uses_two[] = { { .verdict = VERDICT_ALLOW, .host = "a.org",
					      .inject = { INJECT_BEARER, "h", NULL, NULL, "two", NULL } } },
			     plain[] = { { .verdict = VERDICT_ALLOW, .host = "a.org" } };

static struct policy base(void)
{
	return (struct policy){ .name = "x", .project = "/p", .home = "/h", .files.rules = files, .files.count = 1,
				.network.rules = plain, .network.count = 1 };
}

static void places_and_the_network_do_not_matter(void **state)
{
	struct policy a = base(), b = base();

	b.name = "y";
	b.files.rules = elsewhere;
	b.network.rules = NULL;
	b.network.count = 0;
	b.network.default_verdict = VERDICT_ALLOW;
	b.network.limits.of[NET_LIMIT_TOTAL].amount = 5;
	assert_int_equal(policy_compare_parts(&a, &b), 0);
}

#define CHANGED(part, ...)                                                   \
	do {                                                                 \
		struct policy a = base(), b = base();                        \
		__VA_ARGS__;                                                 \
		assert_int_equal(policy_compare_parts(&a, &b), 1u << (part)); \
		assert_int_equal(policy_compare_parts(&b, &a), 1u << (part)); \
	} while (0)

static void everything_else_is_named(void **state)
{
	static const struct exec_rule exec[] = { { .program = "/bin/x" } };
	static const struct env_set set[] = { { "A", "b", { "", "", 0 } } };
	static const struct device_rule devices[] = { { "kvm", { "", "", 0 } } };
	static const struct publish_rule publish[] = { { .port = 80 } };
	static const char *const canaries[] = { "c", NULL };

	CHANGED(POLICY_PART_FILES, b.files.rules = other);
	CHANGED(POLICY_PART_FILES, b.files.count = 0);
	CHANGED(POLICY_PART_FILES, b.project = "/q");
	CHANGED(POLICY_PART_EXEC, (b.exec.rules = exec, b.exec.count = 1));
	CHANGED(POLICY_PART_EXEC, b.exec.new_binaries = true);
	CHANGED(POLICY_PART_LIMITS, b.limits[RESOURCE_WALL_MS].value = 1);
	CHANGED(POLICY_PART_ENV, (b.env.set = set, b.env.set_count = 1));
	CHANGED(POLICY_PART_DEVICES, (b.devices = devices, b.device_count = 1));
	CHANGED(POLICY_PART_DATA, b.data.canaries = canaries);
	CHANGED(POLICY_PART_DATA, b.data.canary_files = canaries);
	CHANGED(POLICY_PART_AUDIT, b.audit.network = AUDIT_ALL);
	CHANGED(POLICY_PART_AGENT, b.agent.command = canaries);
	CHANGED(POLICY_PART_AGENT, b.agent.settings = canaries);
	CHANGED(POLICY_PART_STAGE, b.stage.snapshots = STAGE_AUTO_EXEC);
	CHANGED(POLICY_PART_MONITOR, b.monitor.canary = MONITOR_FREEZE);
	CHANGED(POLICY_PART_DEGRADE, b.degrade = 1);
	CHANGED(POLICY_PART_PUBLISH, (b.network.publish = publish, b.network.publish_count = 1));
	CHANGED(POLICY_PART_INJECT, b.network.rules = uses_one);
	CHANGED(POLICY_PART_INJECT, (a.network.rules = uses_two, b.network.rules = uses_one));
}

/* `atoll policy set` refuses what it cannot change by these parts: a value in none of them is taken and not done. */
static void each_single_value_but_of_the_network_is_in_a_part(void **state)
{
	for (enum scalar_id id = 0; id < SCALAR_ROW_COUNT; id++) {
		const struct scalar_row *row = &scalar_rows[id];
		struct policy a = base(), b = base();
		uint64_t value = scalar_get(id, &a);

		if (!row->size)
			continue;
		value = row->unit == SCALAR_TEXT ? (uintptr_t)"text" : row->unit == SCALAR_SWITCH ? !value : value + 1;
		scalar_set(id, &b, value);
		if (!policy_compare_parts(&a, &b) != str_equal(row->section, "network"))
			fail_msg("%s.%s", row->section, row->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_and_the_network_do_not_matter),
		cmocka_unit_test(everything_else_is_named),
		cmocka_unit_test(each_single_value_but_of_the_network_is_in_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
