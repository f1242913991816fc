/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/file/caller.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/identity.h"
#include "os/mount.h"
#include "os/proc.h"

enum { STATUS_MAX = 8192, MOUNTS_TEXT_MAX = 16 << 20 };

static int open_of(pid_t pid, const char *what, int flags)
{
	char path[48];
	int r = proc_path(pid, what, path, sizeof path);

	return r < 0 ? r : fd_open_at(AT_FDCWD, path, flags, 0);
}

/* Of a file that we make: all of them are on one mount of the kernel's own. 0: they cannot be told. */
static dev_t find_memory_device(void)
{
	cleanup_fd int fd = fd_memfd_new("atoll");
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 ? status.st_dev : 0;
}

bool file_view_is_memory(const struct file_view *view, int fd)
{
	struct stat status;

	return view->memory_device && fstat(fd, &status) == 0 && status.st_dev == view->memory_device &&
	       status.st_nlink == 0 && S_ISREG(status.st_mode);
}

int file_view_init(struct file_view *view, const struct watch_options *options)
{
	*view = (struct file_view){
		.root_fd = options->root_fd,
		.self_fd = fd_open_at(AT_FDCWD, "/proc/self/fd", O_PATH | O_DIRECTORY, 0),
		.init_pid = options->init_pid,
		.has_own_roots = options->has_own_roots,
		.uid = options->uid,
		.gid = options->gid,
		.uid_inside = options->uid_inside,
		.gid_inside = options->gid_inside,
		.memory_device = find_memory_device(),
		.status_fd = FD_NONE,
	};
	if (view->root_fd < 0 || view->self_fd < 0)
		return view->root_fd < 0 ? -EBADF : view->self_fd;
	return identity_drop_groups();
}

void file_view_done(struct file_view *view)
{
	close_fd(&view->self_fd);
	close_fd(&view->status_fd);
	free(view->mounts);
	view->mounts = NULL;
	view->mount_count = 0;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The first field of each line of mountinfo. */
static int read_mounts(struct file_view *view, pid_t pid)
{
	char *text, path[48];
	size_t size, count = 0;
	uint64_t *ids;
	int r = str_format(path, sizeof path, "/proc/%d/mountinfo", pid);

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, path, MOUNTS_TEXT_MAX, &text, &size);
	if (r < 0)
		return r;
	for (char *at = text; (at = strchr(at, '\n')); at++)
		count++;
	ids = malloc((count + 1) * sizeof *ids);
	count = 0;
	for (char *at = text; ids && *at; at = strchr(at, '\n') + 1) {
		ids[count++] = strtoull(at, NULL, 10);
		if (!strchr(at, '\n'))
			break;
	}
	free(text);
	if (!ids)
		return -ENOMEM;
	qsort(ids, count, sizeof *ids, compare_ids);
	free(view->mounts);
	view->mounts = ids;
	view->mount_count = count;
	return 0;
}

static bool knows_mount(const struct file_view *view, uint64_t id)
{
	return view->mounts && bsearch(&id, view->mounts, view->mount_count, sizeof id, compare_ids);
}

bool file_view_has(struct file_view *view, pid_t pid, int fd)
{
	uint64_t id;

	if (mount_id(fd, &id) < 0)
		return false;
	if (!view->has_own_roots && knows_mount(view, id))
		return true;
	/* Something was mounted since (a live grant), or it lies outside. */
	return read_mounts(view, view->has_own_roots ? pid : view->init_pid) == 0 && knows_mount(view, id);
}

static uint64_t hash_path(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return hash;
}

void file_view_add_quiet(struct file_view *view, const char *path, int fd)
{
	uint64_t hash = hash_path(path);
	struct statvfs kind;

	if (view->quiet[hash % FILE_QUIET_MAX] != hash && fstatvfs(fd, &kind) == 0 && kind.f_flag & ST_RDONLY)
		view->quiet[hash % FILE_QUIET_MAX] = hash;
}

bool file_view_has_quiet(const struct file_view *view, const char *path)
{
	uint64_t hash = hash_path(path);

	return view->quiet[hash % FILE_QUIET_MAX] == hash;
}

int file_caller_begin(struct file_caller *caller, struct file_view *view, pid_t pid)
{
	*caller = (struct file_caller){ .view = view, .pid = pid, .root_fd = view->root_fd, .own_root_fd = FD_NONE };
	if (!view->has_own_roots)
		return 0;
	identity_return();
	caller->own_root_fd = open_of(pid, "root", O_PATH | O_DIRECTORY);
	caller->root_fd = caller->own_root_fd;
	return caller->root_fd < 0 ? -EACCES : 0;
}

void file_caller_end(struct file_caller *caller)
{
	close_fd(&caller->own_root_fd);
}

int file_caller_open_any(const struct file_caller *caller, int dir_fd)
{
	char name[24] = "cwd";
	int fd;

	if (dir_fd != AT_FDCWD && str_format(name, sizeof name, "fd/%d", dir_fd) < 0)
		return -EBADF;
	if (dir_fd < 0 && dir_fd != AT_FDCWD)
		return -EBADF;
	fd = open_of(caller->pid, name, O_PATH);
	/* The descriptors of a process that cannot be dumped are root's to look at. */
	if (fd == -EACCES) {
		identity_return();
		fd = open_of(caller->pid, name, O_PATH);
	}
	return fd >= 0 ? fd : fd == -ENOENT && dir_fd != AT_FDCWD ? -EBADF : -EACCES;
}

int file_caller_open_base(const struct file_caller *caller, int dir_fd)
{
	cleanup_fd int fd = file_caller_open_any(caller, dir_fd);

	if (fd < 0)
		return fd;
	return file_view_has(caller->view, caller->pid, fd) ? take_fd(&fd) : -EACCES;
}

/* The index-th word behind name; NULL: there are fewer. */
static const char *find_word(const char *text, const char *name, unsigned index)
{
	const char *at = strstr(text, name);

	at = at ? at + strlen(name) : NULL;
	while (at) {
		at += strspn(at, "\t ");
		if (!*at || *at == '\n')
			return NULL;
		if (!index--)
			return at;
		at += strcspn(at, "\t \n");
	}
	return NULL;
}

/*
 * Who makes one file mostly makes the next, and to open it costs half as much as to read it. An open one belongs to the
 * very process: of one that has ended it says ESRCH, also when its number is another's by now, and only then is there
 * another.
 */
static ssize_t read_status(struct file_view *view, pid_t pid, char text[STATUS_MAX])
{
	ssize_t size = view->status_pid == pid && view->status_fd >= 0 ?
			       pread(view->status_fd, text, STATUS_MAX - 1, 0) : -1;

	if (size > 0)
		return size;
	close_fd(&view->status_fd);
	view->status_fd = open_of(pid, "status", O_RDONLY);
	view->status_pid = pid;
	return view->status_fd < 0 ? -1 : pread(view->status_fd, text, STATUS_MAX - 1, 0);
}

int file_caller_read_status(struct file_caller *caller)
{
	const char *umask_text, *process, *thread;
	char text[STATUS_MAX];
	ssize_t size = read_status(caller->view, caller->pid, text);

	if (size < 0)
		return -ESRCH;
	text[size] = 0;
	umask_text = find_word(text, "\nUmask:", 0);
	/* The first is what it is called here; the second, where the sandbox's /proc is. */
	process = find_word(text, "\nNStgid:", 1);
	thread = find_word(text, "\nNSpid:", 1);
	if (!process || !thread) {
		process = find_word(text, "\nNStgid:", 0);
		thread = find_word(text, "\nNSpid:", 0);
	}
	if (!umask_text || !process || !thread)
		return -ESRCH;
	caller->umask = (mode_t)strtoul(umask_text, NULL, 8) & 0777;
	caller->process_inside = (pid_t)strtol(process, NULL, 10);
	caller->thread_inside = (pid_t)strtol(thread, NULL, 10);
	return 0;
}

dev_t file_caller_terminal(const struct file_caller *caller)
{
	cleanup_fd int fd = open_of(caller->pid, "stat", O_RDONLY);
	char text[1024], *at;
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (size < 0)
		return 0;
	text[size] = 0;
	/* Behind the name, which may hold anything: state, parent, group, session, terminal. */
	at = strrchr(text, ')');
	for (int i = 0; at && i < 5; i++)
		at = strchr(at + 1, ' ');
	return at ? (dev_t)strtoul(at + 1, NULL, 10) : 0;
}
