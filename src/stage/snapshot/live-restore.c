/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/snapshot/live-restore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/identity.h"
#include "os/path.h"
#include "stage/layer/attributes.h"
#include "stage/layer/copy.h"
#include "stage/layer/links.h"
#include "stage/record/store.h"
#include "stage/snapshot/entry-list.h"

/*
 * Theory of operation. Both states stand on the same host and the same mask. So they can differ only at paths that a
 * layer of one of them has, or hides of the host. The two lists of such paths are read in parallel. For each path,
 * `wanted` says what the snapshot shows there: an entry of a layer, a file of the mask, the host's entry, or nothing.
 * The mounted tree says what is there now. Where the two differ, the tree is changed.
 *
 * Modes and times of directories are set at the end, deepest first, since making entries changes them.
 */

enum { TEMPORARY_NAMES_MAX = 1000, CHUNK_SIZE = 64 << 10 };

/* What the snapshot shows at a path. */
struct view {
	int dir_fd;                  /* owned: the directory that holds it; FD_NONE: nothing is shown */
	const char *name;
	struct stat st;
	const struct list_entry *entry; /* NULL: it is the host's or the mask's */
};

struct directory {
	const char *path;            /* borrowed from a list */
	mode_t mode;
	struct timespec mtime;
};

struct job {
	struct stage_live_restore *restore;
	struct entry_list now, wanted;
	struct links links;
	struct directory *directories; /* owned */
	size_t directory_count;
	const char *skipped;         /* nothing below this one; borrowed from a list */
	int parent_fd;               /* owned: in the mounted tree, of the path before */
	const char *parent;          /* borrowed from a list */
	size_t parent_length;
	char *buffers;               /* owned; two chunks */
};

static void begin_making(const struct job *job)
{
	identity_take_files(job->restore->uid, job->restore->gid);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- what the snapshot shows ---- */

/* A name below one of the roots. 1: something is there. */
static int look_below(int root_fd, const char *path, struct view *view)
{
	cleanup_fd int fd = FD_NONE;

	if (root_fd < 0)
		return 0;
	fd = stage_open_parent(root_fd, path, &view->name);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV)
		return 0;
	if (fd < 0)
		return fd;
	if (!*path)
		view->name = ".";
	if (fstatat(fd, view->name, &view->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	view->dir_fd = take_fd(&fd);
	return 1;
}

static void view_done(struct view *view)
{
	close_fd(&view->dir_fd);
}
#define cleanup_view __attribute__((cleanup(view_done)))

/* No layer of the snapshot has it and none hides it: the mask decides, then the host. */
static int view_below_layers(const struct job *job, const struct list_entry *now, struct view *view)
{
	const struct stage_stack *stack = job->restore->wanted;
	int r = look_below(stack->mask_fd, now->path, view);

	if (r < 0 || (r > 0 && S_ISREG(view->st.st_mode)))
		return r < 0 ? r : 0;
	view_done(view);
	if (now->is_masked)
		return 0;
	r = look_below(stack->host_fd, now->path, view);
	return r < 0 ? r : 0;
}

static int find_view(const struct job *job, const struct list_entry *wanted, const struct list_entry *now,
		     struct view *view)
{
	int r;

	*view = (struct view){ .dir_fd = FD_NONE, .entry = wanted };
	if (!wanted)
		return view_below_layers(job, now, view);
	if (wanted->kind != STAGE_ENTRY_FILE && wanted->kind != STAGE_ENTRY_DIRECTORY)
		return 0;
	r = look_below(job->restore->wanted->layers[wanted->layer], wanted->path, view);
	return r == 0 ? -ESTALE : r < 0 ? r : 0;
}

/* ---- the mounted tree ---- */

/* The directory that holds the path, *ret_fd borrowed. 1: something else is mounted there, or it is gone. */
static int open_parent(struct job *job, const char *path, int *ret_fd)
{
	size_t length = (size_t)(name_of(path) - path);
	const char *name;
	int fd;

	if (job->parent && job->parent_length == length && memcmp(job->parent, path, length) == 0) {
		*ret_fd = job->parent_fd;
		return 0;
	}
	close_fd(&job->parent_fd);
	job->parent = NULL;
	fd = stage_open_parent(job->restore->live_fd, path, &name);
	if (fd == -EXDEV)
		return 1;
	if (fd < 0)
		return fd;
	job->parent = path;
	job->parent_length = length;
	*ret_fd = job->parent_fd = fd;
	return 0;
}

/* A file under a free name beside the one that it will take. */
typedef int (*make_function)(struct job *job, const struct view *view, int dir_fd, const char *name);

static int make_node(struct job *job, const struct view *view, int dir_fd, const char *name)
{
	struct timespec times[2] = { view->st.st_atim, view->st.st_mtim };
	cleanup_fd int fd = FD_NONE;
	int r;

	if (!S_ISFIFO(view->st.st_mode) && !S_ISSOCK(view->st.st_mode))
		return -EPERM;
	begin_making(job);
	r = mknodat(dir_fd, name, (view->st.st_mode & S_IFMT) | 0600, 0) < 0 ? -errno : 0;
	identity_return_files();
	/* Where signals alone stop a program, a timer of its own may wake it: a name can be a link by now. */
	if (r == 0)
		r = fd = fd_open_at(dir_fd, name, O_PATH | O_NOFOLLOW, 0);
	if (r >= 0)
		r = path_chmod(fd, view->st.st_mode);
	if (r == 0 && utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	return r;
}

static int make_copy(struct job *job, const struct view *view, int dir_fd, const char *name)
{
	struct copy copy = {
		.from_fd = view->dir_fd, .from = view->name, .to_fd = dir_fd, .to = name, .kind = COPY_TO_HOST,
		.gives_owner = true, .makes_as_owner = true, .uid = job->restore->uid, .gid = job->restore->gid,
		.replaced_fd = FD_NONE, .acl = COPY_ACL_SOURCE,
	};
	int r = copy_entry(&copy);

	/* An ACL that names ids which the sandbox does not have. */
	if (r == -EINVAL || r == -EPERM) {
		copy.acl = COPY_ACL_NONE;
		r = copy_entry(&copy);
	}
	if (r == COPY_REFUSED)
		return make_node(job, view, dir_fd, name);
	/* Set-id bits, which only a file of the host can have, stay behind: nobody inside could set them either. */
	return r == COPY_CHANGED ? -ESTALE : r;
}

/* Another name of a file that was made, or is there, already. */
static int make_link(struct job *job, const struct view *view, int dir_fd, const char *name)
{
	uint32_t first = 0;
	const char *first_name;
	cleanup_fd int fd = FD_NONE;
	int r = links_find_or_put(&job->links, 0, view->st.st_dev, view->st.st_ino,
				  (uint32_t)(view->entry - job->wanted.items), &first);

	if (r <= 0)
		return r < 0 ? r : make_copy(job, view, dir_fd, name);
	fd = stage_open_parent(job->restore->live_fd, job->wanted.items[first].path, &first_name);
	if (fd < 0)
		return fd;
	begin_making(job);
	r = linkat(fd, first_name, dir_fd, name, 0) < 0 ? -errno : 0;
	identity_return_files();
	job->restore->linked += r == 0;
	return r;
}

static int replace(struct job *job, const struct view *view, int dir_fd, const char *name)
{
	bool is_linked = view->entry && S_ISREG(view->st.st_mode) && view->st.st_nlink > 1;
	make_function make = is_linked ? make_link : make_copy;
	char temporary[sizeof STAGE_RESERVED_PREFIX + 24];
	int r = -EEXIST;

	for (unsigned number = 0; r == -EEXIST && number < TEMPORARY_NAMES_MAX; number++) {
		r = str_format(temporary, sizeof temporary, STAGE_RESERVED_PREFIX "restore-%u", number);
		r = r < 0 ? r : make(job, view, dir_fd, temporary);
	}
	if (r < 0)
		return r;
	begin_making(job);
	r = renameat(dir_fd, temporary, dir_fd, name) < 0 ? -errno : 0;
	identity_return_files();
	/* rename(2) of a name onto another of the same file does nothing. */
	if (unlinkat(dir_fd, temporary, 0) < 0 && errno != ENOENT && r == 0)
		r = -errno;
	job->restore->written += r == 0;
	return r;
}

/* ---- whether both are the same ---- */

/* 1, 0, -errno. */
static int has_same_bytes(struct job *job, int a, int b)
{
	off_t at = 0;

	if (!job->buffers)
		job->buffers = malloc(2 * CHUNK_SIZE);
	if (!job->buffers)
		return -ENOMEM;
	for (;;) {
		ssize_t n = pread(a, job->buffers, CHUNK_SIZE, at);
		ssize_t m = pread(b, job->buffers + CHUNK_SIZE, CHUNK_SIZE, at);

		if (n < 0 || m < 0)
			return -errno;
		if (n != m || memcmp(job->buffers, job->buffers + CHUNK_SIZE, (size_t)n) != 0)
			return 0;
		if (n == 0)
			return 1;
		at += n;
	}
}

static bool is_restored(const char *name)
{
	return attributes_is_user(name) || attributes_is_acl(name);
}

/* What cannot be read is not the same. */
static int is_same_file(struct job *job, const struct view *view, int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
	cleanup_fd int a = fd_open_at(view->dir_fd, view->name, flags, 0), b = fd_open_at(dir_fd, name, flags, 0);

	if (a < 0 || b < 0 || attributes_are_same(a, b, is_restored) != 1)
		return 0;
	return has_same_bytes(job, a, b);
}

static int is_same_link(const struct view *view, int dir_fd, const char *name)
{
	char a[PATH_MAX], b[PATH_MAX];
	ssize_t n = readlinkat(view->dir_fd, view->name, a, sizeof a), m = readlinkat(dir_fd, name, b, sizeof b);

	return n >= 0 && n == m && memcmp(a, b, (size_t)n) == 0;
}

static bool has_same_time(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Size and times prove nothing: a program inside can set them. */
static int is_same(struct job *job, const struct view *view, int dir_fd, const char *name, const struct stat *live)
{
	if (view->st.st_mode != live->st_mode || !has_same_time(&view->st, live))
		return 0;
	if (S_ISREG(live->st_mode))
		return view->st.st_nlink == 1 && live->st_nlink == 1 && view->st.st_size == live->st_size
			       ? is_same_file(job, view, dir_fd, name) : 0;
	return S_ISLNK(live->st_mode) ? is_same_link(view, dir_fd, name) : 1;
}

/* ---- one path ---- */

static int remove_live(struct job *job, int dir_fd, const char *name)
{
	int r = path_remove_tree(dir_fd, name);

	job->restore->removed += r == 0;
	return r == -EXDEV ? -EBUSY : r;
}

/* Other names of the same file of the layers are made as links to it. */
static int keep_file(struct job *job, const struct list_entry *wanted)
{
	uint32_t first;
	int r = S_ISREG(wanted->staged.st_mode) && wanted->staged.st_nlink > 1
			? links_find_or_put(&job->links, 0, wanted->staged.st_dev, wanted->staged.st_ino,
					    (uint32_t)(wanted - job->wanted.items), &first) : 0;

	return r < 0 ? r : 0;
}

static int restore_file(struct job *job, const struct view *view, int dir_fd, const char *name,
			const struct stat *live)
{
	int r = live ? is_same(job, view, dir_fd, name, live) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	if (live && S_ISDIR(live->st_mode))
		r = remove_live(job, dir_fd, name);
	return r < 0 ? r : replace(job, view, dir_fd, name);
}

static int make_directory(struct job *job, int dir_fd, const char *name, bool is_in_the_way)
{
	int r = is_in_the_way ? remove_live(job, dir_fd, name) : 0;

	if (r < 0)
		return r;
	begin_making(job);
	r = mkdirat(dir_fd, name, 0700) < 0 ? -errno : 0;
	identity_return_files();
	job->restore->written += r == 0;
	return r;
}

/* All rights of its owner, until its mode is set at the end. Never by its name alone: that may be a link by now. */
static int lend_directory(int dir_fd, const char *name)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	return fstat(fd, &st) < 0 ? -errno : path_chmod(fd, st.st_mode | 0700);
}

static int match_attributes(const struct view *view, int live_fd)
{
	cleanup_fd int fd = fd_open_at(view->dir_fd, view->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = fd < 0 ? fd : attributes_match(fd, live_fd, attributes_is_user);

	/* One that names ids which the sandbox does not have stays behind. */
	if (r == 0)
		(void)!attributes_match(fd, live_fd, attributes_is_acl);
	return r;
}

static int restore_directory(struct job *job, const char *path, const struct view *view, int dir_fd,
			     const struct stat *live)
{
	const char *name = *path ? name_of(path) : ".";
	bool is_there = live && S_ISDIR(live->st_mode);
	cleanup_fd int fd = FD_NONE;
	int r = is_there ? 0 : make_directory(job, dir_fd, name, live);

	/* Entries are made in it first. */
	if (r == 0 && is_there && (live->st_mode & 0700) != 0700)
		r = lend_directory(dir_fd, name);
	if (r == 0)
		r = fd = path_open2(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, STAGE_RESOLVE_BENEATH);
	if (r >= 0)
		r = match_attributes(view, fd);
	if (r == 0)
		job->directories[job->directory_count++] = (struct directory){ path, view->st.st_mode & 07777,
									       view->st.st_mtim };
	return r;
}

/* The very same entry of the same layer decides in both states. */
static bool is_untouched(const struct list_entry *wanted, const struct list_entry *now)
{
	return wanted && now && wanted->kind == STAGE_ENTRY_FILE && now->kind == STAGE_ENTRY_FILE &&
	       wanted->staged.st_dev == now->staged.st_dev && wanted->staged.st_ino == now->staged.st_ino;
}

static int restore_entry(struct job *job, const char *path, const struct view *view)
{
	const char *name = *path ? name_of(path) : ".";
	struct stat live, root;
	int dir_fd, r = open_parent(job, path, &dir_fd);
	bool is_there;

	if (r != 0) {
		job->skipped = path;
		return r < 0 ? r : 0;
	}
	is_there = fstatat(dir_fd, name, &live, AT_SYMLINK_NOFOLLOW) == 0;
	if (!is_there && errno != ENOENT)
		return -errno;
	/* What the policy put into the tree, a directory that is written in place for instance, is no part of it. */
	if (is_there && S_ISDIR(live.st_mode) && fstat(job->restore->live_fd, &root) == 0 &&
	    live.st_dev != root.st_dev) {
		job->skipped = path;
		return 0;
	}
	if (view->dir_fd >= 0 && S_ISDIR(view->st.st_mode))
		return restore_directory(job, path, view, dir_fd, is_there ? &live : NULL);
	if (*path)
		job->skipped = path;
	if (view->dir_fd < 0)
		return is_there && *path ? remove_live(job, dir_fd, name) : 0;
	return restore_file(job, view, dir_fd, name, is_there ? &live : NULL);
}

static int restore_path(struct job *job, const struct list_entry *wanted, const struct list_entry *now)
{
	const char *path = wanted ? wanted->path : now->path;
	cleanup_view struct view view = { .dir_fd = FD_NONE };
	int r;

	if (job->skipped && entry_path_is_below(path, job->skipped))
		return 0;
	if (is_untouched(wanted, now))
		return keep_file(job, wanted);
	if (clock_monotonic_ns() > job->restore->deadline_ns)
		return -ETIME;
	r = find_view(job, wanted, now, &view);
	return r < 0 ? r : restore_entry(job, path, &view);
}

/* ---- all of it ---- */

static int join(struct job *job)
{
	size_t i = 0, j = 0;
	int r = 0;

	while (r == 0 && (i < job->wanted.count || j < job->now.count)) {
		const struct list_entry *wanted = i < job->wanted.count ? &job->wanted.items[i] : NULL;
		const struct list_entry *now = j < job->now.count ? &job->now.items[j] : NULL;
		int order = !wanted ? 1 : !now ? -1 : entry_path_compare(wanted->path, now->path);

		r = restore_path(job, order <= 0 ? wanted : NULL, order >= 0 ? now : NULL);
		i += order <= 0;
		j += order >= 0;
	}
	return r;
}

static int finish_directory(const struct job *job, const struct directory *directory)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, directory->mtime };
	cleanup_fd int fd = stage_open_beneath(job->restore->live_fd, directory->path, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if ((st.st_mode & 07777) != directory->mode && fchmod(fd, directory->mode) < 0)
		return -errno;
	if (st.st_mtim.tv_sec == directory->mtime.tv_sec && st.st_mtim.tv_nsec == directory->mtime.tv_nsec)
		return 0;
	return futimens(fd, times) < 0 ? -errno : 0;
}

static void job_done(struct job *job)
{
	entry_list_done(&job->now);
	entry_list_done(&job->wanted);
	links_done(&job->links);
	close_fd(&job->parent_fd);
	free(job->directories);
	free(job->buffers);
}

int stage_live_restore(struct stage_live_restore *restore)
{
	struct job job = { .restore = restore, .parent_fd = FD_NONE };
	int r = entry_list_load(restore->now, &job.now);

	restore->written = restore->removed = restore->linked = 0;
	if (r == 0)
		r = entry_list_load(restore->wanted, &job.wanted);
	if (r == 0) {
		job.directories = calloc(job.now.count + job.wanted.count + 1, sizeof *job.directories);
		r = job.directories ? join(&job) : -ENOMEM;
	}
	for (size_t i = job.directory_count; r == 0 && i-- > 0;)
		r = finish_directory(&job, &job.directories[i]);
	job_done(&job);
	return r;
}
