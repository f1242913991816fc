/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/differ.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/str.h"
#include "confine/confine.h"
#include "os/fd.h"

enum { PAIR_FDS = 3, NEW_TEXT_FD = 3, READ_CHUNK = 64 << 10 };

/* What diff answered, from the child to us. */
enum answer { ANSWER_DONE, ANSWER_FAILED, ANSWER_TIME };

static const char *find_diff(void)
{
	static const char *const places[] = { "/usr/bin/diff", "/bin/diff" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

static uint8_t spawn_diff(const char *program, const int fds[PAIR_FDS])
{
	static const char *const argv[] = { "diff", "-u", "-a", "-p", "--label", "a", "--label", "b", "--", "-",
					    "/proc/self/fd/3", NULL };
	static const char *const env[] = { "LC_ALL=C", NULL };
	posix_spawn_file_actions_t actions;
	int status, r;
	pid_t pid;

	r = posix_spawn_file_actions_init(&actions);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, fds[2], STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, fds[1], NEW_TEXT_FD);
	if (r == 0)
		r = posix_spawn(&pid, program, &actions, NULL, (char *const *)argv, (char *const *)env);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return ANSWER_FAILED;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return ANSWER_FAILED;
	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
		return ANSWER_TIME;
	return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? ANSWER_DONE : ANSWER_FAILED;
}

/* Every received fd is moved away from the numbers that it is dup'ed to. */
static void serve(int socket_fd, const char *program)
{
	for (;;) {
		int fds[PAIR_FDS] = { FD_NONE, FD_NONE, FD_NONE };
		uint8_t answer = ANSWER_FAILED, request;
		size_t count = 0;
		ssize_t n = fd_receive_message(socket_fd, &request, sizeof request, fds, PAIR_FDS, &count);
		bool whole = count == PAIR_FDS;

		if (n <= 0)
			return;
		for (size_t i = 0; i < count; i++) {
			fds[i] = fd_move_above(fds[i], 16);
			whole &= fds[i] >= 0;
		}
		if (whole)
			answer = spawn_diff(program, fds);
		/* The end of its output is seen only when no copy is left. */
		for (size_t i = 0; i < count; i++)
			close_fd(&fds[i]);
		if (fd_send_message(socket_fd, &answer, sizeof answer, NULL, 0) < 0)
			return;
	}
}

int differ_start(struct differ *ret_differ, struct err *err)
{
	const char *program = find_diff();
	int ends[2];
	pid_t pid;

	if (!program) {
		err_set(err, ERR_STATE, ENOENT, "diff", "diff(1) is not installed");
		err_hint(err, "apt install diffutils; without -p it is not needed");
		return -ENOENT;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, ERR_INTERNAL, errno, "diff", "socketpair: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		/* Dies with its parent even where that is killed. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && confine_self(CONFINE_STAGE_DIFFER, NULL, 0, NULL) == 0) {
			close(ends[0]);
			serve(ends[1], program);
		}
		_exit(0);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return err_set(err, ERR_INTERNAL, errno, "diff", "fork: %s", strerror(errno));
	}
	/* A reader that went away is an error of write(2) here and below. */
	signal(SIGPIPE, SIG_IGN);
	ret_differ->socket_fd = ends[0];
	return 0;
}

void differ_stop(struct differ *differ)
{
	close_fd(&differ->socket_fd);
}

/* Reads until the end; what is beyond the maximum is thrown away, so that diff ends. */
static int collect(int fd, struct buf *out)
{
	char chunk[READ_CHUNK];
	size_t total = 0;

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof chunk);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		total += (size_t)n;
		if (total > DIFFER_OUTPUT_MAX)
			return -EFBIG;
		buf_put(out, chunk, (size_t)n);
	}
	return buf_error(out);
}

/* Takes the two lines of names away. */
static int drop_names(struct buf *out, size_t start)
{
	size_t at = start;

	if (out->size == start)
		return 0;
	for (int line = 0; line < 2; line++) {
		const uint8_t *end = memchr(out->bytes + at, '\n', out->size - at);

		if (!end)
			return -EIO;
		at = (size_t)(end - out->bytes) + 1;
	}
	memmove(out->bytes + start, out->bytes + at, out->size - at);
	out->size -= at - start;
	return 0;
}

int differ_run(struct differ *differ, const struct differ_text *before, const struct differ_text *after,
	       struct buf *out)
{
	static const int errors[] = { [ANSWER_DONE] = 0, [ANSWER_FAILED] = -EIO, [ANSWER_TIME] = -ETIME };
	cleanup_fd int old_fd = FD_NONE, new_fd = FD_NONE, read_fd = FD_NONE, write_fd = FD_NONE;
	uint8_t request = 0, answer;
	size_t start = out->size, count;
	int ends[2], r;

	if (before->size > DIFFER_TEXT_MAX || after->size > DIFFER_TEXT_MAX)
		return -EFBIG;
	old_fd = fd_memfd_sealed("before", before->bytes, before->size);
	if (old_fd < 0)
		return old_fd;
	new_fd = fd_memfd_sealed("after", after->bytes, after->size);
	if (new_fd < 0)
		return new_fd;
	if (lseek(old_fd, 0, SEEK_SET) < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	read_fd = ends[0];
	write_fd = ends[1];
	if (fd_send_message(differ->socket_fd, &request, sizeof request,
			    (const int[]){ old_fd, new_fd, write_fd }, PAIR_FDS) < 0)
		return -EPIPE;
	close_fd(&write_fd);
	r = collect(read_fd, out);
	close_fd(&read_fd);
	if (fd_receive_message(differ->socket_fd, &answer, sizeof answer, NULL, 0, &count) != 1)
		return -EPIPE;
	if (r == 0)
		r = answer < ARRAY_SIZE(errors) ? errors[answer] : -EIO;
	return r < 0 ? r : drop_names(out, start);
}

void differ_count(const struct buf *hunks, size_t *ret_added, size_t *ret_removed)
{
	*ret_added = *ret_removed = 0;
	for (size_t at = 0; at < hunks->size;) {
		const uint8_t *end = memchr(hunks->bytes + at, '\n', hunks->size - at);

		*ret_added += hunks->bytes[at] == '+';
		*ret_removed += hunks->bytes[at] == '-';
		at = end ? (size_t)(end - hunks->bytes) + 1 : hunks->size;
	}
}
