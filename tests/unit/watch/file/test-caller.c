/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "watch/file/caller.h"

/* A file that is called like one, and has been removed like one, is on a file system that somebody has. */
static void a_memory_file_is_told_by_where_it_lies(void **state)
{
	cleanup_fd int root = fd_open_at(AT_FDCWD, "/", O_PATH, 0);
	struct watch_options options = { .init_pid = getpid(), .root_fd = root, .uid = getuid(), .gid = getgid() };
	cleanup_fd int memory = fd_memfd_new("x"), directory = FD_NONE, named = FD_NONE;
	char place[] = "/dev/shm/atolltest-memory-XXXXXX";
	struct file_view view;
	struct stat status;

	assert_true(memory >= 0);
	assert_int_equal(file_view_init(&view, &options), 0);
	assert_true(file_view_is_memory(&view, memory));
	assert_non_null(mkdtemp(place));
	directory = fd_open_at(AT_FDCWD, place, O_RDONLY | O_DIRECTORY, 0);
	named = fd_open_at(directory, "memfd:x", O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(named >= 0);
	assert_int_equal(unlinkat(directory, "memfd:x", 0), 0);
	assert_int_equal(rmdir(place), 0);
	assert_int_equal(fstat(named, &status), 0);
	assert_int_equal(status.st_nlink, 0);
	assert_false(file_view_is_memory(&view, named));
	file_view_done(&view);
}

/* Left open: the view borrows it. */
static void view_of_ourselves(struct file_view *view)
{
	struct watch_options options = { .init_pid = getpid(), .root_fd = fd_open_at(AT_FDCWD, "/", O_PATH, 0),
					 .uid = getuid(), .gid = getgid() };

	assert_int_equal(file_view_init(view, &options), 0);
}

/* A process with this umask, and then with another. */
static pid_t start_caller(mode_t first, mode_t second, int *ret_go_fd)
{
	int ends[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		umask(first);
		close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		umask(second);
		pause();
	}
	close(ends[0]);
	*ret_go_fd = ends[1];
	return pid;
}

static bool has_umask(struct file_view *view, pid_t pid, mode_t mask)
{
	struct file_caller caller;

	assert_int_equal(file_caller_begin(&caller, view, pid), 0);
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(file_caller_read_status(&caller), 0);
		assert_int_equal(caller.thread_inside, pid);
		if (caller.umask == mask)
			return true;
		usleep(1000);
	}
	return false;
}

static void end_caller(pid_t pid, int go_fd)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(go_fd);
}

/* What is kept open tells of the process as it is now, and of no other. */
static void a_umask_is_that_of_the_caller_as_it_is_now(void **state)
{
	int first_fd, second_fd;
	pid_t first = start_caller(0070, 0007, &first_fd), second = start_caller(0022, 0022, &second_fd);
	struct file_caller caller;
	struct file_view view;

	view_of_ourselves(&view);
	assert_true(has_umask(&view, first, 0070));
	assert_int_equal(write(first_fd, "x", 1), 1);
	assert_true(has_umask(&view, first, 0007));
	assert_true(has_umask(&view, second, 0022));
	assert_true(has_umask(&view, first, 0007));
	end_caller(first, first_fd);
	assert_int_equal(file_caller_begin(&caller, &view, first), 0);
	assert_int_equal(file_caller_read_status(&caller), -ESRCH);
	/* The number of the dead one, had the other got it. */
	assert_true(has_umask(&view, second, 0022));
	end_caller(second, second_fd);
	first = start_caller(0123, 0123, &first_fd);
	view.status_pid = first;
	assert_true(has_umask(&view, first, 0123));
	end_caller(first, first_fd);
	file_view_done(&view);
}

static void a_file_is_quiet_only_where_nobody_inside_can_replace_it(void **state)
{
	char place[] = "/tmp/atolltest-quiet-XXXXXX", path[64];
	cleanup_fd int fd = FD_NONE, fixed_fd = FD_NONE;
	struct file_view view;
	bool has_namespace;
	int status = 0;
	pid_t pid;

	view_of_ourselves(&view);
	assert_non_null(mkdtemp(place));
	snprintf(path, sizeof path, "%s/f", place);
	fd = fd_open_at(AT_FDCWD, path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	file_view_add_quiet(&view, path, fd);
	assert_false(file_view_has_quiet(&view, path));
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || mount(place, place, NULL, MS_BIND, NULL) < 0 ||
		    mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
			_exit(77);
		fixed_fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
		file_view_add_quiet(&view, path, fixed_fd);
		_exit(file_view_has_quiet(&view, path) && !file_view_has_quiet(&view, place) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	has_namespace = WEXITSTATUS(status) != 77;
	unlink(path);
	rmdir(place);
	file_view_done(&view);
	if (!has_namespace)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_memory_file_is_told_by_where_it_lies),
		cmocka_unit_test(a_umask_is_that_of_the_caller_as_it_is_now),
		cmocka_unit_test(a_file_is_quiet_only_where_nobody_inside_can_replace_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
