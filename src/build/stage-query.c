/* SPDX-License-Identifier: Apache-2.0 */
#include "build/stage-query.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

enum { MS_NS = 1000000 };

/* In the child. */
static void become_reader(const struct run_request *request, const char *program, const char *verb, int out_fd)
{
	const char *argv[] = { "atoll-stage", verb, "--state", request->state_dir, "--session", request->session,
			       NULL };
	char *const env[] = { NULL };
	int null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(null_fd, 2) < 0)
		_exit(125);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	execve(program, (char **)argv, env);
	_exit(125);
}

static int read_answer(int fd, unsigned patience_ms, void *answer, size_t size)
{
	uint64_t deadline_ns = clock_monotonic_ns() + patience_ms * (uint64_t)MS_NS, now_ns;
	char *at = answer;
	size_t left = size;

	while (left && (now_ns = clock_monotonic_ns()) < deadline_ns) {
		struct pollfd readable = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&readable, 1, (int)((deadline_ns - now_ns) / MS_NS) + 1) <= 0)
			continue;
		n = read(fd, at, left);
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		at += n;
		left -= (size_t)n;
	}
	return left ? -ETIMEDOUT : 0;
}

int stage_query(const struct run_request *request, const char *verb, unsigned patience_ms, void *ret, size_t size)
{
	cleanup_fd int read_fd = FD_NONE, write_fd = FD_NONE;
	char program[PATH_MAX];
	int ends[2], status, r;
	pid_t pid;

	r = path_beside(program, sizeof program, request->init_path, "atoll-stage");
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	read_fd = ends[0];
	write_fd = ends[1];
	pid = fork();
	if (pid == 0)
		become_reader(request, program, verb, write_fd);
	close_fd(&write_fd);
	r = pid < 0 ? -errno : read_answer(read_fd, patience_ms, ret, size);
	if (pid > 0 && r < 0)
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return r;
}
