/* SPDX-License-Identifier: Apache-2.0 */

/* Specs that cannot mean what they say are refused before anything is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jail/jail.h"

static const char *refusal(struct jail_spec spec, const struct jail_mount *mounts, size_t count)
{
	static struct err err;

	memset(&err, 0, sizeof err);
	spec.mounts = mounts;
	spec.mount_count = count;
	return jail_spec_check(&spec, &err) < 0 ? err.message : NULL;
}

static const struct jail_spec good = { .hostname = "x", .init_fd = 5, .wire_fd = 6, .cgroup_fd = -1 };

#define REFUSED(needle, ...)                                                              \
	do {                                                                              \
		const struct jail_mount mounts_[] = { __VA_ARGS__ };                      \
		const char *why_ = refusal(good, mounts_, sizeof mounts_ / sizeof *mounts_); \
		if (!why_ || !strstr(why_, needle))                                       \
			fail_msg("not refused by '%s' but by '%s'", needle, why_ ? why_ : "nothing"); \
	} while (0)

static void test_targets(void **state)
{
	REFUSED("not an absolute, normalised", { .kind = JAIL_DIRECTORY, .target = "a" });
	REFUSED("not an absolute, normalised", { .kind = JAIL_DIRECTORY, .target = "/a/../b" });
	REFUSED("not an absolute, normalised", { .kind = JAIL_DIRECTORY, .target = "/a/" });
	REFUSED("not an absolute, normalised", { .kind = JAIL_DIRECTORY, .target = "//a" });
	REFUSED("not an absolute, normalised", { .kind = JAIL_DIRECTORY, .target = "/a/./b" });
	REFUSED("not an absolute, normalised", { .kind = JAIL_DIRECTORY, .target = "" });
	REFUSED("not an absolute, normalised", { .kind = JAIL_DIRECTORY });
	REFUSED("root itself", { .kind = JAIL_TMPFS, .target = "/" });
	REFUSED("no such kind", { .kind = JAIL_MOUNT_KIND_COUNT, .target = "/a" });
}

static void test_contents(void **state)
{
	REFUSED("source is not", { .kind = JAIL_BIND, .target = "/a" });
	REFUSED("source is not", { .kind = JAIL_BIND, .target = "/a", .source = "b" });
	REFUSED("only binds, staged trees and devices", { .kind = JAIL_TMPFS, .target = "/a", .source = "/b" });
	REFUSED("needs content", { .kind = JAIL_FILE, .target = "/a", .content_size = 3 });
	REFUSED("needs a text", { .kind = JAIL_SYMLINK, .target = "/a" });
	REFUSED("needs a text", { .kind = JAIL_SYMLINK, .target = "/a", .content = "a\0b", .content_size = 3 });
	REFUSED("needs a text", { .kind = JAIL_SYMLINK, .target = "/a", .content = "a", .content_size = PATH_MAX });
	REFUSED("have an owner", { .kind = JAIL_TMPFS, .target = "/a", .flags = JAIL_OWNED });
}

static void test_order(void **state)
{
	REFUSED("comes later", { .kind = JAIL_TMPFS, .target = "/a/b" }, { .kind = JAIL_TMPFS, .target = "/a" });
	REFUSED("no directory", { .kind = JAIL_PROC, .target = "/proc" }, { .kind = JAIL_TMPFS, .target = "/proc/x" });
	REFUSED("no directory", { .kind = JAIL_SYMLINK, .target = "/l", .content = "a", .content_size = 1 },
		{ .kind = JAIL_TMPFS, .target = "/l/x" });
	REFUSED("no directory", { .kind = JAIL_TMPFS, .target = "/a" }, { .kind = JAIL_MASK, .target = "/a/m" },
		{ .kind = JAIL_TMPFS, .target = "/a/m/x" });
}

static void test_good_specs_pass(void **state)
{
	const struct jail_mount mounts[] = {
		{ .kind = JAIL_PROC, .target = "/proc" },
		{ .kind = JAIL_TMPFS, .target = "/a" },
		{ .kind = JAIL_TMPFS, .target = "/ab" },
		{ .kind = JAIL_BIND, .target = "/a/b", .source = "/x/../y" },
		{ .kind = JAIL_MASK, .target = "/a/b/m" },
		{ .kind = JAIL_MASK, .target = "/a/b/m/n" },
		{ .kind = JAIL_FILE, .target = "/a/f" },
	};

	assert_null(refusal(good, mounts, sizeof mounts / sizeof *mounts));
}

static void test_heads(void **state)
{
	struct jail_spec spec = good;

	spec.hostname = "";
	assert_non_null(refusal(spec, NULL, 0));
	spec = good;
	spec.init_fd = -1;
	assert_non_null(refusal(spec, NULL, 0));
	spec = good;
	spec.seccomp = JAIL_SECCOMP_COUNT;
	assert_non_null(refusal(spec, NULL, 0));
	/* Root's sandbox never is host uid 0. */
	spec = good;
	spec.run_as_root = true;
	spec.host_uid = 0;
	spec.host_gid = 5;
	assert_non_null(refusal(spec, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets), cmocka_unit_test(test_contents), cmocka_unit_test(test_order),
		cmocka_unit_test(test_good_specs_pass), cmocka_unit_test(test_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
