/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/doctor/self-test-stand.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "client/run-setup.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll/verb/say.h"

/* What would end us ends the sandbox and what was made for it first. */
static const int ending_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
static volatile sig_atomic_t ended_by;

static void on_ending_signal(int number)
{
	ended_by = number;
}

static void handle_ending_signals(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++) {
		struct sigaction before;

		/* nohup: what is ignored stays so. */
		if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(ending_signals[i], &action, NULL);
	}
}

/* /tmp may be a tmpfs, of which root cannot give a sandbox anything to write before Linux 6.3 (no idmapped mounts). */
static int make_directory(struct stand *stand)
{
	static const char *const paths[] = { "/var/tmp/atoll-doctor-XXXXXX", "/tmp/atoll-doctor-XXXXXX" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		memcpy(stand->directory, paths[i], strlen(paths[i]) + 1);
		if (mkdtemp(stand->directory))
			return 0;
	}
	stand->directory[0] = 0;
	return -errno;
}

int stand_open(struct stand *stand, struct err *err)
{
	int r;

	*stand = (struct stand){ 0 };
	self_test_targets_init(&stand->targets);
	handle_ending_signals(on_ending_signal);
	r = make_directory(stand);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "doctor", "no directory can be made in /var/tmp or /tmp: %s",
			       strerror(-r));
	r = str_format(stand->project, sizeof stand->project, "%s/project", stand->directory);
	if (r == 0)
		r = str_format(stand->policy, sizeof stand->policy, "%s/policy.yaml", stand->directory);
	if (r == 0 && mkdir(stand->project, 0755) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "doctor", "no project can be made in %s: %s", stand->directory,
			       strerror(-r));
	return dirs_find(&stand->dirs, stand->project, NULL, err);
}

void stand_close(struct stand *stand)
{
	/* What cannot be removed is an empty directory and no reason to fail. */
	if (stand->directory[0] && path_remove_tree(AT_FDCWD, stand->directory) < 0)
		rmdir(stand->directory);
	if (stand->secret[0])
		unlink(stand->secret);
	self_test_targets_remove(&stand->targets);
	handle_ending_signals(SIG_DFL);
	if (ended_by)
		raise(ended_by);
}

/* In the child: the captured stream becomes the pipe; stdin is empty. Does not return. */
static void stand_child(const struct run_setup *setup, char **command, int captured, int pipe_fd)
{
	struct err err = { 0 };
	int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	int status = 125;

	handle_ending_signals(SIG_DFL);
	if (null >= 0 && dup2(null, 0) == 0 && (captured == 1 || dup2(null, 1) == 1) &&
	    dup2(pipe_fd, captured) == captured)
		status = run_setup_start(setup, command, clock_monotonic_ns(), &err);
	if (status < 0) {
		say_error(&err);
		status = err_exit_status(&err);
	}
	_exit(status);
}

/* The child that writes to fd is told of a signal that came to us alone. */
static int read_all(int fd, pid_t child, struct buf *out)
{
	for (;;) {
		uint8_t bytes[4096];
		ssize_t n = read(fd, bytes, sizeof bytes);

		if (n == 0)
			return buf_error(out);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0 && ended_by)
			kill(child, ended_by);
		if (n > 0)
			buf_put(out, bytes, (size_t)n);
	}
}

int stand_hear(pid_t pid, const int ends[2], struct buf *out, int *ret_status)
{
	int r = pid < 0 ? pid : 0;

	close(ends[1]);
	if (r == 0)
		r = read_all(ends[0], pid, out);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			r = -errno;
	return r;
}

int stand_run(const struct run_setup *setup, char **command, int captured, struct buf *out, struct err *err)
{
	int ends[2], status = -1, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, errno, "doctor", "no pipe can be made: %s",
			       strerror(errno));
	pid = fork();
	if (pid == 0)
		stand_child(setup, command, captured, ends[1]);
	r = stand_hear(pid < 0 ? -errno : pid, ends, out, &status);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "doctor", "the sandbox cannot be watched: %s",
			       strerror(-r));
	return status;
}
