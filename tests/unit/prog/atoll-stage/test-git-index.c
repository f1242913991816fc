/* SPDX-License-Identifier: Apache-2.0 */

/* Which indexes of git name nothing but files of their working tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "prog/atoll-stage/review/git-index.h"

enum { SHA1_BYTES = 20, SHA256_BYTES = 32 };

static void put(int fd, const void *bytes, size_t size)
{
	assert_int_equal(write(fd, bytes, size), size);
}

static void put_zeros(int fd, size_t size)
{
	static const uint8_t zeros[40 + SHA256_BYTES];

	assert_true(size <= sizeof zeros);
	put(fd, zeros, size);
}

static int new_index(uint8_t version, uint8_t entries)
{
	const uint8_t header[] = { 'D', 'I', 'R', 'C', 0, 0, 0, version, 0, 0, 0, entries };
	int fd = memfd_create("index", MFD_CLOEXEC);

	assert_true(fd >= 0);
	put(fd, header, sizeof header);
	return fd;
}

/* claimed: the length in the flags. */
static void put_entry(int fd, size_t hash_bytes, const char *name, size_t claimed)
{
	const uint8_t flags[] = { (uint8_t)(claimed >> 8), (uint8_t)claimed };
	size_t size = 42 + hash_bytes + strlen(name);

	put_zeros(fd, 40 + hash_bytes);
	put(fd, flags, sizeof flags);
	put(fd, name, strlen(name));
	put_zeros(fd, 8 - size % 8);
}

static bool is_ordinary(const char *name)
{
	cleanup_fd int fd = new_index(2, 2);

	put_entry(fd, SHA1_BYTES, "a", 1);
	put_entry(fd, SHA1_BYTES, name, strlen(name));
	put_zeros(fd, SHA1_BYTES);
	return git_index_is_ordinary(fd, false);
}

static void names_of_the_tree_are_ordinary(void **state)
{
	static const char *const good[] = {
		"b", "b/c", ".gitignore", "b/.github/x", "..a", "a..", ".git-x", "dir/", "",
	};
	static const char *const bad[] = {
		".git/x", ".GIT/x", "b/.git/x", "b/.git", "../x", "b/../x", "/x", "b//x", "./x", "b/.", "b/..",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!is_ordinary(good[i]))
			fail_msg("%s is ordinary", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (is_ordinary(bad[i]))
			fail_msg("%s is not ordinary", bad[i]);
}

static void names_are_put_together_as_git_does(void **state)
{
	cleanup_fd int fd = new_index(4, 2);

	put_zeros(fd, 40 + SHA1_BYTES);
	put(fd, "\0\5\0.gi/x\0", 9);
	put_zeros(fd, 40 + SHA1_BYTES);
	/* Two bytes less of ".gi/x", and then "t/x": `.git/x`. */
	put(fd, "\0\6\2t/x\0", 7);
	put_zeros(fd, SHA1_BYTES);
	assert_false(git_index_is_ordinary(fd, false));
}

static void the_hash_of_the_repository_counts(void **state)
{
	cleanup_fd int fd = new_index(2, 1), other = new_index(2, 1);

	put_entry(fd, SHA256_BYTES, "a", 1);
	put_zeros(fd, SHA256_BYTES);
	assert_true(git_index_is_ordinary(fd, true));
	put_entry(other, SHA256_BYTES, ".git/x", 6);
	put_zeros(other, SHA256_BYTES);
	assert_false(git_index_is_ordinary(other, true));
}

static void what_is_no_index_is_not_ordinary(void **state)
{
	cleanup_fd int empty = memfd_create("empty", MFD_CLOEXEC), cut = new_index(2, 2), five = new_index(5, 0);
	cleanup_fd int offsets = new_index(2, 0), hidden = new_index(2, 1);

	assert_false(git_index_is_ordinary(empty, false));
	put_entry(cut, SHA1_BYTES, "a", 1);
	assert_false(git_index_is_ordinary(cut, false));
	assert_false(git_index_is_ordinary(five, false));
	put(offsets, "EOIE\0\0\0\30\0\0\0\0", 12);
	put_zeros(offsets, 2 * SHA1_BYTES);
	assert_false(git_index_is_ordinary(offsets, false));
	/* A length that ends before the name does. */
	put_entry(hidden, SHA1_BYTES, "abc", 1);
	assert_false(git_index_is_ordinary(hidden, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_tree_are_ordinary),
		cmocka_unit_test(names_are_put_together_as_git_does),
		cmocka_unit_test(the_hash_of_the_repository_counts),
		cmocka_unit_test(what_is_no_index_is_not_ordinary),
	};

	return cmocka_run_group_tests_name("git-index", tests, NULL, NULL);
}
