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
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/copy.h"

static char directory[] = "/tmp/atoll-unit-copy-XXXXXX";
static int dir_fd;

static int setup(void **state)
{
	(void)state;
	dir_fd = mkdtemp(directory) ? fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0) : -1;
	return dir_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	close(dir_fd);
	return path_remove_tree(AT_FDCWD, directory);
}

static void make_file(const char *name, const void *bytes, size_t size, mode_t mode)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(fd_write_full(fd, bytes, size), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static struct copy copy_of(const char *from, const char *to, enum copy_kind kind)
{
	return (struct copy){ .from_fd = dir_fd, .from = from, .to_fd = dir_fd, .to = to, .kind = kind,
			      .replaced_fd = FD_NONE };
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static void assert_absent(const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), -1);
}

static void test_bytes_modes_and_times_come_along(void **state)
{
	static char bytes[300000];
	struct timespec times[2] = { { 1000, 123456789 }, { -7, 987654321 } };
	struct copy copy = copy_of("a", "b", COPY_TO_HOST);
	cleanup_free char *read = NULL;
	struct stat st;
	size_t size;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 31 >> 3);
	make_file("a", bytes, sizeof bytes, 0751);
	assert_int_equal(utimensat(dir_fd, "a", times, 0), 0);
	assert_int_equal(copy_entry(&copy), COPY_MADE);
	st = stat_of("b");
	assert_int_equal(st.st_mode, S_IFREG | 0751);
	assert_true(st.st_mtim.tv_sec == -7 && st.st_mtim.tv_nsec == 987654321);
	assert_true(st.st_atim.tv_sec == 1000 && st.st_atim.tv_nsec == 123456789);
	assert_int_equal(copy.made.inode, st.st_ino);
	assert_int_equal(fd_read_file_at(dir_fd, "b", 1 << 20, &read, &size), 0);
	assert_int_equal(size, sizeof bytes);
	assert_memory_equal(read, bytes, size);
}

static void test_set_id_bits_stay_behind(void **state)
{
	struct copy to_host = copy_of("setid", "setid-host", COPY_TO_HOST);
	struct copy exact = copy_of("setid", "setid-exact", COPY_EXACT);

	make_file("setid", "x", 1, 06755);
	assert_int_equal(copy_entry(&to_host), COPY_MADE);
	assert_true(to_host.lost_set_id);
	assert_int_equal(stat_of("setid-host").st_mode, S_IFREG | 0755);
	assert_int_equal(copy_entry(&exact), COPY_MADE);
	assert_int_equal(stat_of("setid-exact").st_mode, S_IFREG | 06755);
}

static void test_holes_stay_holes(void **state)
{
	struct copy copy = copy_of("sparse", "sparse-copy", COPY_TO_HOST);
	cleanup_fd int fd = fd_open_at(dir_fd, "sparse", O_RDWR | O_CREAT, 0600);
	char byte = 0;
	struct stat st;

	assert_int_equal(pwrite(fd, "middle", 6, 32 << 20), 6);
	assert_int_equal(ftruncate(fd, 64 << 20), 0);
	assert_int_equal(copy_entry(&copy), COPY_MADE);
	st = stat_of("sparse-copy");
	assert_int_equal(st.st_size, 64 << 20);
	assert_true(st.st_blocks * 512 < 1 << 20);
	close_fd(&fd);
	fd = fd_open_at(dir_fd, "sparse-copy", O_RDONLY, 0);
	assert_int_equal(pread(fd, &byte, 1, (32 << 20) + 5), 1);
	assert_int_equal(byte, 'e');
}

static void test_links_are_copied_as_links(void **state)
{
	struct copy copy = copy_of("link", "link-copy", COPY_TO_HOST);
	char target[64] = "";

	assert_int_equal(symlinkat("/etc/shadow", dir_fd, "link"), 0);
	assert_int_equal(copy_entry(&copy), COPY_MADE);
	assert_int_equal(readlinkat(dir_fd, "link-copy", target, sizeof target), 11);
	assert_string_equal(target, "/etc/shadow");
}

static void test_pipes_and_sockets_are_refused_without_waiting(void **state)
{
	struct copy copy = copy_of("fifo", "fifo-copy", COPY_EXACT);

	assert_int_equal(mkfifoat(dir_fd, "fifo", 0600), 0);
	alarm(5);
	assert_int_equal(copy_entry(&copy), COPY_REFUSED);
	alarm(0);
	assert_absent("fifo-copy");
}

static void test_what_cannot_be_read_by_its_owner_is_copied(void **state)
{
	struct copy copy = copy_of("closed", "closed-copy", COPY_TO_HOST);

	make_file("closed", "secret", 6, 0);
	assert_int_equal(copy_entry(&copy), COPY_MADE);
	assert_int_equal(stat_of("closed-copy").st_mode & 07777, 0);
	assert_int_equal(stat_of("closed-copy").st_size, 6);
	assert_int_equal(stat_of("closed").st_mode & 07777, 0);
}

static void test_attributes_of_the_overlay_stay_behind(void **state)
{
	struct copy to_host = copy_of("attr", "attr-host", COPY_TO_HOST);
	struct copy exact = copy_of("attr", "attr-exact", COPY_EXACT);
	char path[128], value[16];

	make_file("attr", "x", 1, 0644);
	assert_int_equal(str_format(path, sizeof path, "%s/attr", directory), 0);
	if (setxattr(path, "user.mine", "1", 1, 0) < 0 && errno == EOPNOTSUPP)
		skip();
	assert_int_equal(setxattr(path, "user.overlay.origin", "", 0, 0), 0);
	assert_int_equal(copy_entry(&to_host), COPY_MADE);
	assert_int_equal(copy_entry(&exact), COPY_MADE);
	assert_int_equal(str_format(path, sizeof path, "%s/attr-host", directory), 0);
	assert_int_equal(getxattr(path, "user.mine", value, sizeof value), 1);
	assert_int_equal(getxattr(path, "user.overlay.origin", value, sizeof value), -1);
	assert_int_equal(str_format(path, sizeof path, "%s/attr-exact", directory), 0);
	assert_int_equal(getxattr(path, "user.overlay.origin", value, sizeof value), 0);
}

static void test_a_directory_comes_without_its_entries(void **state)
{
	struct copy copy = copy_of("dir", "dir-copy", COPY_TO_HOST);

	assert_int_equal(mkdirat(dir_fd, "dir", 0700), 0);
	make_file("dir/inside", "x", 1, 0644);
	assert_int_equal(fchmodat(dir_fd, "dir", 01775, 0), 0);
	assert_int_equal(copy_entry(&copy), COPY_MADE);
	assert_int_equal(stat_of("dir-copy").st_mode, S_IFDIR | 01775);
	assert_absent("dir-copy/inside");
}

static void test_nothing_is_overwritten(void **state)
{
	struct copy copy = copy_of("one", "two", COPY_TO_HOST);

	make_file("one", "1", 1, 0644);
	make_file("two", "22", 2, 0644);
	assert_int_equal(copy_entry(&copy), -EEXIST);
	assert_int_equal(stat_of("two").st_size, 2);
}

/* Writes into the file all the while: the child of the next test. */
static void keep_writing(void)
{
	int fd = openat(dir_fd, "busy", O_WRONLY);

	for (uint64_t i = 0;; i++)
		if (pwrite(fd, &i, sizeof i, 0) < 0)
			_exit(1);
}

static void test_a_file_that_changes_while_it_is_read_is_noticed(void **state)
{
	struct copy copy = copy_of("busy", "busy-copy", COPY_TO_HOST);
	cleanup_fd int fd = fd_open_at(dir_fd, "busy", O_RDWR | O_CREAT, 0600);
	pid_t child;
	int r;

	/* Tens of milliseconds to copy: many ticks of the file system's clock. */
	assert_int_equal(posix_fallocate(fd, 0, 64 << 20), 0);
	child = fork();
	if (child == 0)
		keep_writing();
	r = copy_entry(&copy);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* A reflink takes one moment whole, which is as good. */
	if (r == COPY_MADE)
		skip();
	assert_int_equal(r, COPY_CHANGED);
	assert_absent("busy-copy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_modes_and_times_come_along),
		cmocka_unit_test(test_set_id_bits_stay_behind),
		cmocka_unit_test(test_holes_stay_holes),
		cmocka_unit_test(test_links_are_copied_as_links),
		cmocka_unit_test(test_pipes_and_sockets_are_refused_without_waiting),
		cmocka_unit_test(test_what_cannot_be_read_by_its_owner_is_copied),
		cmocka_unit_test(test_attributes_of_the_overlay_stay_behind),
		cmocka_unit_test(test_a_directory_comes_without_its_entries),
		cmocka_unit_test(test_nothing_is_overwritten),
		cmocka_unit_test(test_a_file_that_changes_while_it_is_read_is_noticed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
