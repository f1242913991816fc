/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/snapshot/merge.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "os/fd.h"
#include "stage/layer/copy.h"
#include "stage/layer/origins.h"
#include "stage/record/store.h"
#include "stage/layer/walk.h"

/*
 * The walk comes by each directory before and after what is below it. Before, the directory is made with the
 * attributes of the topmost layer that has it; afterwards it is marked opaque where any layer below had made it so, and
 * gets the times that the entries below it have changed meanwhile. The last directory that was written to stays open:
 * entries come in the order of the tree.
 */

enum { LINK_SIZE = 32, PLACES_MAX = 1 << 20 };

/* Where the first name of an inode with several lies now, so that the others become links to it. */
struct place {
	dev_t device;
	ino_t inode;
	char *path;
};

struct job {
	struct stage_merge *merge;
	struct origins *origins;
	int parent_fd;               /* owned: of the entry before */
	char *parent;                /* owned: its path; NULL: none is open */
	struct place *places;        /* owned; open addressing, a power of two, at most half full */
	size_t place_count, place_capacity;
};

static int open_parent(struct job *job, const struct stage_entry *entry, int *ret_fd)
{
	const char *slash = strrchr(entry->path, '/');
	size_t length = slash ? (size_t)(slash - entry->path) : 0;
	int r;

	if (job->parent && strlen(job->parent) == length && memcmp(job->parent, entry->path, length) == 0) {
		*ret_fd = job->parent_fd;
		return 0;
	}
	close_fd(&job->parent_fd);
	free(job->parent);
	job->parent = strndup(entry->path, length);
	if (!job->parent)
		return -ENOMEM;
	r = stage_open_beneath(job->merge->to_fd, job->parent, O_RDONLY | O_DIRECTORY, 0);
	if (r < 0)
		return r;
	*ret_fd = job->parent_fd = r;
	return 0;
}

static struct place *find_place(const struct job *job, const struct stat *st)
{
	size_t at = (size_t)st->st_ino * 0x9e3779b97f4a7c15u;

	for (;; at++) {
		struct place *place = &job->places[at & (job->place_capacity - 1)];

		if (!place->path || (place->inode == st->st_ino && place->device == st->st_dev))
			return place;
	}
}

static int grow_places(struct job *job)
{
	struct job larger = { .place_capacity = job->place_capacity ? 2 * job->place_capacity : 256 };

	larger.places = calloc(larger.place_capacity, sizeof *larger.places);
	if (!larger.places)
		return -ENOMEM;
	for (size_t i = 0; i < job->place_capacity; i++)
		if (job->places[i].path)
			*find_place(&larger, &(struct stat){ .st_dev = job->places[i].device,
							     .st_ino = job->places[i].inode }) = job->places[i];
	free(job->places);
	job->places = larger.places;
	job->place_capacity = larger.place_capacity;
	return 0;
}

/* 1: made as a link to the first name; 0: this is the first name, which is noted. Beyond the bound links part. */
static int link_again(struct job *job, const struct stage_entry *entry, int to_fd)
{
	struct place *place;
	const char *name;
	int r = 0;

	if (2 * (job->place_count + 1) > job->place_capacity)
		r = grow_places(job);
	if (r < 0)
		return r;
	place = find_place(job, &entry->staged);
	if (place->path) {
		cleanup_fd int fd = stage_open_parent(job->merge->to_fd, place->path, &name);

		if (fd < 0)
			return fd;
		return linkat(fd, name, to_fd, entry->name, 0) < 0 ? -errno : 1;
	}
	if (job->place_count == PLACES_MAX)
		return 0;
	*place = (struct place){ entry->staged.st_dev, entry->staged.st_ino, str_dup(entry->path) };
	if (!place->path)
		return -ENOMEM;
	job->place_count++;
	return 0;
}

/* FIFOs and sockets are never applied, but the sandbox may go on with them after a restore. */
static int make_node(const struct stage_entry *entry, int to_fd)
{
	const struct stat *st = &entry->staged;
	struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (!S_ISFIFO(st->st_mode) && !S_ISSOCK(st->st_mode))
		return -EPERM;
	if (mknodat(to_fd, entry->name, (st->st_mode & S_IFMT) | 0600, 0) < 0)
		return -errno;
	if (geteuid() == 0 && fchownat(to_fd, entry->name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* Made a moment ago where nobody else writes: nothing can have taken its place. */
	return fchmodat(to_fd, entry->name, st->st_mode & 07777, 0) < 0 ||
			       utimensat(to_fd, entry->name, times, AT_SYMLINK_NOFOLLOW) < 0
		       ? -errno
		       : 0;
}

static int copy_to(const struct stage_entry *entry, int to_fd)
{
	struct copy copy = { .from_fd = entry->layer_dir_fd,
			     .from = entry->name,
			     .to_fd = to_fd,
			     .to = entry->name,
			     .kind = COPY_EXACT };
	int r = copy_entry(&copy);

	if (r == COPY_REFUSED)
		return make_node(entry, to_fd);
	return r == COPY_CHANGED ? -ESTALE : r;
}

/*
 * What a copy-up was made of may be in one of the layers that are merged, and gone with them: then the file was made in
 * the sandbox, and the mark would say that the host had it.
 */
static bool has_stale_origin(struct job *job, const struct stage_entry *entry)
{
	return entry->marks.is_copied_up && S_ISREG(entry->staged.st_mode) &&
	       origins_explain(job->origins, entry);
}

static int drop_origin(int to_fd, const char *name)
{
	char path[LINK_SIZE];
	cleanup_fd int fd = stage_open_beneath(to_fd, name, O_PATH | O_NOFOLLOW, 0);

	if (fd < 0)
		return fd;
	if (str_format(path, sizeof path, "/proc/self/fd/%d", fd) < 0)
		return -EINVAL;
	return removexattr(path, "user.overlay.origin") < 0 && errno != ENODATA ? -errno : 0;
}

static int make_file(struct job *job, const struct stage_entry *entry, int to_fd)
{
	bool is_stale;
	int r;

	if (job->merge->how == STAGE_MERGE_COPY) {
		r = entry->staged.st_nlink > 1 ? link_again(job, entry, to_fd) : 0;
		return r != 0 ? (r < 0 ? r : 0) : copy_to(entry, to_fd);
	}
	is_stale = job->origins && has_stale_origin(job, entry);
	if (!is_stale && linkat(entry->layer_dir_fd, entry->name, to_fd, entry->name, 0) == 0)
		return 0;
	if (!is_stale && errno != EMLINK && errno != EXDEV && errno != EPERM)
		return -errno;
	r = copy_to(entry, to_fd);
	return r == 0 && is_stale ? drop_origin(to_fd, entry->name) : r;
}

static int make_entry(struct job *job, const struct stage_entry *entry)
{
	int to_fd, r = open_parent(job, entry, &to_fd);

	if (r < 0)
		return r;
	job->merge->entries++;
	if (entry->kind == STAGE_ENTRY_DIRECTORY) {
		r = copy_to(entry, to_fd);
		/* What we could not write to otherwise; leave() gives it its mode. */
		if (r == 0 && (entry->staged.st_mode & 0700) != 0700 &&
		    fchmodat(to_fd, entry->name, (entry->staged.st_mode & 07777) | 0700, 0) < 0)
			r = -errno;
		return r;
	}
	return make_file(job, entry, to_fd);
}

static int enter(void *context, const struct stage_entry *entry)
{
	struct job *job = context;
	struct stage_merge *merge = job->merge;

	if (entry->kind == STAGE_ENTRY_HIDDEN)
		return 0;
	if (*entry->path && merge->is_dropped && merge->is_dropped(merge->context, entry->path)) {
		merge->dropped++;
		return STAGE_WALK_SKIP;
	}
	return *entry->path ? make_entry(job, entry) : 0;
}

/*
 * Its topmost layer may have made it opaque, which came along with its attributes. The others are as the kernel would
 * set them when the directory is looked at: so that has a new ctime only if the sandbox changed something.
 */
static int show_through(int fd)
{
	static const char *const names[] = { "user.overlay.opaque", "user.overlay.impure" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (fremovexattr(fd, names[i]) < 0 && errno != ENODATA)
			return -errno;
	return fsetxattr(fd, "user.overlay.origin", "", 0, 0) < 0 ? -errno : 0;
}

/* Opaque where any layer made it so; and its own times again, and mode, which making entries may have needed wider. */
static int finish_directory(const struct stage_merge *merge, const struct stage_entry *entry, int fd)
{
	struct timespec times[2] = { entry->staged.st_atim, entry->staged.st_mtim };
	int r = merge->is_part ? show_through(fd) : 0;

	if (r < 0)
		return r;
	if (entry->is_opaque && !merge->is_part && fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) < 0)
		return -errno;
	if (!*entry->path && geteuid() == 0 && fchown(fd, entry->staged.st_uid, entry->staged.st_gid) < 0)
		return -errno;
	return fchmod(fd, entry->staged.st_mode & 07777) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

static int leave(void *context, const struct stage_entry *entry)
{
	struct job *job = context;
	cleanup_fd int fd = FD_NONE;

	/* Half a directory is no layer: better none. */
	if (entry->trouble != STAGE_WALK_FINE)
		return entry->trouble == STAGE_WALK_UNREADABLE ? -EACCES : -ESTALE;
	if (entry->kind != STAGE_ENTRY_DIRECTORY)
		return 0;
	fd = stage_open_beneath(job->merge->to_fd, entry->path, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT && job->merge->is_dropped)
		return 0;
	return fd < 0 ? fd : finish_directory(job->merge, entry, fd);
}

static void job_done(struct job *job)
{
	for (size_t i = 0; i < job->place_capacity; i++)
		free(job->places[i].path);
	free(job->places);
	free(job->parent);
	close_fd(&job->parent_fd);
	origins_free(job->origins);
}

int stage_merge(struct stage_merge *merge)
{
	struct job job = { .merge = merge, .parent_fd = FD_NONE };
	struct stage_visitor visitor = { .enter = enter, .leave = leave, .context = &job };
	int r = 0;

	merge->entries = merge->dropped = 0;
	if (merge->stack->count > 1)
		r = origins_load(&job.origins, merge->stack);
	if (r == 0)
		r = stage_walk(merge->stack, &visitor);
	job_done(&job);
	return r;
}
