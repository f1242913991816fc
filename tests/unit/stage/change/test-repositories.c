/* SPDX-License-Identifier: Apache-2.0 */

/* Repositories by what they consist of, on the host, in a layer, or on both together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/remove.h"
#include "stage/change/repositories.h"

static char directory[64];
static struct stage_stack stack;

static int make_side(int root_fd, const char *name)
{
	return mkdirat(root_fd, name, 0755) < 0 ? -1 : fd_open_at(root_fd, name, O_RDONLY | O_DIRECTORY, 0);
}

static int setup(void **state)
{
	cleanup_fd int root_fd = FD_NONE;

	stack = STAGE_STACK_NONE;
	if (str_format(directory, sizeof directory, "/var/tmp/atoll-unit-repositories-XXXXXX") < 0 ||
	    !mkdtemp(directory))
		return -1;
	root_fd = fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
	stack.layers[stack.count++] = make_side(root_fd, "live");
	stack.host_fd = make_side(root_fd, "host");
	return stack.host_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	stage_stack_done(&stack);
	return stage_remove_tree(AT_FDCWD, directory, NULL);
}

/* A name that ends in a slash is a directory. */
static void put(int side_fd, const char *path)
{
	char parent[256];
	const char *slash = strrchr(path, '/');
	cleanup_fd int fd = FD_NONE;

	assert_int_equal(str_format(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) : 0, path), 0);
	if (*parent)
		assert_int_equal(path_make_directories(side_fd, parent, 0755), 0);
	if (slash && !slash[1])
		return;
	fd = fd_open_at(side_fd, path, O_WRONLY | O_CREAT, 0644);
	assert_true(fd >= 0);
}

static void put_repository(int side_fd, const char *path)
{
	static const char *const names[] = { "HEAD", "objects/", "refs/" };
	char name[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(str_format(name, sizeof name, "%s%s", path, names[i]), 0);
		put(side_fd, name);
	}
}

static int count_of(const char *path, struct repository found[REPOSITORIES_NESTED_MAX])
{
	struct repositories *repositories = repositories_new(&stack);
	int count;

	assert_non_null(repositories);
	count = repositories_of(repositories, path, true, found);
	repositories_free(repositories);
	return count;
}

static void a_repository_is_what_has_its_parts(void **state)
{
	struct repository found[REPOSITORIES_NESTED_MAX];

	put_repository(stack.host_fd, "a/.git/");
	put_repository(stack.layers[0], "a/evil/");
	put(stack.host_fd, "parts/HEAD");
	put(stack.host_fd, "parts/objects/");
	put(stack.layers[0], "linked/HEAD");
	put(stack.layers[0], "linked/commondir");
	assert_int_equal(count_of("a", found), 0);
	assert_int_equal(count_of("a/.git/hooks/x", found), 1);
	assert_true(found[0].is_on_host && found[0].has_host_directory && found[0].length == strlen("a/.git"));
	assert_int_equal(count_of("a/evil", found), 1);
	assert_false(found[0].is_on_host || found[0].has_host_directory);
	assert_int_equal(count_of("linked/config", found), 1);
	assert_int_equal(count_of("parts/config", found), 0);
	/* What is staged makes one of what the host has. */
	put(stack.layers[0], "parts/refs/");
	assert_int_equal(count_of("parts/config", found), 1);
	assert_true(found[0].has_host_directory && !found[0].is_on_host);
	assert_int_equal(count_of("nowhere/at/all", found), 0);
}

static void the_root_and_what_lies_in_one_another(void **state)
{
	struct repository found[REPOSITORIES_NESTED_MAX];

	put_repository(stack.host_fd, "");
	put_repository(stack.host_fd, "modules/a/b/");
	assert_int_equal(count_of("", found), 1);
	assert_int_equal(found[0].length, 0);
	assert_int_equal(count_of("modules/a/b/config", found), 2);
	assert_int_equal(found[1].length, strlen("modules/a/b"));
}

/* As one walk asks: what was found out about a directory holds for the next path, and no longer. */
static void paths_one_after_another(void **state)
{
	static const struct {
		const char *path;
		int count;
	} asked[] = {
		{ "x", 0 }, { "x/r/HEAD", 1 }, { "x/r/refs/a", 1 }, { "x/r2/HEAD", 0 }, { "x/r/objects", 1 },
		{ "x/s", 0 }, { "x/r", 1 }, { "y/r/HEAD", 0 }, { "x/r/HEAD", 1 }, { "x", 0 }, { "", 0 },
		{ "x/rr/r/refs/b", 1 }, { "x/rr/refs", 0 },
	};
	struct repository found[REPOSITORIES_NESTED_MAX];
	struct repositories *repositories;

	put_repository(stack.layers[0], "x/r/");
	put_repository(stack.layers[0], "x/rr/r/");
	put(stack.layers[0], "x/r2/a");
	put(stack.layers[0], "y/r/a");
	repositories = repositories_new(&stack);
	assert_non_null(repositories);
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
		assert_int_equal(repositories_of(repositories, asked[i].path, true, found), asked[i].count);
	repositories_free(repositories);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_repository_is_what_has_its_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(the_root_and_what_lies_in_one_another, setup, teardown),
		cmocka_unit_test_setup_teardown(paths_one_after_another, setup, teardown),
	};

	return cmocka_run_group_tests_name("repositories", tests, NULL, NULL);
}
