/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Directories of a lower layer are moved in a real overlay of a user namespace: at every point where a move is cut,
 * what takes it back leaves the tree as it was.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/snapshot/move-tree.h"

enum { FILES = 60, SKIPPED = 77, NS_PER_US = 1000 };

static char place[64];
static int mount_fd = FD_NONE, place_fd = FD_NONE;

static void put(int dir_fd, const char *path, const char *text)
{
	int fd = fd_open_at(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0640);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* old/ has two levels, a link, a file with two names and one that the upper layer has changed. */
static int setup(void **state)
{
	char path[64];

	snprintf(place, sizeof place, "move-tree-XXXXXX");
	assert_non_null(mkdtemp(place));
	place_fd = fd_open_at(AT_FDCWD, place, O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(path_make_directories(place_fd, "lower/old/a/b", 0755), 0);
	assert_int_equal(path_make_directories(place_fd, "lower/other/x", 0755), 0);
	for (const char *const *name = (const char *const[]){ "upper", "work", "mount", NULL }; *name; name++)
		assert_int_equal(mkdirat(place_fd, *name, 0755), 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof path, "lower/old/%sf%d", i % 3 ? i % 3 == 1 ? "a/" : "a/b/" : "", i);
		put(place_fd, path, path);
		snprintf(path, sizeof path, "lower/other/x/g%d", i);
		put(place_fd, path, path);
	}
	assert_int_equal(linkat(place_fd, "lower/old/f0", place_fd, "lower/old/a/linked", 0), 0);
	assert_int_equal(symlinkat("nowhere", place_fd, "lower/old/a/link"), 0);
	assert_int_equal(fchmodat(place_fd, "lower/old/a/b", 0500, 0), 0);
	assert_int_equal(fchdir(place_fd), 0);
	assert_int_equal(mount("overlay", "mount", "overlay", 0,
			       "lowerdir=lower,upperdir=upper,workdir=work,userxattr,index=off,xino=auto"), 0);
	mount_fd = fd_open_at(AT_FDCWD, "mount", O_RDONLY | O_DIRECTORY, 0);
	assert_true(mount_fd >= 0);
	put(mount_fd, "old/f3", "changed");
	put(mount_fd, "old/made", "made");
	return 0;
}

static int teardown(void **state)
{
	close_fd(&mount_fd);
	assert_int_equal(umount2("mount", MNT_DETACH), 0);
	assert_int_equal(chdir(".."), 0);
	/* The kernel leaves work/work to root alone; the rights of the namespace are enough to make it ours. */
	(void)!fchmodat(place_fd, "work/work", 0700, 0);
	close_fd(&place_fd);
	assert_int_equal(path_remove_tree(AT_FDCWD, place), 0);
	return 0;
}

struct line {
	char text[256];
};

static struct line lines[16 * FILES];
static size_t line_count;

static int describe_entry(const char *path, const struct stat *status, int kind, struct FTW *position)
{
	char content[64] = "";

	assert_true(line_count < ARRAY_SIZE(lines));
	if (S_ISREG(status->st_mode)) {
		int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);

		assert_true(fd >= 0 && read(fd, content, sizeof content - 1) >= 0);
		close(fd);
	}
	snprintf(lines[line_count++].text, sizeof lines->text, "%s %o %s\n", path, status->st_mode, content);
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* Everything below the mount: names, kinds, modes and contents. */
static char *describe(void)
{
	struct buf text;

	line_count = 0;
	assert_int_equal(nftw("mount", describe_entry, 16, FTW_PHYS), 0);
	qsort(lines, line_count, sizeof *lines, compare_lines);
	buf_init(&text, sizeof lines);
	for (size_t i = 0; i < line_count; i++)
		buf_put_text(&text, lines[i].text);
	assert_int_equal(buf_error(&text), 0);
	return (char *)buf_text(&text);
}

static struct stage_move plan(bool is_exchange)
{
	return (struct stage_move){ .from_fd = mount_fd, .from = "old", .to_fd = mount_fd,
				    .to = is_exchange ? "other" : "new", .is_exchange = is_exchange };
}

static void test_the_kernel_refuses_it(void **state)
{
	assert_int_equal(renameat(mount_fd, "old", mount_fd, "new"), -1);
	assert_int_equal(errno, EXDEV);
}

static void test_it_is_moved(void **state)
{
	struct stage_move move = plan(false);
	struct stat a, b;

	assert_int_equal(stage_move_prepare(&move), 0);
	assert_int_equal(stage_move_run(&move), 0);
	assert_int_equal(faccessat(mount_fd, "old", F_OK, 0), -1);
	assert_int_equal(fstatat(mount_fd, "new/a/b", &a, 0), 0);
	assert_int_equal(a.st_mode & 07777, 0500);
	assert_int_equal(faccessat(mount_fd, "new/made", F_OK, 0), 0);
	/* One of them was copied up, and the other one became a name of that copy. */
	assert_int_equal(fstatat(mount_fd, "new/f0", &a, 0), 0);
	assert_int_equal(fstatat(mount_fd, "new/a/linked", &b, 0), 0);
	assert_int_equal(a.st_nlink, 2);
	assert_int_equal(b.st_nlink, 2);
	/* The lower layer is as it was. */
	assert_int_equal(faccessat(place_fd, "lower/old/a/b/f2", F_OK, 0), 0);
	/* Now it is of the upper layer alone. */
	assert_int_equal(renameat(mount_fd, "new", mount_fd, "newer"), 0);
}

/* Whoever has one open, or its number, sees the same file at its new name; nobody has the others. */
static void test_what_is_open_stays_the_same(void **state)
{
	struct stage_move move = plan(false);
	int fd = fd_open_at(mount_fd, "old/a/f1", O_RDONLY, 0);
	struct stat open, now;
	uint64_t kept;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &open), 0);
	kept = open.st_ino;
	move.kept = &kept;
	move.kept_count = 1;
	assert_int_equal(stage_move_prepare(&move), 0);
	assert_int_equal(stage_move_run(&move), 0);
	assert_int_equal(fstatat(mount_fd, "new/a/f1", &now, 0), 0);
	assert_int_equal(now.st_ino, open.st_ino);
	assert_int_equal(fstat(fd, &now), 0);
	assert_int_equal(now.st_nlink, 1);
	close(fd);
}

static void test_what_is_in_the_way(void **state)
{
	struct stage_move move = plan(false);

	assert_int_equal(mkdirat(mount_fd, "new", 0700), 0);
	put(mount_fd, "new/file", "text");
	assert_int_equal(stage_move_prepare(&move), -ENOTEMPTY);
	assert_int_equal(stage_move_run(&move), -ENOTEMPTY);
	assert_int_equal(unlinkat(mount_fd, "new/file", 0), 0);
	assert_int_equal(stage_move_prepare(&move), 0);
	assert_int_equal(stage_move_run(&move), 0);
	assert_int_equal(faccessat(mount_fd, "new/f0", F_OK, 0), 0);
}

static void test_time_that_is_up_takes_it_back(void **state)
{
	char *before = describe();

	for (int i = 0; i < 2; i++) {
		struct stage_move move = plan(i);
		char *after;

		move.deadline_ns = 1;
		assert_int_equal(stage_move_prepare(&move), 0);
		assert_int_equal(stage_move_run(&move), -EXDEV);
		after = describe();
		assert_string_equal(before, after);
		free(after);
	}
	free(before);
}

/* In a child that is killed after some time; whether it had come to the end. */
static bool move_for(const struct stage_move *move, long us)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(stage_move_run(move) != 0);
	nanosleep(&(struct timespec){ .tv_nsec = us * NS_PER_US }, NULL);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return !WIFSIGNALED(status);
}

/* The empty directory that a move replaces. */
static void make_target(struct stat *ret_target)
{
	assert_int_equal(mkdirat(mount_fd, "new", 0700), 0);
	assert_int_equal(fchmodat(mount_fd, "new", 01711, 0), 0);
	assert_int_equal(fstatat(mount_fd, "new", ret_target, 0), 0);
}

static void check_kills(bool is_exchange, bool has_target)
{
	struct stat target;
	struct stage_move move = plan(is_exchange);
	const struct stage_move back = { .from_fd = mount_fd, .from = "new", .to_fd = mount_fd, .to = "old" };
	char *before, *after;

	if (has_target) {
		make_target(&target);
		move.target = &target;
	}
	before = describe();
	assert_int_equal(stage_move_prepare(&move), 0);
	for (long us = 100; us < 20000; us += us / 2) {
		if (move_for(&move, us)) {
			assert_int_equal(stage_move_settle(&move), 0);
			assert_int_equal(stage_move_run(is_exchange ? &move : &back), 0);
			assert_int_equal(stage_move_settle(&move), 0);
			if (has_target)
				make_target(&target);
		} else {
			assert_int_equal(stage_move_take_back(&move), 0);
		}
		after = describe();
		assert_string_equal(before, after);
		free(after);
	}
	free(before);
}

static void test_what_was_killed_is_taken_back(void **state)
{
	check_kills(false, false);
}

static void test_a_directory_that_was_replaced_is_there_again(void **state)
{
	check_kills(false, true);
}

static void test_a_move_that_is_over_is_taken_back(void **state)
{
	struct stat target;
	struct stage_move move = plan(false);
	char *before, *after;

	make_target(&target);
	move.target = &target;
	before = describe();
	assert_int_equal(stage_move_prepare(&move), 0);
	assert_int_equal(stage_move_run(&move), 0);
	assert_int_equal(stage_move_take_back(&move), 0);
	after = describe();
	assert_string_equal(before, after);
	free(after);
	free(before);
}

static void test_an_exchange_that_was_killed_is_taken_back(void **state)
{
	check_kills(true, false);
}

/* Killed behind its last step, and before anybody was told. */
static void test_an_exchange_that_is_over_is_taken_back(void **state)
{
	const struct stage_move move = plan(true);
	char *before = describe(), *after;

	assert_int_equal(stage_move_prepare(&move), 0);
	assert_int_equal(stage_move_run(&move), 0);
	assert_int_equal(stage_move_take_back(&move), 0);
	after = describe();
	assert_string_equal(before, after);
	free(after);
	free(before);
}

static bool write_text(const char *path, const char *text)
{
	int fd = fd_open_at(AT_FDCWD, path, O_WRONLY, 0);
	bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close_fd(&fd);
	return is_written;
}

/* Root of a user namespace of our own, where the kernel lets us have one. */
static bool enter(void)
{
	unsigned uid = getuid(), gid = getgid();
	char text[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || !write_text("/proc/self/setgroups", "deny"))
		return false;
	snprintf(text, sizeof text, "0 %u 1", uid);
	if (!write_text("/proc/self/uid_map", text))
		return false;
	snprintf(text, sizeof text, "0 %u 1", gid);
	return write_text("/proc/self/gid_map", text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_kernel_refuses_it, setup, teardown),
		cmocka_unit_test_setup_teardown(test_it_is_moved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_open_stays_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_in_the_way, setup, teardown),
		cmocka_unit_test_setup_teardown(test_time_that_is_up_takes_it_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_was_killed_is_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_directory_that_was_replaced_is_there_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_move_that_is_over_is_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_exchange_that_was_killed_is_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_exchange_that_is_over_is_taken_back, setup, teardown),
	};

	if (!enter() && !getenv("ATOLL_TESTS_MUST_RUN")) {
		print_message("no user namespace: %s\n", strerror(errno));
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
