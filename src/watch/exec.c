/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/exec.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "watch/watch.h"

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
	ret_event->arguments = request->data.args[is_at ? 2 : 1];
	ret_event->argv_left_out = read_vector(remote, ret_event->arguments, &cursor);
	ret_event->environment = request->data.args[is_at ? 3 : 2];
}

/* What a vector of strings in the memory of a process may have at most. */
struct bounds {
	size_t strings_max, string_max, bytes_max;
};

static int take_string(struct remote *remote, uint64_t address, const struct bounds *bounds, char *text, size_t *total,
		       char **ret_copy)
{
	ssize_t size = remote_read_string(remote, address, text, bounds->string_max);

	if (size < 0)
		return (int)size;
	*total += (size_t)size + 1;
	if ((size_t)size >= bounds->string_max - 1 || *total > bounds->bytes_max)
		return -E2BIG;
	*ret_copy = str_dup(text);
	return *ret_copy ? 0 : -ENOMEM;
}

/* Two passes over one vector would see two vectors: the strings are taken as they come. */
static int read_strings(pid_t pid, uint64_t vector, const struct bounds *bounds, char ***ret_strings)
{
	char **strings = calloc(bounds->strings_max + 1, sizeof *strings), *text = malloc(bounds->string_max);
	struct remote *remote = malloc(sizeof *remote);
	size_t total = 0, count = 0;
	int r = strings && text && remote ? 0 : -ENOMEM;

	if (remote)
		remote_begin(remote, pid);
	while (r == 0 && vector) {
		uint64_t at;

		r = remote_read(remote, vector + count * sizeof at, &at, sizeof at);
		if (r < 0 || !at)
			break;
		r = count == bounds->strings_max ? -E2BIG
						 : take_string(remote, at, bounds, text, &total, &strings[count]);
		count++;
	}
	if (remote)
		remote_end(remote);
	free(remote);
	free(text);
	if (r < 0) {
		strv_free(strings);
		return r;
	}
	*ret_strings = strings;
	return 0;
}

int watch_exec_environment(const struct watch_exec *exec, char ***ret_env)
{
	static const struct bounds bounds = { 4096, 64 << 10, WATCH_ENV_BYTES_MAX };

	return read_strings(exec->pid, exec->environment, &bounds, ret_env);
}

int watch_exec_left_out(const struct watch_exec *exec, char ***ret_argv)
{
	/* An argument has at most 128 KiB (MAX_ARG_STRLEN). */
	static const struct bounds bounds = { WATCH_LEFT_OUT_MAX, (128 << 10) + 2, WATCH_LEFT_OUT_BYTES_MAX };
	size_t kept = strv_count(exec->argv);

	if (!exec->arguments)
		return -EFAULT;
	return read_strings(exec->pid, exec->arguments + (kept ? kept - 1 : 0) * sizeof(uint64_t), &bounds, ret_argv);
}
