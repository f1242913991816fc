/* SPDX-License-Identifier: Apache-2.0 */
#include "os/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

enum { FILE_MAX = 1 << 20, PROCESSES_MAX = 1 << 22, FILES_MAX = 1 << 16 };

void proc_list_done(struct proc_list *list)
{
	close_fd(&list->proc_fd);
	free(list->stats);
	list->stats = NULL;
	list->count = 0;
}

int proc_path(pid_t pid, const char *what, char *out, size_t size)
{
	struct buf path;

	buf_init_fixed(&path, out, size);
	buf_put_text(&path, "/proc/");
	buf_put_u64_decimal(&path, (uint64_t)pid);
	buf_put_char(&path, '/');
	buf_put_text(&path, what);
	buf_put_char(&path, 0);
	return buf_error(&path) ? -ENAMETOOLONG : 0;
}

static int read_small(int proc_fd, pid_t pid, const char *file, char *out, size_t size)
{
	char path[64];
	cleanup_fd int fd = FD_NONE;
	ssize_t n;
	int r = str_format(path, sizeof path, "%d/%s", (int)pid, file);

	if (r < 0)
		return r;
	fd = fd_open_at(proc_fd, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	n = read(fd, out, size - 1);
	if (n < 0)
		return -errno;
	out[n] = 0;
	return 0;
}

int proc_program(pid_t pid, char *out, size_t size)
{
	char link[64];
	ssize_t length;

	if (proc_path(pid, "exe", link, sizeof link) < 0)
		return -EINVAL;
	length = readlink(link, out, size);
	if (length < 0)
		return -errno;
	if ((size_t)length >= size)
		return -ENAMETOOLONG;
	out[length] = 0;
	return 0;
}

bool proc_is_over(pid_t pid)
{
	char program[PATH_MAX];
	int r = proc_program(pid, program, sizeof program);

	return r == -ENOENT || r == -ESRCH;
}

int proc_stat_read(int proc_fd, pid_t pid, struct proc_stat *ret_stat)
{
	enum { STATE, PARENT, UTIME = 11, STIME, CUTIME, CSTIME, THREADS = 17, LAST = THREADS };
	uint64_t fields[LAST + 1] = { 0 };
	uint64_t ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK);
	char text[1024];
	const char *at;
	int r = read_small(proc_fd, pid, "stat", text, sizeof text);

	if (r < 0)
		return r;
	/* The name is whatever the process chose, blanks and parentheses included: only the last ')' ends it. */
	at = strrchr(text, ')');
	if (!at || at[1] != ' ')
		return -EBADMSG;
	at += 2;
	*ret_stat = (struct proc_stat){ .pid = pid, .state = *at };
	for (int i = PARENT; i <= LAST; i++) {
		at = strchr(at, ' ');
		if (!at)
			return -EBADMSG;
		fields[i] = strtoull(++at, NULL, 10);
	}
	ret_stat->parent = (pid_t)fields[PARENT];
	ret_stat->threads = (uint32_t)fields[THREADS];
	ret_stat->cpu_ns = (fields[UTIME] + fields[STIME] + fields[CUTIME] + fields[CSTIME]) *
			   (1000000000U / ticks_per_second);
	return 0;
}

int proc_start_ticks(pid_t tid, uint64_t *ret_ticks)
{
	enum { FIELDS_BEFORE = 20 }; /* from the state on */
	cleanup_fd int proc_fd = fd_open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);
	char text[1024];
	const char *at;
	int r = proc_fd < 0 ? proc_fd : read_small(proc_fd, tid, "stat", text, sizeof text);

	if (r < 0)
		return r;
	at = strrchr(text, ')');
	for (int i = 0; at && i < FIELDS_BEFORE; i++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -EBADMSG;
	*ret_ticks = strtoull(at, NULL, 10);
	return 0;
}

/*
 * The procfs that the sandbox mounted for itself, seen through init's root: it has only the sandbox's own
 * processes, so a scan costs nothing for the rest of the machine. It counts only when its "1" is init itself:
 * the agent may not mount, but a different /proc there must not hide processes.
 */
static int open_inner_proc(pid_t init_pid)
{
	char path[64];
	struct stat inner, outer;
	struct statfs fs;
	cleanup_fd int fd = FD_NONE;
	int r = str_format(path, sizeof path, "/proc/%d/root/proc", (int)init_pid);

	if (r < 0)
		return r;
	fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return -ENOENT;
	r = str_format(path, sizeof path, "/proc/%d/ns/pid", (int)init_pid);
	if (r < 0)
		return r;
	if (stat(path, &outer) < 0 || fstatat(fd, "1/ns/pid", &inner, 0) < 0 || inner.st_dev != outer.st_dev ||
	    inner.st_ino != outer.st_ino)
		return -ENOENT;
	return take_fd(&fd);
}

static int list_add(struct proc_list *list, size_t *capacity, const struct proc_stat *stat)
{
	if (list->count == *capacity) {
		size_t grown = *capacity ? *capacity * 2 : 64;
		void *stats;

		if (grown > PROCESSES_MAX)
			return -EFBIG;
		stats = realloc(list->stats, grown * sizeof *stat);
		if (!stats)
			return -ENOMEM;
		list->stats = stats;
		*capacity = grown;
	}
	list->stats[list->count++] = *stat;
	return 0;
}

/* Every process that the procfs shows, in the order of their numbers. */
static int list_all(struct proc_list *list)
{
	DIR *dir = path_list(fd_open_at(list->proc_fd, ".", O_RDONLY | O_DIRECTORY, 0));
	struct dirent *entry;
	size_t capacity = 0;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		struct proc_stat stat;
		uint64_t pid;

		if (num_parse_u64(entry->d_name, &pid) == 0 && proc_stat_read(list->proc_fd, (pid_t)pid, &stat) == 0)
			r = list_add(list, &capacity, &stat);
	}
	closedir(dir);
	return r;
}

static int compare_pid(const void *a, const void *b)
{
	pid_t x = ((const struct proc_stat *)a)->pid, y = ((const struct proc_stat *)b)->pid;

	return (x > y) - (x < y);
}

/*
 * Keeps the descendants of root. Orphans of a PID namespace become children of its first process, never of
 * one outside, so a daemon is found however often it forked. Repeats until a pass finds nothing new,
 * because numbers wrap and a child may stand before its parent.
 */
static int keep_descendants(struct proc_list *list, pid_t root)
{
	cleanup_free bool *kept = calloc(list->count + 1, sizeof *kept);
	size_t used = 0;
	bool more = true;

	if (!kept)
		return -ENOMEM;
	qsort(list->stats, list->count, sizeof *list->stats, compare_pid);
	while (more) {
		more = false;
		for (size_t i = 0; i < list->count; i++) {
			struct proc_stat key = { .pid = list->stats[i].parent };
			const struct proc_stat *parent;

			if (kept[i])
				continue;
			parent = bsearch(&key, list->stats, list->count, sizeof key, compare_pid);
			if (list->stats[i].pid == root || (parent && kept[parent - list->stats]))
				kept[i] = more = true;
		}
	}
	for (size_t i = 0; i < list->count; i++)
		if (kept[i])
			list->stats[used++] = list->stats[i];
	list->count = used;
	return used ? 0 : -ESRCH;
}

/* Takes proc_fd, which may be the error of opening it. */
static int list_below(int proc_fd, pid_t init_pid, bool is_inner, struct proc_list *ret_list)
{
	struct proc_list list = { .proc_fd = proc_fd };
	int r;

	if (list.proc_fd < 0)
		return list.proc_fd;
	r = list_all(&list);
	if (r == 0 && !is_inner)
		r = keep_descendants(&list, init_pid);
	if (r == 0 && !list.count)
		r = -ESRCH;
	if (r < 0) {
		proc_list_done(&list);
		return r;
	}
	*ret_list = list;
	return 0;
}

int proc_list_descendants(pid_t init_pid, struct proc_list *ret_list)
{
	return list_below(fd_open_at(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY, 0), init_pid, false, ret_list);
}

int proc_list_namespace(pid_t init_pid, struct proc_list *ret_list)
{
	int inner_fd = open_inner_proc(init_pid);

	return inner_fd < 0 ? proc_list_descendants(init_pid, ret_list) :
			      list_below(inner_fd, init_pid, true, ret_list);
}

/*
 * A parent in vfork(2) neither runs nor stops until its child, which we have stopped, executes something. It shows as
 * 'D', like a process in the middle of a write, so the call itself is asked for; -1 where we may not see it.
 */
static bool is_in_vfork(int proc_fd, const char *task)
{
	char path[64], text[128];
	cleanup_fd int fd = FD_NONE;
	ssize_t n;
	long call;

	if (str_format(path, sizeof path, "%s/syscall", task) < 0)
		return false;
	fd = fd_open_at(proc_fd, path, O_RDONLY, 0);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0 || text[0] < '0' || text[0] > '9')
		return false;
	text[n] = 0;
	call = strtol(text, NULL, 10);
#ifdef SYS_vfork
	if (call == SYS_vfork)
		return true;
#endif
	return call == SYS_clone || call == SYS_clone3;
}

/* T: stopped; t: held by a tracer, which is stopped or outside; Z, X: dead. */
static bool is_task_still(int proc_fd, const char *task, char state)
{
	return strchr("TtZX", state) || (state == 'D' && is_in_vfork(proc_fd, task));
}

static int is_thread_still(int proc_fd, pid_t pid, const char *thread)
{
	char task[48];
	struct proc_stat stat;
	uint64_t number;
	cleanup_fd int fd = FD_NONE;
	int r = num_parse_u64(thread, &number);

	if (r == 0)
		r = str_format(task, sizeof task, "%d/task", (int)pid);
	if (r < 0)
		return r;
	fd = fd_open_at(proc_fd, task, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	r = proc_stat_read(fd, (pid_t)number, &stat);
	if (r == -ENOENT || r == -ESRCH)
		return 1;
	if (r < 0)
		return r;
	return is_task_still(fd, thread, stat.state);
}

int proc_is_still(int proc_fd, const struct proc_stat *stat)
{
	struct dirent *entry;
	char path[48];
	DIR *dir;
	int r = str_format(path, sizeof path, "%d", (int)stat->pid);

	if (r < 0)
		return r;
	if (stat->threads <= 1)
		return is_task_still(proc_fd, path, stat->state);
	/* The state of a process is that of its first thread, which may be dead already. */
	r = str_format(path, sizeof path, "%d/task", (int)stat->pid);
	dir = path_list(r < 0 ? r : fd_open_at(proc_fd, path, O_RDONLY | O_DIRECTORY, 0));
	if (!dir)
		return -errno;
	for (r = 1; r == 1 && (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			r = is_thread_still(proc_fd, stat->pid, entry->d_name);
	closedir(dir);
	return r;
}

bool proc_has_children(pid_t pid)
{
	char path[64], byte;
	cleanup_fd int fd = FD_NONE;

	if (str_format(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	return fd < 0 || read(fd, &byte, 1) != 0;
}

int proc_signal(int proc_fd, pid_t pid, int signal_number)
{
	cleanup_fd int fd = FD_NONE;
	char path[16];
	int r = str_format(path, sizeof path, "%d", (int)pid);

	if (r < 0)
		return r;
	/* A directory of /proc stands for its process: pidfd_send_signal(2). */
	fd = fd_open_at(proc_fd, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	return syscall(SYS_pidfd_send_signal, fd, signal_number, NULL, 0) < 0 ? -errno : 0;
}

/* The kB value behind "Name:" in status or smaps_rollup, in bytes; 0 where the line is missing. */
static uint64_t field_bytes(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (!at || (at != text && at[-1] != '\n'))
		return 0;
	return strtoull(at + strlen(name), NULL, 10) * 1024;
}

int proc_memory_resident(int proc_fd, pid_t pid, struct proc_memory *ret_memory)
{
	char text[4096];
	int r = read_small(proc_fd, pid, "status", text, sizeof text);

	if (r < 0)
		return r;
	*ret_memory = (struct proc_memory){
		.anonymous = field_bytes(text, "RssAnon:"),
		.shmem = field_bytes(text, "RssShmem:"),
		.swap = field_bytes(text, "VmSwap:"),
		.tables = field_bytes(text, "VmPTE:"),
	};
	return 0;
}

int proc_memory_share(int proc_fd, pid_t pid, struct proc_memory *ret_memory)
{
	char text[4096];
	int r = read_small(proc_fd, pid, "smaps_rollup", text, sizeof text);

	if (r < 0)
		return r;
	*ret_memory = (struct proc_memory){
		.anonymous = field_bytes(text, "Pss_Anon:"),
		.shmem = field_bytes(text, "Pss_Shmem:"),
		.swap = field_bytes(text, "SwapPss:"),
	};
	return 0;
}

/* One tmpfs line of a mountinfo text: its device "0:31" and where it is mounted (octal escapes kept). */
struct tmpfs_mount {
	unsigned major, minor;
	char point[1024];
};

static bool next_tmpfs(const char **at, struct tmpfs_mount *out)
{
	while (**at) {
		const char *line = *at, *end = strchrnul(line, '\n');
		const void *type = memmem(line, (size_t)(end - line), " - tmpfs ", strlen(" - tmpfs "));

		*at = *end ? end + 1 : end;
		if (type && sscanf(line, "%*u %*u %u:%u %*s %1023s", &out->major, &out->minor, out->point) == 3)
			return true;
	}
	return false;
}

static bool has_device(const char *mounts, unsigned major, unsigned minor)
{
	struct tmpfs_mount mount;

	while (next_tmpfs(&mounts, &mount))
		if (mount.major == major && mount.minor == minor)
			return true;
	return false;
}

/* The agent's links must not lead the look-up out of its root. */
static uint64_t tmpfs_used(int root_fd, const struct tmpfs_mount *mount)
{
	cleanup_fd int fd = path_open2(root_fd, mount->point, O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != makedev(mount->major, mount->minor) || fstatfs(fd, &fs) < 0)
		return 0;
	return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

int proc_tmpfs_bytes(pid_t init_pid, uint64_t *ret_bytes)
{
	cleanup_free char *inner = NULL, *outer = NULL;
	cleanup_fd int root_fd = FD_NONE;
	struct tmpfs_mount mount;
	uint64_t total = 0;
	char path[64];
	size_t size;
	int r = str_format(path, sizeof path, "/proc/%d/mountinfo", (int)init_pid);

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, path, FILE_MAX, &inner, &size);
	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", FILE_MAX, &outer, &size);
	if (r == 0)
		r = str_format(path, sizeof path, "/proc/%d/root", (int)init_pid);
	if (r < 0)
		return r;
	root_fd = fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (root_fd < 0)
		return root_fd;
	for (const char *at = inner; next_tmpfs(&at, &mount);)
		/* One file system may be mounted twice: only its last line counts. */
		if (!has_device(outer, mount.major, mount.minor) && !has_device(at, mount.major, mount.minor))
			total += tmpfs_used(root_fd, &mount);
	*ret_bytes = total;
	return 0;
}

struct file_id {
	dev_t device;
	ino_t inode;
};

struct file_set {
	struct file_id *files; /* owned */
	size_t count, looked_at;
};

/* Whether the file is new in the set. */
static bool file_set_add(struct file_set *set, const struct stat *st)
{
	struct file_id *files;

	for (size_t i = 0; i < set->count; i++)
		if (set->files[i].device == st->st_dev && set->files[i].inode == st->st_ino)
			return false;
	if (set->count % 64 == 0) {
		files = realloc(set->files, (set->count + 64) * sizeof *files);
		if (!files)
			return false;
		set->files = files;
	}
	set->files[set->count++] = (struct file_id){ st->st_dev, st->st_ino };
	return true;
}

/* Open files of one process that have no name: memfds, or all others. */
static uint64_t nameless_of(int proc_fd, pid_t pid, bool memfds, struct file_set *set)
{
	char path[64], link[16];
	struct dirent *entry;
	uint64_t total = 0;
	struct stat st;
	DIR *dir;
	int fd = str_format(path, sizeof path, "%d/fd", (int)pid);

	if (fd == 0)
		fd = fd_open_at(proc_fd, path, O_RDONLY | O_DIRECTORY, 0);
	dir = path_list(fd);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)) && set->looked_at < FILES_MAX) {
		ssize_t n = readlinkat(fd, entry->d_name, link, sizeof link);

		set->looked_at++;
		if ((n >= 7 && memcmp(link, "/memfd:", 7) == 0) == memfds && fstatat(fd, entry->d_name, &st, 0) == 0 &&
		    S_ISREG(st.st_mode) && !st.st_nlink && file_set_add(set, &st))
			total += (uint64_t)st.st_blocks * 512;
	}
	closedir(dir);
	return total;
}

static uint64_t nameless_bytes(const struct proc_list *list, bool memfds)
{
	struct file_set set = { 0 };
	uint64_t total = 0;

	for (size_t i = 0; i < list->count; i++)
		total += nameless_of(list->proc_fd, list->stats[i].pid, memfds, &set);
	free(set.files);
	return total;
}

uint64_t proc_memfd_bytes(const struct proc_list *list)
{
	return nameless_bytes(list, true);
}

uint64_t proc_unlinked_bytes(pid_t init_pid)
{
	cleanup_proc_list struct proc_list list = { .proc_fd = FD_NONE };

	return proc_list_namespace(init_pid, &list) < 0 ? 0 : nameless_bytes(&list, false);
}

const char *proc_name(pid_t pid, char out[PROC_NAME_SIZE])
{
	cleanup_fd int fd = FD_NONE;
	char path[48];
	ssize_t size;

	if (str_format(path, sizeof path, "/proc/%d/comm", pid) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	size = fd < 0 ? 0 : read(fd, out, PROC_NAME_SIZE - 1);
	out[size < 0 ? 0 : size] = 0;
	out[strcspn(out, "\n")] = 0;
	return out;
}
