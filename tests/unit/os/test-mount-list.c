/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "os/mount-list.h"

static char **parse(const char *text, const char *path, int expected)
{
	char *copy = strdup(text), **points = NULL;

	assert_int_equal(mount_points_parse(copy, path, &points), expected);
	free(copy);
	return points;
}

static void finds_what_lies_below(void **state)
{
	char **points = parse("22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
			      "30 22 0:20 / /home/u rw - ext4 /dev/sdb rw\n"
			      "31 30 0:21 / /home/u/p/z\\040q rw - tmpfs none rw\n"
			      "32 30 0:22 / /home/u/p/a/b rw shared:3 - tmpfs none rw\n"
			      "33 30 0:23 / /home/u/p/a rw - tmpfs none rw\n"
			      "34 33 0:24 / /home/u/p/a rw - tmpfs none rw\n"
			      "35 30 0:25 / /home/u/pq rw - tmpfs none rw\n"
			      "36 30 0:25 / /home/u/p rw - tmpfs none rw\n",
			      "/home/u/p", 0);

	assert_string_equal(points[0], "/home/u/p/a");
	assert_string_equal(points[1], "/home/u/p/a/b");
	assert_string_equal(points[2], "/home/u/p/z q");
	assert_null(points[3]);
	strv_free(points);
	points = parse("", "/x", 0);
	assert_null(points[0]);
	strv_free(points);
}

static void refuses_what_is_no_list(void **state)
{
	parse("22 1\n", "/", -EBADMSG);
	parse("words\n", "/", -EBADMSG);
}

static void decodes_only_whole_escapes(void **state)
{
	char **points = parse("1 1 0:1 / /p/\\134x\\011\\04 rw - t n rw\n1 1 0:1 / /p/\\777 rw - t n rw\n", "/p", 0);

	assert_string_equal(points[0], "/p/\\777");
	assert_string_equal(points[1], "/p/\\x\t\\04");
	strv_free(points);
}

/* The machine's own list is readable, and the root has something below it. */
static void reads_the_machines_own(void **state)
{
	char **points;

	assert_int_equal(mount_points_below("/", &points), 0);
	assert_non_null(points[0]);
	strv_free(points);
	assert_int_equal(mount_points_below("/nonexistent", &points), 0);
	assert_null(points[0]);
	strv_free(points);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_lies_below),
		cmocka_unit_test(refuses_what_is_no_list),
		cmocka_unit_test(decodes_only_whole_escapes),
		cmocka_unit_test(reads_the_machines_own),
	};

	return cmocka_run_group_tests_name("mount-list", tests, NULL, NULL);
}
