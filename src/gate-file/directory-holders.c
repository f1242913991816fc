/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-file/directory-holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/proc.h"
#include "os/remote/trace-call.h"

enum { STOP_MS = 500, STATUS_MAX = 8192, INFO_MAX = 16 << 20 };

void holders_done(struct holders *holders)
{
	for (size_t i = 0; i < holders->count; i++)
		free(holders->holders[i].below);
	free(holders->holders);
	free(holders->kept);
	free(holders->threads);
	*holders = (struct holders){ 0 };
}

/* ---- finding ---- */

struct search {
	struct holders *holders;
	int proc_fd;
	const char *trees[2];
	pid_t pid, tid;              /* who is looked at */
};

static int add_holder(struct search *search, int fd, int flags, size_t tree, const char *below)
{
	struct holders *holders = search->holders;
	struct holder *holder;

	if (!holders->holders)
		holders->holders = calloc(HOLDERS_MAX, sizeof *holders->holders);
	if (!holders->holders)
		return -ENOMEM;
	if (holders->count == HOLDERS_MAX)
		return -E2BIG;
	holder = &holders->holders[holders->count];
	*holder = (struct holder){ .inner_pid = search->pid, .inner_tid = search->tid, .fd = fd, .flags = flags,
				   .is_second = tree == 1, .below = str_dup(below) };
	if (!holder->below)
		return -ENOMEM;
	holders->count++;
	return 0;
}

/* What /proc tells of a descriptor, owned; NULL: it is gone. */
static char *read_info(const struct search *search, const char *name)
{
	char path[64], *text;
	size_t size;

	if (str_format(path, sizeof path, "%d/fdinfo/%s", search->pid, name) < 0 ||
	    fd_read_file_at(search->proc_fd, path, INFO_MAX, &text, &size) < 0)
		return NULL;
	return text;
}

static int open_flags(const struct search *search, const char *name)
{
	cleanup_free char *text = read_info(search, name);
	const char *at = text ? strstr(text, "flags:") : NULL;

	return at ? (int)strtol(at + strlen("flags:"), NULL, 8) : -1;
}

static int add_inode(struct holders *holders, uint64_t inode)
{
	if (!holders->kept)
		holders->kept = calloc(HOLDERS_KEPT_MAX, sizeof *holders->kept);
	if (!holders->kept)
		return -ENOMEM;
	if (holders->kept_count == HOLDERS_KEPT_MAX)
		holders->keeps_all = true;
	else
		holders->kept[holders->kept_count++] = inode;
	return 0;
}

/* "inotify wd:1 ino:c7 sdev:3a …": on whatever file system. One too many is kept for nothing. */
static int keep_watched(struct search *search, const char *name)
{
	cleanup_free char *text = read_info(search, name);
	int r = 0;

	if (!text)
		search->holders->keeps_all = true;
	for (const char *at = text; r == 0 && at && (at = strstr(at, " ino:"));) {
		at += strlen(" ino:");
		r = add_inode(search->holders, strtoull(at, NULL, 16));
	}
	return r;
}

/* Which of the trees a link of /proc leads into, and where in it. NULL: none. */
static const char *find_tree(const struct search *search, const char *path, char target[PATH_MAX], size_t *ret_tree)
{
	ssize_t length = readlinkat(search->proc_fd, path, target, PATH_MAX - 1);

	if (length <= 0)
		return NULL;
	target[length] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(search->trees); i++)
		if (search->trees[i] && path_is_below(target, search->trees[i])) {
			*ret_tree = i;
			return target + strlen(search->trees[i]);
		}
	return NULL;
}

static int look_at_cwd(struct search *search)
{
	char path[64], target[PATH_MAX];
	const char *below;
	size_t tree;

	if (str_format(path, sizeof path, "%d/task/%d/cwd", search->pid, search->tid) < 0)
		return 0;
	below = find_tree(search, path, target, &tree);
	return below ? add_holder(search, AT_FDCWD, 0, tree, below) : 0;
}

static int look_at_fd(struct search *search, const char *directory, const char *name)
{
	char path[64], target[PATH_MAX];
	const char *below;
	struct stat status;
	uint64_t number;
	size_t tree;
	int flags;

	if (num_parse_count(name, &number) < 0 || str_format(path, sizeof path, "%s/%s", directory, name) < 0)
		return 0;
	target[0] = 0;
	below = find_tree(search, path, target, &tree);
	if (!below)
		return str_equal(target, "anon_inode:inotify") ? keep_watched(search, name) : 0;
	if (fstatat(search->proc_fd, path, &status, 0) < 0)
		return 0;
	if (!S_ISDIR(status.st_mode))
		return add_inode(search->holders, status.st_ino);
	flags = open_flags(search, name);
	return flags < 0 ? 0 : add_holder(search, (int)number, flags, tree, below);
}

static int each_name(struct search *search, const char *directory,
		     int (*look)(struct search *search, const char *directory, const char *name))
{
	DIR *list = path_list(fd_open_at(search->proc_fd, directory, O_RDONLY | O_DIRECTORY, 0));
	const struct dirent *entry;
	int r = 0;

	if (!list)
		return 0; /* it has ended */
	while (r == 0 && (entry = readdir(list)))
		if (entry->d_name[0] != '.')
			r = look(search, directory, entry->d_name);
	closedir(list);
	return r;
}

static int look_at_thread(struct search *search, const char *directory, const char *name)
{
	(void)directory;
	search->tid = (pid_t)strtol(name, NULL, 10);
	return look_at_cwd(search);
}

static int look_at_process(struct search *search, const struct proc_stat *stat)
{
	char path[32];
	int r;

	search->pid = search->tid = stat->pid;
	if (stat->state == 'Z' && stat->threads <= 1)
		return 0;
	if (str_format(path, sizeof path, "%d/task", stat->pid) < 0)
		return 0;
	r = stat->threads > 1 ? each_name(search, path, look_at_thread) : look_at_cwd(search);
	search->tid = stat->pid;
	if (r == 0 && str_format(path, sizeof path, "%d/fd", stat->pid) == 0)
		r = each_name(search, path, look_at_fd);
	return r;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int holders_find(struct holders *holders, pid_t init_pid, const char *first, const char *second)
{
	struct search search = { .holders = holders, .trees = { first, second } };
	struct proc_list list;
	int r = proc_list_namespace(init_pid, &list);

	if (r < 0)
		return r;
	search.proc_fd = list.proc_fd;
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		holders->is_inner |= list.stats[i].pid == 1 && init_pid != 1;
		r = look_at_process(&search, &list.stats[i]);
	}
	proc_list_done(&list);
	if (holders->kept_count)
		qsort(holders->kept, holders->kept_count, sizeof *holders->kept, compare_numbers);
	return r;
}

/* ---- stopping ---- */

/* What the sandbox's own /proc calls it, the second of the numbers that status tells. 0: it has ended. */
static pid_t inner_number(const struct holders *holders, int proc_fd, const char *path, const char *field)
{
	cleanup_fd int fd = fd_open_at(proc_fd, path, O_RDONLY, 0);
	char text[STATUS_MAX];
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	char *at;
	long number;

	if (size < 0)
		return 0;
	text[size] = 0;
	at = strstr(text, field);
	if (!at)
		return 0;
	number = strtol(at + strlen(field), &at, 10);
	return holders->is_inner && *at == '\t' ? (pid_t)strtol(at, NULL, 10) : (pid_t)number;
}

static bool is_holder(const struct holders *holders, pid_t inner_pid)
{
	for (size_t i = 0; i < holders->count; i++)
		if (holders->holders[i].inner_pid == inner_pid)
			return true;
	return false;
}

static int seize_thread(struct holders *holders, int proc_fd, pid_t inner_pid, const char *path, pid_t tid)
{
	pid_t inner = inner_number(holders, proc_fd, path, "\nNSpid:");
	int r;

	if (!holders->threads)
		holders->threads = calloc(HOLDER_THREADS_MAX, sizeof *holders->threads);
	if (!holders->threads || holders->thread_count == HOLDER_THREADS_MAX)
		return holders->threads ? -E2BIG : -ENOMEM;
	r = trace_call_seize(tid);
	if (r < 0)
		return r == -ESRCH ? 0 : r;
	holders->threads[holders->thread_count++] = tid;
	for (size_t i = 0; i < holders->count; i++)
		if (holders->holders[i].inner_pid == inner_pid && holders->holders[i].inner_tid == inner)
			holders->holders[i].tid = tid;
	return 0;
}

static int seize_process(struct holders *holders, int proc_fd, pid_t pid, pid_t inner_pid)
{
	char path[64];
	int r = str_format(path, sizeof path, "%d/task", pid);
	const struct dirent *entry;
	DIR *list = path_list(r < 0 ? r : fd_open_at(proc_fd, path, O_RDONLY | O_DIRECTORY, 0));

	if (!list)
		return 0;
	while (r == 0 && (entry = readdir(list)))
		if (entry->d_name[0] != '.' &&
		    str_format(path, sizeof path, "%d/task/%s/status", pid, entry->d_name) == 0)
			r = seize_thread(holders, proc_fd, inner_pid, path,
					 (pid_t)strtol(entry->d_name, NULL, 10));
	closedir(list);
	return r;
}

static void release_all(struct holders *holders)
{
	for (size_t i = 0; i < holders->thread_count; i++)
		trace_call_release(holders->threads[i]);
	holders->thread_count = 0;
}

int holders_seize(struct holders *holders, pid_t init_pid)
{
	struct proc_list list;
	int r;

	if (!holders->count)
		return 0;
	/* ptrace(2) takes our own numbers. For them all processes of the machine are looked at: not without need. */
	r = proc_list_descendants(init_pid, &list);
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		char path[32];
		pid_t inner = str_format(path, sizeof path, "%d/status", list.stats[i].pid) < 0 ? 0 :
			      inner_number(holders, list.proc_fd, path, "\nNStgid:");

		if (inner && is_holder(holders, inner))
			r = seize_process(holders, list.proc_fd, list.stats[i].pid, inner);
	}
	if (r == 0 || holders->thread_count)
		proc_list_done(&list);
	return r;
}

/* ---- redirecting ---- */

/* In the thread: opens the directory and puts it where the old one is. */
static int open_inside(struct trace_caller *caller, const struct holder *holder, const char *path)
{
	uint64_t address;
	int r = trace_call_put(caller, path, &address);
	int64_t fd, placed;

	if (r < 0)
		return r;
	if (holder->fd == AT_FDCWD)
		return (int)trace_call(caller, SYS_chdir, (uint64_t[TRACE_CALL_ARGUMENTS]){ address });
	fd = trace_call(caller, SYS_openat,
			(uint64_t[TRACE_CALL_ARGUMENTS]){ (uint64_t)AT_FDCWD, address,
							  (uint64_t)holder->flags | O_DIRECTORY });
	if (fd < 0)
		return (int)fd;
	placed = trace_call(caller, SYS_dup3,
			    (uint64_t[TRACE_CALL_ARGUMENTS]){ (uint64_t)fd, (uint64_t)holder->fd,
							      (uint64_t)(holder->flags & O_CLOEXEC) });
	(void)!trace_call(caller, SYS_close, (uint64_t[TRACE_CALL_ARGUMENTS]){ (uint64_t)fd });
	return placed < 0 ? (int)placed : 0;
}

static int redirect(const struct holder *holder, const char *tree)
{
	struct trace_caller *caller;
	char path[PATH_MAX];
	int r = holder->tid ? str_format(path, sizeof path, "%s%s", tree, holder->below) : -ESRCH;

	if (r == 0)
		r = trace_call_begin(holder->tid, &caller);
	if (r < 0)
		return r;
	r = open_inside(caller, holder, path);
	trace_call_end(caller);
	return r;
}

static bool is_stopped(const struct holders *holders, pid_t tid)
{
	for (size_t i = 0; i < holders->thread_count; i++)
		if (holders->threads[i] == tid)
			return true;
	return false;
}

unsigned holders_redirect(struct holders *holders, const char *first, const char *second)
{
	unsigned failed = 0;

	for (size_t i = 0; i < holders->thread_count;)
		if (trace_call_wait(holders->threads[i], STOP_MS) < 0)
			holders->threads[i] = holders->threads[--holders->thread_count];
		else
			i++;
	for (size_t i = 0; i < holders->count; i++) {
		const struct holder *holder = &holders->holders[i];

		if (!is_stopped(holders, holder->tid) || redirect(holder, holder->is_second ? second : first) < 0)
			failed++;
	}
	release_all(holders);
	return failed;
}
