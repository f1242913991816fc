/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/exec.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>

#include "base/str.h"

enum { COUNTED_MAX = 64 << 10 };   /* pointers looked at in all, so that a huge vector costs a bounded time */

struct cursor {
	struct exec_text *text;
	size_t used, count;
};

/* Appends the string at address. Whether there was room for any of it and it could be read. */
static bool take_argument(struct remote *remote, struct cursor *cursor, uint64_t address)
{
	char *out = cursor->text->bytes + cursor->used;
	size_t room = WATCH_TEXT_MAX - cursor->used;
	ssize_t length;

	if (cursor->count == WATCH_ARGV_MAX || room < 2)
		return false;
	length = remote_read_string(remote, address, out, room);
	if (length < 0)
		return false;
	cursor->text->argv[cursor->count++] = out;
	cursor->used += (size_t)length + 1;
	/* One that fills all room has more behind it, for all that anybody knows: it is kept, and not as a whole. */
	return (size_t)length + 1 < room;
}

static size_t read_vector(struct remote *remote, uint64_t address, struct cursor *cursor)
{
	size_t left_out = 0;

	/* A NULL vector is an empty one to Linux. */
	for (size_t i = 0; address && i < COUNTED_MAX; i++) {
		uint64_t argument;

		if (remote_read(remote, address + i * sizeof argument, &argument, sizeof argument) < 0 || !argument)
			break;
		if (left_out || !take_argument(remote, cursor, argument))
			left_out++;
	}
	cursor->text->argv[cursor->count] = NULL;
	return left_out;
}

/* fexecve(3): the name of the open file, which may be a memfd. */
static ssize_t read_fd_name(pid_t pid, int fd, char *out, size_t size)
{
	char path[48];
	ssize_t length = str_format(path, sizeof path, "/proc/%d/fd/%d", pid, fd);

	if (length == 0)
		length = readlink(path, out, size - 1);
	out[length > 0 ? length : 0] = 0;
	return length < 0 ? -EPERM : length;
}

static ssize_t read_exe(struct remote *remote, const struct seccomp_notif *request, char *out, bool *ret_is_open_file)
{
	const __u64 *args = request->data.args;
	bool is_at = request->data.nr == SYS_execveat;
	ssize_t length = remote_read_string(remote, args[is_at], out, PATH_MAX);

	*ret_is_open_file = is_at && length <= 0 && args[4] & AT_EMPTY_PATH;
	if (*ret_is_open_file)
		length = read_fd_name((pid_t)request->pid, (int)args[0], out, PATH_MAX);
	return length;
}

void exec_read(struct remote *remote, const struct seccomp_notif *request, struct exec_text *text,
	       struct watch_exec *ret_event)
{
	struct cursor cursor = { .text = text };
	bool is_at = request->data.nr == SYS_execveat;
	bool is_open_file = false;
	ssize_t length = read_exe(remote, request, text->bytes, &is_open_file);

	cursor.used = length < 0 ? 1 : (size_t)length + 1;
	if (length < 0)
		text->bytes[0] = 0;
	*ret_event = (struct watch_exec){
		.id = request->id,
		.pid = (pid_t)request->pid,
		.dir_fd = is_at ? (int)request->data.args[0] : AT_FDCWD,
		.is_open_file = is_open_file,
		.exe = text->bytes,
		.argv = text->argv,
	};
	ret_event->argv_left_out = read_vector(remote, request->data.args[is_at ? 2 : 1], &cursor);
	ret_event->environment = request->data.args[is_at ? 3 : 2];
}

/* Two passes over one vector would see two vectors: the strings are taken as they come. */
int watch_exec_environment(const struct watch_exec *exec, char ***ret_env)
{
	enum { VARIABLES_MAX = 4096, VARIABLE_MAX = 64 << 10 };
	char **env = calloc(VARIABLES_MAX + 1, sizeof *env), *text = malloc(VARIABLE_MAX);
	struct remote *remote = malloc(sizeof *remote);
	size_t total = 0, count = 0;
	int r = env && text && remote ? 0 : -ENOMEM;

	if (r == 0)
		remote_begin(remote, exec->pid);
	while (r == 0 && exec->environment) {
		uint64_t at;
		ssize_t size;

		r = remote_read(remote, exec->environment + count * sizeof at, &at, sizeof at);
		if (r < 0 || !at)
			break;
		size = count == VARIABLES_MAX ? -E2BIG : remote_read_string(remote, at, text, VARIABLE_MAX);
		total += size < 0 ? 0 : (size_t)size + 1;
		if (size < 0 || size >= VARIABLE_MAX - 1 || total > WATCH_ENV_BYTES_MAX)
			r = size < 0 ? (int)size : -E2BIG;
		else if (!(env[count++] = str_dup(text)))
			r = -ENOMEM;
	}
	if (remote)
		remote_end(remote);
	free(remote);
	free(text);
	if (r < 0) {
		strv_free(env);
		return r;
	}
	*ret_env = env;
	return 0;
}
