/* SPDX-License-Identifier: Apache-2.0 */
#include "build/stage-query.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/spawn.h"

enum { MS_NS = 1000000 };

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
	const char *argv[] = { "atoll-stage", verb, "--state", request->state_dir, "--session", request->session,
			       NULL };
	const char *const env[] = { NULL };
	struct spawn reader = { .argv = argv, .env = env, .fd_count = 3, .unblocks_signals = true,
				.fds = { { SPAWN_NULL, 0 }, { FD_NONE, 1 }, { SPAWN_NULL, 2 } } };
	cleanup_fd int read_fd = FD_NONE, write_fd = FD_NONE;
	char program[PATH_MAX];
	int ends[2], r;
	pid_t pid;

	r = path_beside(program, sizeof program, request->init_path, "atoll-stage");
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	read_fd = ends[0];
	write_fd = ends[1];
	reader.program = program;
	reader.fds[1].from = write_fd;
	r = spawn_start(&reader, &pid);
	close_fd(&write_fd);
	if (r < 0)
		return r;
	r = read_answer(read_fd, patience_ms, ret, size);
	if (r < 0)
		kill(pid, SIGKILL);
	(void)!spawn_wait(pid, NULL); /* what it said counts */
	return r;
}
