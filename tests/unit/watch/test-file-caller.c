/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"
#include "watch/file-caller.h"

/* A file that is called like one, and has been removed like one, is on a file system that somebody has. */
static void a_memory_file_is_told_by_where_it_lies(void **state)
{
	struct watch_options options = { .init_pid = getpid(), .uid = getuid(), .gid = getgid() };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_memory_file_is_told_by_where_it_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
