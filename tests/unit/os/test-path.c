/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

static char directory[] = "/tmp/atoll-unit-path-XXXXXX";
static int dir_fd = FD_NONE;

static int setup(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	dir_fd = fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
	return dir_fd < 0;
}

static int teardown(void **state)
{
	close_fd(&dir_fd);
	return path_remove_tree(AT_FDCWD, directory);
}

static void make_file(const char *name)
{
	assert_int_equal(fd_replace_file_at(dir_fd, name, "x", 1, 0600), 0);
}

static bool exists(const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void resolution_can_be_confined(void **state)
{
	int fd;

	make_file("inside");
	assert_int_equal(symlinkat("/etc/passwd", dir_fd, "out"), 0);
	assert_int_equal(symlinkat("inside", dir_fd, "link"), 0);
	fd = path_open2(dir_fd, "link", O_RDONLY, 0, RESOLVE_BENEATH);
	assert_true(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(path_open2(dir_fd, "out", O_RDONLY, 0, RESOLVE_BENEATH), -EXDEV);
	assert_int_equal(path_open2(dir_fd, "../x", O_RDONLY, 0, RESOLVE_BENEATH), -EXDEV);
	assert_int_equal(path_open2(dir_fd, "link", O_RDONLY, 0, RESOLVE_NO_SYMLINKS), -ELOOP);
	assert_int_equal(path_open_anchor("/proc/self/fd/0"), -ELOOP);
	assert_int_equal(path_open_anchor("/nonexistent"), -ENOENT);
}

static void paths_of_fds(void **state)
{
	char expected[PATH_MAX], out[PATH_MAX];
	int fd;

	make_file("named (deleted)");
	fd = path_open2(dir_fd, "named (deleted)", O_PATH, 0, 0);
	assert_int_equal(str_format(expected, sizeof expected, "%s/named (deleted)", directory), 0);
	assert_int_equal(path_of_fd(fd, out, sizeof out), 0);
	assert_string_equal(out, expected);
	assert_int_equal(path_of_fd(fd, out, strlen(expected)), -ENAMETOOLONG);
	assert_int_equal(unlinkat(dir_fd, "named (deleted)", 0), 0);
	assert_int_equal(path_of_fd(fd, out, sizeof out), -ENOENT);
	close(fd);
	assert_int_equal(path_of_fd(-1, out, sizeof out), -ENOENT);
	assert_int_equal(path_real("/proc/self/../self/./exe/x", out, sizeof out), -ELOOP);
	assert_int_equal(path_real("/./usr//bin/..", out, sizeof out), 0);
	assert_string_equal(out, "/usr");
}

static void directories_are_made_where_they_lack(void **state)
{
	struct stat st;

	assert_int_equal(path_make_directories(dir_fd, "a/b//c", 0700), 0);
	assert_int_equal(fstatat(dir_fd, "a/b/c", &st, 0), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(path_make_directories(dir_fd, "a/b/c", 0755), 0);
	assert_int_equal(path_make_directories(dir_fd, "a", 0755), 0);
	make_file("file");
	assert_int_equal(path_make_directories(dir_fd, "file/x", 0700), -ENOTDIR);
	assert_int_equal(path_make_directories(dir_fd, "", 0700), -ENOENT);
	assert_int_equal(path_make_directories(AT_FDCWD, "/", 0700), 0);
	assert_int_equal(path_make_directories(AT_FDCWD, "/usr/bin", 0700), 0);
}

static void one_apart_is_made_once_and_leaves_no_attribute(void **state)
{
	struct stat st, parent, grown;
	int before = 0, after = 0;
	bool has_flags = ioctl(dir_fd, FS_IOC_GETFLAGS, &before) == 0;

	assert_int_equal(fstat(dir_fd, &parent), 0);
	assert_int_equal(path_make_apart(directory, "apart", 0700), 0);
	assert_int_equal(fstatat(dir_fd, "apart", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(path_make_apart(directory, "apart", 0700), -EEXIST);
	/* Nothing stays of the name by chance, of the second time neither. */
	assert_int_equal(fstat(dir_fd, &grown), 0);
	assert_int_equal(grown.st_nlink, parent.st_nlink + (parent.st_nlink > 1));
	assert_int_equal(path_make_apart("/nonexistent", "apart", 0700), -ENOENT);
	if (has_flags)
		assert_int_equal(ioctl(dir_fd, FS_IOC_GETFLAGS, &after), 0);
	assert_int_equal(after, before);
}

static void trees_are_removed_and_links_not_followed(void **state)
{
	assert_int_equal(path_make_directories(dir_fd, "tree/deep/deeper", 0700), 0);
	assert_int_equal(path_make_directories(dir_fd, "safe", 0700), 0);
	make_file("safe/file");
	make_file("tree/deep/file");
	assert_int_equal(symlinkat("../safe", dir_fd, "tree/link"), 0);
	assert_int_equal(symlinkat("/nonexistent", dir_fd, "tree/dangling"), 0);
	/* Of mode 0, as overlayfs leaves its work directory behind, and not to be written, as anybody may. */
	assert_int_equal(mkdirat(dir_fd, "tree/shut", 0700), 0);
	assert_int_equal(mkdirat(dir_fd, "tree/shut/below", 0500), 0);
	assert_int_equal(fchmodat(dir_fd, "tree/shut", 0, 0), 0);
	assert_int_equal(path_remove_tree(dir_fd, "tree"), 0);
	assert_false(exists("tree"));
	assert_true(exists("safe/file"));
	assert_int_equal(path_remove_tree(dir_fd, "tree"), 0);
	assert_int_equal(symlinkat("safe", dir_fd, "to-safe"), 0);
	assert_int_equal(path_remove_tree(dir_fd, "to-safe"), 0);
	assert_true(exists("safe/file"));
	assert_int_equal(path_remove_tree(dir_fd, "safe/file"), 0);
	assert_false(exists("safe/file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolution_can_be_confined),
		cmocka_unit_test(paths_of_fds),
		cmocka_unit_test(directories_are_made_where_they_lack),
		cmocka_unit_test(one_apart_is_made_once_and_leaves_no_attribute),
		cmocka_unit_test(trees_are_removed_and_links_not_followed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
