/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/file.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "watch/watch.h"

/* A process that has not run yet has a few mappings, two of them with paths. */
enum { MAPS_MAX = 32 << 10, HEADERS_MAX = 4096 / sizeof(Elf64_Phdr) };

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
	return 0;
}

/* r: of what has opened it. */
static int with_line(struct exec_file *file, int r)
{
	return r < 0 ? r : read_line(file);
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

int exec_file_find(struct exec_file *file, const struct watch_exec *exec)
{
	char directory[32] = "cwd";

	if (exec->dir_fd != AT_FDCWD && str_format(directory, sizeof directory, "fd/%d", exec->dir_fd) < 0)
		return -EBADF;
	if (!exec->is_open_file)
		return open_path(file, exec->pid, directory, exec->exe);
	file->is_unnamed = true;
	return take_file(file, open_proc(exec->pid, directory));
}

int exec_file_open(struct exec_file *file, const struct watch_exec *exec)
{
	return with_line(file, exec_file_find(file, exec));
}

int exec_file_open_interpreter(struct exec_file *file, const struct exec_file *script, pid_t pid)
{
	return with_line(file, open_path(file, pid, "cwd", script->line));
}

int exec_file_open_image(struct exec_file *file, pid_t pid)
{
	return with_line(file, take_file(file, open_proc(pid, "exe")));
}

static bool read_at(int fd, uint64_t at, void *bytes, size_t size)
{
	return at <= INT64_MAX && pread(fd, bytes, size, (off_t)at) == (ssize_t)size;
}

/* As load_elf_binary() of the kernel reads it: the first one counts. False: there is none. */
static bool read_loader(int fd, char out[PATH_MAX])
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (!read_at(fd, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_phentsize != sizeof part || head.e_phnum > HEADERS_MAX)
		return false;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		if (!read_at(fd, head.e_phoff + i * sizeof part, &part, sizeof part))
			return false;
		if (part.p_type != PT_INTERP)
			continue;
		return part.p_filesz >= 2 && part.p_filesz <= PATH_MAX &&
		       read_at(fd, part.p_offset, out, part.p_filesz) && !out[part.p_filesz - 1];
	}
	return false;
}

int exec_file_open_loader(struct exec_file *file, const struct exec_file *program, pid_t pid)
{
	cleanup_fd int fd = FD_NONE;
	char name[32], path[PATH_MAX];

	if (str_format(name, sizeof name, "/proc/self/fd/%d", program->fd) == 0)
		fd = fd_open_at(AT_FDCWD, name, O_RDONLY | O_NONBLOCK, 0);
	if (fd == -EAGAIN)
		return -ETXTBSY;
	if (fd < 0 || !read_loader(fd, path))
		return 1;
	return with_line(file, open_path(file, pid, "cwd", path));
}

/* The path at the end of a line of /proc/PID/maps, or NULL. Nothing before it has a slash. */
static const char *mapped_path(const char *line)
{
	return strchr(line, '/');
}

int exec_file_mapped(pid_t pid, char out[PATH_MAX])
{
	char name[48], program[PATH_MAX], *line, *next;
	cleanup_free char *maps = NULL;
	size_t size;
	int r = exec_caller_link(pid, "exe", program);

	out[0] = 0;
	if (r == 0)
		r = str_format(name, sizeof name, "/proc/%d/maps", pid);
	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, name, MAPS_MAX, &maps, &size);
	for (line = maps; r == 0 && line && *line && !out[0]; line = next) {
		const char *path;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		path = mapped_path(line);
		/* The one byte that is written otherwise there: two files could look alike. */
		if (path && strstr(path, "\\012"))
			r = -EILSEQ;
		else if (path && !str_equal(path, program))
			r = str_copy(out, PATH_MAX, path);
	}
	return r;
}
