/* SPDX-License-Identifier: Apache-2.0 */

/* Counting that begins later than the group (limit_group_begin), in fake trees. */

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake-tree.h"
#include "limit/limit.h"

#define SESSION "abc123def456"
#define GROUP "top/own/app/atoll-" SESSION

static const struct limit_request all_limits = {
	.session = SESSION, .memory_bytes = 1 << 26, .millicpus = 500, .processes = 9, .cgroup_root = fake_root,
};

static struct limit_group *make(void)
{
	struct limit_group *group = NULL;
	struct err err = { 0 };

	assert_int_equal(limit_group_new(&group, &all_limits, &err), 0);
	return group;
}

static struct limit_usage look(struct limit_group *group)
{
	struct limit_usage usage;

	assert_int_equal(limit_group_usage(group, getpid(), &usage), 0);
	return usage;
}

static void what_was_used_before_is_left_out(void **state)
{
	struct limit_usage usage;
	struct limit_group *group;

	fake_begin("0::/own/app/term.scope\n",
		   "30 23 0:26 / /sys/fs/cgroup/top rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
	fake_group("top", "cpu memory pids", "");
	fake_group("top/own", "cpu memory pids", "");
	fake_group("top/own/app", "", "");
	fake_group("top/own/app/term.scope", "", "4711\n");
	fake_delegate("top/own");
	fake_as_user();
	group = make();
	fake_write(GROUP "/memory.current", "5000\n");
	fake_write(GROUP "/memory.peak", "9000\n");
	fake_write(GROUP "/memory.events", "oom_kill 1\n");
	fake_write(GROUP "/pids.current", "1\n");
	fake_write(GROUP "/pids.peak", "2\n");
	fake_write(GROUP "/pids.events", "max 2\n");
	fake_write(GROUP "/cpu.stat", "usage_usec 2500\n");
	usage = look(group);
	assert_int_equal(usage.memory_peak_bytes, 9000);
	assert_int_equal(usage.cpu_ns, 2500000);
	assert_int_equal(limit_group_begin(group, getpid()), 0);
	usage = look(group);
	assert_int_equal(usage.cpu_ns, 0);
	assert_int_equal(usage.memory_bytes, 5000);
	assert_int_equal(usage.memory_peak_bytes, 5000);
	assert_int_equal(usage.processes_peak, 0);
	assert_int_equal(usage.oom_kills, 0);
	assert_int_equal(usage.fork_refusals, 0);
	fake_write(GROUP "/memory.current", "7000\n");
	fake_write(GROUP "/memory.events", "oom_kill 4\n");
	fake_write(GROUP "/pids.events", "max 3\n");
	fake_write(GROUP "/cpu.stat", "usage_usec 2600\n");
	usage = look(group);
	assert_int_equal(usage.cpu_ns, 100000);
	assert_int_equal(usage.memory_peak_bytes, 7000);
	assert_int_equal(usage.oom_kills, 3);
	assert_int_equal(usage.fork_refusals, 1);
	/* More than ever before is of now. */
	fake_write(GROUP "/memory.peak", "12000\n");
	fake_write(GROUP "/pids.peak", "6\n");
	usage = look(group);
	assert_int_equal(usage.memory_peak_bytes, 12000);
	assert_int_equal(usage.processes_peak, 5);
	limit_group_free(group);
	fake_end();
}

static int end(void **state)
{
	fake_end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_was_used_before_is_left_out, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
