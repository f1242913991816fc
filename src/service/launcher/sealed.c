/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/sealed.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/pidref.h"
#include "os/spawn.h"

enum { PATIENCE_MS = 5000, NOT_THERE = 127, FIXED_WORDS = 4, ABOVE_GIVEN = SECRET_PLACEHOLDER_FD + 1 };

static int fail(int r, struct err *err)
{
	err_set(err, ERR_STATE, -r, "secret", "the secrets of the service cannot be reached: %s", err_errno_name(-r));
	err_hint(err, "atoll-secret said why where the service writes its messages");
	return r;
}

/* Its exit status; -ETIMEDOUT: it took too long, and was killed. */
static int wait_for(pid_t pid)
{
	struct pollfd polled = { .events = POLLIN };
	struct pidref process;
	bool is_late;
	int status;

	if (pidref_open(&process, pid) == 0) {
		polled.fd = process.fd;
		is_late = poll(&polled, 1, PATIENCE_MS) != 1;
		if (is_late)
			(void)!pidref_signal(&process, SIGKILL);
		pidref_done(&process);
	} else {
		is_late = false;
	}
	status = spawn_wait(pid, NULL);
	return is_late ? -ETIMEDOUT : status;
}

/* words: a verb and names. fds: what it gets beside the standard streams. Its exit status, or -errno. */
static int run(const char *programs, const char *directory, const char *const *words, const struct spawn_fd *fds,
	       size_t fd_count)
{
	const char *argv[FIXED_WORDS + SECRET_GIVE_MAX + 1] = { "atoll-secret", "--directory" };
	char program[PATH_MAX], vault[PATH_MAX];
	struct spawn spawn = { .program = program, .argv = argv, .unblocks_signals = true,
			       .default_signals = 1ull << SIGPIPE | 1ull << SIGXFSZ };
	pid_t pid;
	int r = path_join(program, sizeof program, programs, "atoll-secret");

	if (r == 0)
		r = path_join(vault, sizeof vault, directory, "vault");
	if (r == 0 && strv_count(words) > SECRET_GIVE_MAX + 1)
		r = -E2BIG;
	if (r < 0)
		return r;
	argv[2] = vault;
	for (size_t i = 0; words[i]; i++)
		argv[3 + i] = words[i];
	for (size_t i = 0; i < fd_count; i++)
		spawn.fds[spawn.fd_count++] = fds[i];
	spawn.fds[spawn.fd_count++] = (struct spawn_fd){ SPAWN_NULL, STDOUT_FILENO };
	r = spawn_start(&spawn, &pid);
	return r < 0 ? r : wait_for(pid);
}

int sealed_set(const char *programs, const char *directory, const char *name, const char *value, struct err *err)
{
	const char *const words[] = { "set", name, NULL };
	cleanup_fd int from = FD_NONE;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail(-errno, err);
	from = fd_move_above(ends[0], ABOVE_GIVEN);
	/* A pipe takes more than a secret may have before anybody reads. */
	r = from < 0 ? from : fd_write_full(ends[1], value, strlen(value));
	close_fd(&ends[1]);
	if (r == 0)
		r = run(programs, directory, words, &(struct spawn_fd){ from, STDIN_FILENO }, 1);
	return r ? fail(r < 0 ? r : -EIO, err) : 0;
}

int sealed_remove(const char *programs, const char *directory, const char *name, struct err *err)
{
	const char *const words[] = { "remove", name, NULL };
	int r = run(programs, directory, words, &(struct spawn_fd){ SPAWN_NULL, STDIN_FILENO }, 1);

	return r && r != NOT_THERE ? fail(r < 0 ? r : -EIO, err) : 0;
}

/* ---- opening ---- */

struct arrival {
	const char *const *names;
	char **values;
	size_t count;
	bool is_whole;
};

static int on_value(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct arrival *arrival = context;
	struct secret_value value;
	int r = secret_get_value(frame, &value);

	if (r < 0)
		return r;
	if (!arrival->names[arrival->count] || !str_equal(value.name, arrival->names[arrival->count]))
		return -EBADMSG;
	arrival->values[arrival->count] = strndup(value.value, value.size);
	return arrival->values[arrival->count++] ? 0 : -ENOMEM;
}

static int on_end(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct arrival *arrival = context;

	arrival->is_whole = !arrival->names[arrival->count];
	return arrival->is_whole ? frame_finish(frame) : -EBADMSG;
}

static const struct frame_rule rules[] = {
	{ SECRET_VALUE, 1, FRAME_MESSAGE_MAX, 0, 0, on_value },
	{ SECRET_END, 1, 64, 0, 0, on_end },
};

/* All lies in the socket already: atoll-secret has ended. */
static int receive(int fd, const char *const *names, char **values)
{
	struct arrival arrival = { .names = names, .values = values };
	struct buf scratch;
	int r = 1;

	buf_init(&scratch, FRAME_MESSAGE_MAX);
	while (r > 0 && !arrival.is_whole)
		r = frame_dispatch(fd, &scratch, 0, rules, ARRAY_SIZE(rules), &arrival);
	if (scratch.bytes)
		explicit_bzero(scratch.bytes, scratch.capacity);
	buf_done(&scratch);
	for (size_t i = 0; r <= 0 && i < arrival.count; i++) {
		if (values[i])
			explicit_bzero(values[i], strlen(values[i]));
		free(values[i]);
		values[i] = NULL;
	}
	return r > 0 ? 0 : r < 0 ? r : -EBADMSG;
}

/* near_fd, far_fd: owned by the caller, out of the way of the descriptors that atoll-secret gets. */
static int open_pair(int *near_fd, int *far_fd)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	*near_fd = fd_move_above(ends[0], ABOVE_GIVEN);
	*far_fd = fd_move_above(ends[1], ABOVE_GIVEN);
	return *near_fd < 0 ? *near_fd : *far_fd < 0 ? *far_fd : 0;
}

int sealed_get(const char *programs, const char *directory, const char *const *names, char **ret_values,
	       struct err *err)
{
	cleanup_fd int values_fd = FD_NONE, value_far_fd = FD_NONE, others_fd = FD_NONE, other_far_fd = FD_NONE;
	const char *words[SECRET_GIVE_MAX + 2] = { "give" };
	size_t count = strv_count(names);
	int r = count > SECRET_GIVE_MAX ? -E2BIG : open_pair(&values_fd, &value_far_fd);

	/* The other socket's placeholders are for inside, where a client's secret has no place at all. */
	if (r == 0)
		r = open_pair(&others_fd, &other_far_fd);
	if (r < 0)
		return fail(r, err);
	for (size_t i = 0; i < count; i++)
		words[i + 1] = names[i];
	r = run(programs, directory, words,
		(const struct spawn_fd[]){ { SPAWN_NULL, STDIN_FILENO }, { value_far_fd, SECRET_FD },
					   { other_far_fd, SECRET_PLACEHOLDER_FD } }, 3);
	close_fd(&value_far_fd);
	if (r == 0)
		r = receive(values_fd, names, ret_values);
	return r ? fail(r < 0 ? r : -EIO, err) : 0;
}
