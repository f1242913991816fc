/* SPDX-License-Identifier: Apache-2.0 */
#include "box/exec-file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "watch/watch.h"

void exec_file_done(struct exec_file *file)
{
	close_fd(&file->fd);
}

int exec_caller_link(pid_t pid, const char *name, char out[PATH_MAX])
{
	char path[48];
	ssize_t length = str_format(path, sizeof path, "/proc/%d/%s", pid, name);

	if (length == 0)
		length = readlink(path, out, PATH_MAX - 1);
	if (length < 0)
		return -errno;
	out[length] = 0;
	return 0;
}

/* Whether a path goes through links that are different ones for us: those of /proc. */
static bool is_of_proc(const char *path)
{
	return str_has_prefix(path, "/proc/") || str_has_prefix(path, "/dev/fd/");
}

/*
 * The first line as load_script() of the kernel reads it. What cannot be read is no script to us, and refused later.
 * Whoever holds a lease on the file to write it must not hold us with it, nor hide what interprets it: -ETXTBSY.
 */
static int read_line(struct exec_file *file)
{
	cleanup_fd int fd = FD_NONE;
	char path[32], bytes[EXEC_LINE_SIZE + 1] = { 0 };
	char *at, *end;
	ssize_t size;

	file->line[0] = 0;
	file->argument = NULL;
	file->is_text = false;
	if (str_format(path, sizeof path, "/proc/self/fd/%d", file->fd) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
	if (fd == -EAGAIN)
		return -ETXTBSY;
	size = fd < 0 ? 0 : read(fd, bytes, EXEC_LINE_SIZE);
	if (size < 3 || bytes[0] != '#' || bytes[1] != '!') {
		/* As shells tell the one from the other: a NUL. */
		file->is_text = size > 0 && !memchr(bytes, 0, (size_t)size);
		return 0;
	}
	bytes[strcspn(bytes, "\n")] = 0;
	at = bytes + 2;
	at += strspn(at, " \t");
	end = at + strlen(at);
	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = 0;
	memmove(file->line, at, (size_t)(end - at) + 1);
	at = file->line + strcspn(file->line, " \t");
	if (*at) {
		*at++ = 0;
		file->argument = at + strspn(at, " \t");
	}
	return 0;
}

/* fd: O_PATH, taken, or the error of opening it. */
static int take_file(struct exec_file *file, int fd)
{
	if (fd < 0)
		return fd;
	file->fd = fd;
	if (fstat(fd, &file->st) < 0)
		return -errno;
	if (!S_ISREG(file->st.st_mode))
		return -EACCES;
	if (path_of_fd(fd, file->path, sizeof file->path) < 0) {
		char name[32];

		file->is_unnamed = true;
		if (str_format(name, sizeof name, "fd/%d", fd) < 0 || exec_caller_link(getpid(), name, file->path) < 0)
			return -ENOENT;
	}
	file->is_unnamed |= !file->st.st_nlink;
	return read_line(file);
}

static int open_proc(pid_t pid, const char *name)
{
	char path[48];
	int r = str_format(path, sizeof path, "/proc/%d/%s", pid, name);

	return r < 0 ? r : fd_open_at(AT_FDCWD, path, O_PATH, 0);
}

/* As the caller's root has it. directory: what a relative path begins at, a name below /proc/PID. */
static int open_path(struct exec_file *file, pid_t pid, const char *directory, const char *path)
{
	cleanup_fd int root_fd = FD_NONE;
	char whole[PATH_MAX];

	if (str_equal(path, "/proc/self/exe") || str_equal(path, "/proc/thread-self/exe"))
		return take_file(file, open_proc(pid, "exe"));
	if (is_of_proc(path))
		return -EOPNOTSUPP;
	if (!*path)
		return -ENOENT;
	if (*path != '/') {
		size_t used;
		int r = exec_caller_link(pid, directory, whole);

		if (r < 0)
			return r;
		used = strlen(whole);
		if (str_format(whole + used, sizeof whole - used, "/%s", path) < 0)
			return -ENAMETOOLONG;
		if (is_of_proc(whole))
			return -EOPNOTSUPP;
		path = whole;
	}
	root_fd = open_proc(pid, "root");
	return root_fd < 0 ? root_fd : take_file(file, path_open2(root_fd, path, O_PATH, 0,
								  RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS));
}

int exec_file_open(struct exec_file *file, const struct watch_exec *exec)
{
	char directory[32] = "cwd";

	if (exec->dir_fd != AT_FDCWD && str_format(directory, sizeof directory, "fd/%d", exec->dir_fd) < 0)
		return -EBADF;
	if (!exec->is_open_file)
		return open_path(file, exec->pid, directory, exec->exe);
	file->is_unnamed = true;
	return take_file(file, open_proc(exec->pid, directory));
}

int exec_file_open_interpreter(struct exec_file *file, const struct exec_file *script, pid_t pid)
{
	return open_path(file, pid, "cwd", script->line);
}

int exec_file_open_image(struct exec_file *file, pid_t pid)
{
	return take_file(file, open_proc(pid, "exe"));
}
