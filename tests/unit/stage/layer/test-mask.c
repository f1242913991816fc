/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/layer.h"

/* The mask layer, and what entries of layers say. /var/tmp: attributes of users need a real file system. */

static char directory[64];
static int root_fd, host_fd;
static struct stage_tree tree;
static struct stage_mask mask;
static struct err err;

static int setup(void **state)
{
	static const struct timespec times[2] = { { 1000000000, 5 }, { 1000000000, 5 } };

	if (str_format(directory, sizeof directory, "/var/tmp/atoll-unit-mask-XXXXXX") < 0 || !mkdtemp(directory))
		return -1;
	root_fd = fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
	if (path_make_directories(root_fd, "host/a/b", 0755) < 0 || fchmodat(root_fd, "host/a/b", 0711, 0) < 0 ||
	    symlinkat("a", root_fd, "host/link") < 0 || utimensat(root_fd, "host/a/b", times, 0) < 0 ||
	    utimensat(root_fd, "host/a", times, 0) < 0)
		return -1;
	host_fd = fd_open_at(root_fd, "host", O_RDONLY | O_DIRECTORY, 0);
	close(fd_open_at(host_fd, "file", O_WRONLY | O_CREAT, 0600));
	tree = (struct stage_tree){ .path = (char *)"/t", .jail_uid = getuid(), .jail_gid = getgid() };
	mask = (struct stage_mask){ .stage_fd = root_fd, .tree_index = 3, .tree = &tree, .host_fd = host_fd };
	err = (struct err){ 0 };
	return 0;
}

static int teardown(void **state)
{
	close(host_fd);
	close(root_fd);
	return path_remove_tree(AT_FDCWD, directory);
}

static struct stat look(const char *path)
{
	struct stat st = { 0 };

	assert_int_equal(fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static bool is_missing(const char *path)
{
	struct stat st;

	return fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static void names_become_whiteouts(void **state)
{
	struct stat st;

	assert_int_equal(stage_mask_add(&mask, ".env", STAGE_MASK_NAME, &err), 0);
	assert_int_equal(stage_mask_add(&mask, "a/b/.env", STAGE_MASK_NAME, &err), 0);
	assert_int_equal(stage_mask_add(&mask, "a/b/.env", STAGE_MASK_NAME, &err), 0);
	st = look("mask/3/.env");
	assert_true(stage_is_whiteout(&st));
	st = look("mask/3/a/b/.env");
	assert_true(stage_is_whiteout(&st));
	/* The directories on the way are what the sandbox sees of the host's. */
	st = look("mask/3/a/b");
	assert_int_equal(st.st_mode, S_IFDIR | 0711);
	assert_true(st.st_mtim.tv_sec == 1000000000 && st.st_mtim.tv_nsec == 5);
	st = look("mask/3/a");
	assert_true(st.st_mtim.tv_sec == 1000000000);
	assert_true(look("mask/3").st_mtim.tv_sec == look("host").st_mtim.tv_sec);
}

static void what_the_host_lacks_is_whited_out_at_its_top(void **state)
{
	struct stat st;

	assert_int_equal(stage_mask_add(&mask, "a/later/deep/.env", STAGE_MASK_NAME, &err), 0);
	st = look("mask/3/a/later");
	assert_true(stage_is_whiteout(&st));
	assert_int_equal(stage_mask_add(&mask, "a/later/other", STAGE_MASK_NAME, &err), 0);
	assert_int_equal(stage_mask_add(&mask, "x/**", STAGE_MASK_CONTENT, &err), 0);
	st = look("mask/3/x");
	assert_true(stage_is_whiteout(&st));
}

static void content_becomes_opaque(void **state)
{
	char value[2];
	cleanup_fd int fd = FD_NONE;
	struct stage_marks marks;

	assert_int_equal(stage_mask_add(&mask, "a/b", STAGE_MASK_CONTENT, &err), 0);
	fd = stage_open_beneath(root_fd, "mask/3/a/b", O_RDONLY | O_DIRECTORY, 0);
	assert_true(fd >= 0);
	assert_int_equal(fgetxattr(fd, "user.overlay.opaque", value, sizeof value), 1);
	assert_int_equal(stage_marks_of_fd(fd, STAGE_FORM_OVERLAY, &marks), 0);
	assert_true(marks.is_opaque && !marks.is_forged && !marks.is_copied_up && !marks.has_user);
	/* All of it, after a part of it was masked. */
	assert_int_equal(stage_mask_add(&mask, "a", STAGE_MASK_NAME, &err), 0);
	assert_int_equal(look("mask/3/a").st_mode & S_IFMT, S_IFCHR);
}

static void links_and_files_on_the_way_are_said(void **state)
{
	assert_int_equal(stage_mask_add(&mask, "link/b/.env", STAGE_MASK_NAME, &err), -ELOOP);
	assert_non_null(strstr(err.message, "/t/link/b/.env"));
	assert_int_equal(stage_mask_add(&mask, "file/.env", STAGE_MASK_NAME, &err), -ENOTDIR);
	assert_int_equal(stage_mask_add(&mask, "file", STAGE_MASK_CONTENT, &err), -ENOTDIR);
	assert_int_equal(stage_mask_add(&mask, "link", STAGE_MASK_CONTENT, &err), -ELOOP);
	/* The link itself can be masked. */
	assert_int_equal(stage_mask_add(&mask, "link", STAGE_MASK_NAME, &err), 0);
}

static void paths_that_are_none(void **state)
{
	static const char *const paths[] = { "", "/", "a//b", "../x", "a/../b", "./a", "a/" };
	char longest[NAME_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_true(stage_mask_add(&mask, paths[i], STAGE_MASK_NAME, &err) < 0);
	memset(longest, 'n', sizeof longest);
	longest[NAME_MAX + 1] = 0;
	assert_int_equal(stage_mask_add(&mask, longest, STAGE_MASK_NAME, &err), -ENAMETOOLONG);
	assert_true(is_missing("x") && is_missing("mask/x"));
}

static void nothing_is_opened_outside(void **state)
{
	assert_int_equal(symlinkat("/", root_fd, "out"), 0);
	assert_int_equal(stage_open_beneath(root_fd, "out/etc", O_RDONLY, 0), -ELOOP);
	assert_int_equal(stage_open_beneath(root_fd, "out", O_RDONLY, 0), -ELOOP);
	assert_int_equal(stage_open_beneath(root_fd, "../etc", O_RDONLY, 0), -EXDEV);
	assert_int_equal(stage_open_beneath(root_fd, "host/../../etc", O_RDONLY, 0), -EXDEV);
	assert_int_equal(stage_open_beneath(root_fd, "/etc", O_RDONLY, 0), -EXDEV);
}

/* Where the file system takes no devices, and fuse-overlayfs reads the mask. */
static void masks_can_be_files(void **state)
{
	char longest[NAME_MAX] = "";
	struct stat st;

	mask.form = STAGE_FORM_FUSE;
	assert_int_equal(stage_mask_add(&mask, "a/b/.env", STAGE_MASK_NAME, &err), 0);
	assert_int_equal(stage_mask_add(&mask, "a/b/.env", STAGE_MASK_NAME, &err), 0);
	st = look("mask/3/a/b/.wh..env");
	assert_true(S_ISREG(st.st_mode) && st.st_size == 0);
	assert_int_equal(stage_mask_add(&mask, "a", STAGE_MASK_CONTENT, &err), 0);
	st = look("mask/3/a/.wh..wh..opq");
	assert_true(S_ISREG(st.st_mode) && st.st_size == 0);
	/* The whole goes: what stood below it is not needed any more, and comes back by nothing. */
	assert_int_equal(stage_mask_add(&mask, "a", STAGE_MASK_NAME, &err), 0);
	assert_int_equal(stage_mask_add(&mask, "a/b/other", STAGE_MASK_NAME, &err), 0);
	assert_true(is_missing("mask/3/a"));
	assert_false(is_missing("mask/3/.wh.a"));
	/* A name for which there is no room behind the prefix is not left unmasked in silence. */
	memset(longest, 'n', sizeof longest - 1);
	assert_true(stage_mask_add(&mask, longest, STAGE_MASK_NAME, &err) < 0);
}

static void marks_by_name_and_by_fd_agree(void **state)
{
	struct stage_marks by_name, by_fd;
	cleanup_fd int fd = fd_open_at(root_fd, "marked", O_RDWR | O_CREAT, 0600);
	char large[60000];

	memset(large, 'v', sizeof large);
	assert_int_equal(stage_marks_at(root_fd, "marked", STAGE_FORM_OVERLAY, &by_name), 0);
	assert_false(by_name.is_copied_up || by_name.is_forged || by_name.has_user || by_name.is_opaque);
	assert_int_equal(fsetxattr(fd, "user.overlay.origin", "", 0, 0), 0);
	assert_int_equal(fsetxattr(fd, "user.mine", "1", 1, 0), 0);
	/* What the sandbox calls user.overlay.redirect arrives so: its own attribute, and no order to anybody. */
	assert_int_equal(fsetxattr(fd, "user.overlay.overlay.redirect", "/", 1, 0), 0);
	assert_int_equal(stage_marks_at(root_fd, "marked", STAGE_FORM_OVERLAY, &by_name), 0);
	assert_int_equal(stage_marks_of_fd(fd, STAGE_FORM_OVERLAY, &by_fd), 0);
	assert_true(by_name.is_copied_up && by_name.has_user && !by_name.is_forged);
	assert_memory_equal(&by_name, &by_fd, sizeof by_fd);
	assert_int_equal(fsetxattr(fd, "user.overlay.redirect", "/etc", 4, 0), 0);
	assert_int_equal(stage_marks_at(root_fd, "marked", STAGE_FORM_OVERLAY, &by_name), 0);
	assert_true(by_name.is_forged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_become_whiteouts, setup, teardown),
		cmocka_unit_test_setup_teardown(what_the_host_lacks_is_whited_out_at_its_top, setup, teardown),
		cmocka_unit_test_setup_teardown(content_becomes_opaque, setup, teardown),
		cmocka_unit_test_setup_teardown(links_and_files_on_the_way_are_said, setup, teardown),
		cmocka_unit_test_setup_teardown(paths_that_are_none, setup, teardown),
		cmocka_unit_test_setup_teardown(masks_can_be_files, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_opened_outside, setup, teardown),
		cmocka_unit_test_setup_teardown(marks_by_name_and_by_fd_agree, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
