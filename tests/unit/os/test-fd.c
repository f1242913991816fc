/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "os/fd.h"
#include "os/path.h"

static char directory[] = "/tmp/atoll-unit-fd-XXXXXX";
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

static size_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static bool is_cloexec(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	assert_int_equal(fd_replace_file_at(dir_fd, name, bytes, size, 0600), 0);
}

static void opens_are_close_on_exec(void **state)
{
	int fd = fd_open_at(dir_fd, "new", O_RDWR | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_true(is_cloexec(fd));
	close(fd);
	assert_int_equal(fd_open_at(dir_fd, "new", O_RDWR | O_CREAT | O_EXCL, 0600), -EEXIST);
	assert_int_equal(fd_open_at(dir_fd, "none", O_RDONLY, 0), -ENOENT);
}

static void reads_whole_or_says_where_it_ended(void **state)
{
	char bytes[8] = "";
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fd_write_full(ends[1], "abc", 3), 0);
	assert_int_equal(fd_write_full(ends[1], "def", 3), 0);
	assert_int_equal(fd_read_full(ends[0], bytes, 6), 0);
	assert_string_equal(bytes, "abcdef");
	assert_int_equal(fd_read_full(ends[0], bytes, 0), 0);
	assert_int_equal(fd_write_full(ends[1], "x", 1), 0);
	close(ends[1]);
	assert_int_equal(fd_read_full(ends[0], bytes, 2), -ENODATA);
	close(ends[0]);
	assert_int_equal(fd_read_full(-1, bytes, 1), -EBADF);
	assert_int_equal(fd_write_full(-1, bytes, 1), -EBADF);
}

static void files_are_read_up_to_the_limit(void **state)
{
	static const size_t sizes[] = { 0, 1, 4094, 4095, 4096, 4097, 8192, 100000 };
	char *content = malloc(100000);

	memset(content, 'x', 100000);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char *bytes = NULL;
		size_t size = 7;

		write_file("sized", content, sizes[i]);
		assert_int_equal(fd_read_file_at(dir_fd, "sized", sizes[i], &bytes, &size), 0);
		assert_int_equal(size, sizes[i]);
		assert_int_equal(bytes[size], 0);
		assert_memory_equal(bytes, content, size);
		free(bytes);
		if (sizes[i])
			assert_int_equal(fd_read_file_at(dir_fd, "sized", sizes[i] - 1, &bytes, &size), -EFBIG);
	}
	free(content);
}

static void files_without_a_size_are_read(void **state)
{
	char *bytes;
	size_t size;

	assert_int_equal(fd_read_file_at(AT_FDCWD, "/proc/self/status", 1 << 20, &bytes, &size), 0);
	assert_int_equal(size, strlen(bytes));
	assert_non_null(strstr(bytes, "Pid:"));
	free(bytes);
	assert_int_equal(fd_read_file_at(AT_FDCWD, "/proc/self/status", 10, &bytes, &size), -EFBIG);
	assert_int_equal(fd_read_file_at(AT_FDCWD, "/proc", 10, &bytes, &size), -EISDIR);
}

static void replacing_is_whole_and_leaves_nothing_behind(void **state)
{
	char *bytes;
	size_t size, entries = 0;
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	write_file("kept", "old", 3);
	assert_int_equal(fd_replace_file_at(dir_fd, "kept", "newer", 5, 0640), 0);
	assert_int_equal(fd_read_file_at(dir_fd, "kept", 100, &bytes, &size), 0);
	assert_string_equal(bytes, "newer");
	free(bytes);
	assert_int_equal(fstatat(dir_fd, "kept", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	/* A directory cannot be replaced by a file; the temporary one goes. */
	assert_int_equal(mkdirat(dir_fd, "folder", 0700), 0);
	assert_int_equal(fd_replace_file_at(dir_fd, "folder", "x", 1, 0600), -EISDIR);
	dir = opendir(directory);
	while ((entry = readdir(dir)))
		entries += strstr(entry->d_name, ".tmp.") != NULL;
	closedir(dir);
	assert_int_equal(entries, 0);
}

static void a_sealed_memfd_cannot_change(void **state)
{
	enum { ALL = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
	cleanup_fd int fd = fd_memfd_sealed("test", "abc", 3);
	char text[4] = "";

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GET_SEALS), ALL);
	assert_int_equal(pread(fd, text, sizeof text, 0), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
}

static void flags_and_moves(void **state)
{
	int fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0), moved;

	assert_int_equal(fd_set_nonblocking(fd, true), 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_nonblocking(fd, false), 0);
	assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_cloexec(fd, false), 0);
	assert_false(is_cloexec(fd));
	moved = fd_move_above(fd, 100);
	assert_true(moved >= 100 && is_cloexec(moved));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(fd_move_above(moved, 50), moved);
	assert_int_equal(fd_set_cloexec(-1, true), -EBADF);
	assert_true(fd_is_same_file(moved, moved));
	assert_false(fd_is_same_file(moved, dir_fd));
	assert_false(fd_is_same_file(moved, -1));
	close(moved);
}

/* In a child, since it closes 0 to 2. */
static void standard_fds_are_filled(void **state)
{
	for (int closed = 0; closed < 8; closed++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			bool good;

			for (int fd = 0; fd <= 2; fd++)
				if (closed & 1 << fd)
					close(fd);
			good = fd_secure_standard() == 0;
			for (int fd = 0; fd <= 2; fd++)
				good = good && fcntl(fd, F_GETFD) >= 0;
			_exit(good ? 0 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void make_pair(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void messages_carry_fds(void **state)
{
	int ends[2], fds[FD_PASS_MAX], sent[FD_PASS_MAX];
	char bytes[8];
	size_t count, before;

	make_pair(ends);
	for (size_t i = 0; i < FD_PASS_MAX; i++)
		sent[i] = dir_fd;
	before = open_fds();
	assert_int_equal(fd_send_message(ends[0], "abc", 3, sent, FD_PASS_MAX), 3);
	assert_int_equal(fd_receive_message(ends[1], bytes, sizeof bytes, fds, FD_PASS_MAX, &count), 3);
	assert_int_equal(count, FD_PASS_MAX);
	for (size_t i = 0; i < count; i++) {
		assert_true(is_cloexec(fds[i]));
		assert_true(fd_is_same_file(fds[i], dir_fd));
		close(fds[i]);
	}
	assert_int_equal(fd_send_message(ends[0], "abc", 3, sent, FD_PASS_MAX + 1), -EINVAL);
	assert_int_equal(open_fds(), before);
	close(ends[0]);
	assert_int_equal(fd_receive_message(ends[1], bytes, sizeof bytes, fds, FD_PASS_MAX, &count), 0);
	assert_int_equal(count, 0);
	close(ends[1]);
}

static void refused_messages_leave_no_fds(void **state)
{
	int ends[2], fds[2], sent[3] = { dir_fd, dir_fd, dir_fd };
	size_t count, before;
	char bytes[4];

	make_pair(ends);
	before = open_fds();
	assert_int_equal(fd_send_message(ends[0], "abc", 3, sent, 3), 3);
	assert_int_equal(fd_receive_message(ends[1], bytes, sizeof bytes, fds, 2, &count), -EMSGSIZE);
	assert_int_equal(count, 0);
	assert_int_equal(fd_send_message(ends[0], "abcde", 5, sent, 1), 5);
	assert_int_equal(fd_receive_message(ends[1], bytes, sizeof bytes, fds, 2, &count), -EMSGSIZE);
	assert_int_equal(open_fds(), before);
	close(ends[0]);
	close(ends[1]);
}

/* No number is free for what arrives: the kernel drops fds and says so. */
static void fds_beyond_the_limit_are_an_error(void **state)
{
	int ends[2], fds[3], sent[3] = { dir_fd, dir_fd, dir_fd }, next;
	struct rlimit saved, small;
	size_t count, before;
	ssize_t n;
	char bytes[4];

	make_pair(ends);
	before = open_fds();
	assert_int_equal(fd_send_message(ends[0], "abc", 3, sent, 3), 3);
	next = fcntl(0, F_DUPFD_CLOEXEC, 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
	small = (struct rlimit){ (rlim_t)next + 1, saved.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	n = fd_receive_message(ends[1], bytes, sizeof bytes, fds, 3, &count);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
	assert_int_equal(n, -EMSGSIZE);
	assert_int_equal(open_fds(), before);
	close(ends[0]);
	close(ends[1]);
}

static void peers_are_known(void **state)
{
	int ends[2];
	uid_t uid;
	gid_t gid;
	pid_t pid;

	make_pair(ends);
	assert_int_equal(fd_peer_credentials(ends[0], &uid, &gid, &pid), 0);
	assert_int_equal(uid, getuid());
	assert_int_equal(gid, getgid());
	assert_int_equal(pid, getpid());
	assert_int_equal(fd_peer_credentials(dir_fd, &uid, &gid, &pid), -ENOTSOCK);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_are_close_on_exec),
		cmocka_unit_test(reads_whole_or_says_where_it_ended),
		cmocka_unit_test(files_are_read_up_to_the_limit),
		cmocka_unit_test(files_without_a_size_are_read),
		cmocka_unit_test(replacing_is_whole_and_leaves_nothing_behind),
		cmocka_unit_test(a_sealed_memfd_cannot_change),
		cmocka_unit_test(flags_and_moves),
		cmocka_unit_test(standard_fds_are_filled),
		cmocka_unit_test(messages_carry_fds),
		cmocka_unit_test(refused_messages_leave_no_fds),
		cmocka_unit_test(fds_beyond_the_limit_are_an_error),
		cmocka_unit_test(peers_are_known),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
