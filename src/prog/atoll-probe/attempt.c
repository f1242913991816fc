/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "probe.h"

const char *const outcome_names[OUTCOME_COUNT] = {
	[OUTCOME_HELD] = "held",
	[OUTCOME_BROKE] = "broke",
	[OUTCOME_NOT_APPLICABLE] = "n/a",
};

enum outcome outcome(struct note *note, enum outcome result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(note->text, sizeof note->text, format, args);
	va_end(args);
	return result;
}

enum outcome outcome_of_call(struct note *note, long ret, const char *broke)
{
	if (ret < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	return outcome(note, OUTCOME_BROKE, "%s", broke);
}

enum outcome outcome_of_reach(struct note *note, long ret)
{
	if (ret >= 0)
		return outcome(note, OUTCOME_BROKE, "succeeded");
	switch (errno) {
	case EPERM:
	case EACCES:
	case ENOSYS:
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	default:
		return outcome(note, OUTCOME_BROKE, "the kernel's own code answered %s", err_errno_name(errno));
	}
}

enum outcome outcome_no_target(struct note *note, const char *option)
{
	return outcome(note, OUTCOME_NOT_APPLICABLE, "nothing to try it on: %s", option);
}

enum outcome try_syscall(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const long *a = attempt->arguments;

	return outcome_of_call(note, syscall(attempt->number, a[0], a[1], a[2], a[3], a[4], a[5]), "succeeded");
}

enum outcome try_reach(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const long *a = attempt->arguments;

	return outcome_of_reach(note, syscall(attempt->number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

int raw_open(const char *path, int flags, mode_t mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY, mode);
}

ssize_t raw_read_file(const char *path, void *bytes, size_t size)
{
	cleanup_fd int fd = raw_open(path, O_RDONLY | O_NONBLOCK, 0);

	return fd < 0 ? -1 : read(fd, bytes, size);
}

const char *joined(const char *a, const char *b)
{
	static char paths[4][4096];
	static unsigned next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];

	size_t a_size = strnlen(a, sizeof paths[0] / 2), b_size = strnlen(b, sizeof paths[0] / 2 - 1);

	memmove(path, a, a_size);
	memmove(path + a_size, b, b_size);
	path[a_size + b_size] = '\0';
	return path;
}

const char *victim_path(const char *directory, const struct attempt *attempt, const char *suffix)
{
	return joined(joined(joined(directory, "/victim-"), attempt->name), suffix);
}

int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
