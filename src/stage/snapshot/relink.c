/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/snapshot/relink.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "stage/layer/links.h"
#include "stage/layer/walk.h"
#include "stage/snapshot/merge.h"

/*
 * A number of links tells little: layers that were joined share their files with the old ones until gc has taken
 * those. So the layers are walked once for what has two names in the merge, and once more to copy that. Both walks come
 * by the same names in the same order, since nobody changes a sealed layer.
 */

enum { NAMES_MAX = 1 << 17, NS_PER_S = 1000000000 };

struct file {
	uint64_t bytes;
	uint32_t names;
	bool is_kept;
};

struct name {
	char *path;                  /* owned */
	uint32_t file;
};

struct job {
	struct links links;          /* inode to index in files */
	struct file *files;          /* owned */
	struct name *names;          /* owned; in the order of the walk */
	size_t file_count, name_count;
	uint64_t left_out;           /* names beyond NAMES_MAX */
	size_t next;                 /* the copying walk: the first name that it has not come by */
	uint64_t bytes_left;         /* of all trees */
};

static void job_done(struct job *job)
{
	for (size_t i = 0; i < job->name_count; i++)
		free(job->names[i].path);
	free(job->names);
	free(job->files);
	links_done(&job->links);
}

/* Room for one more in an array that doubles: at 0 and each power of two. */
static int make_room(void **array, size_t count, size_t size)
{
	void *grown;

	if (count & (count - 1))
		return 0;
	grown = realloc(*array, (count ? 2 * count : 1) * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

static int add_file(struct job *job, const struct stat *st, uint32_t *ret_file)
{
	int r = links_find_or_put(&job->links, 0, st->st_dev, st->st_ino, (uint32_t)job->file_count, ret_file);

	if (r != 0)
		return r < 0 ? r : 0;
	r = make_room((void **)&job->files, job->file_count, sizeof *job->files);
	if (r < 0)
		return r;
	*ret_file = (uint32_t)job->file_count;
	job->files[job->file_count++] = (struct file){ .bytes = (uint64_t)st->st_blocks * 512 };
	return 0;
}

static int note_name(void *context, const struct stage_entry *entry)
{
	struct job *job = context;
	struct name *name;
	uint32_t file;
	int r;

	if (entry->kind != STAGE_ENTRY_FILE || !S_ISREG(entry->staged.st_mode) || entry->staged.st_nlink < 2)
		return 0;
	if (job->name_count == NAMES_MAX) {
		job->left_out++;
		return 0;
	}
	r = add_file(job, &entry->staged, &file);
	if (r == 0)
		r = make_room((void **)&job->names, job->name_count, sizeof *job->names);
	if (r < 0)
		return r;
	name = &job->names[job->name_count];
	*name = (struct name){ str_dup(entry->path), file };
	if (!name->path)
		return -ENOMEM;
	job->name_count++;
	job->files[file].names++;
	return 0;
}

/* Whole files, as long as there is room for them. */
static void choose(struct job *job, struct stage_linked *linked)
{
	size_t kept = 0;

	linked->parted += job->left_out;
	for (size_t i = 0; i < job->file_count; i++) {
		struct file *file = &job->files[i];

		if (file->names < 2)
			continue;
		file->is_kept = file->bytes <= job->bytes_left;
		job->bytes_left -= file->is_kept ? file->bytes : 0;
		linked->kept += file->is_kept;
		linked->parted += !file->is_kept;
	}
	for (size_t i = 0; i < job->name_count; i++) {
		if (job->files[job->names[i].file].is_kept)
			job->names[kept++] = job->names[i];
		else
			free(job->names[i].path);
	}
	job->name_count = kept;
}

/* The copying walk takes the next name and the directories on the way to it. */
static bool is_left_out(void *context, const char *path)
{
	struct job *job = context;
	const char *wanted = job->next < job->name_count ? job->names[job->next].path : NULL;
	size_t length = strlen(path);

	if (!wanted || strncmp(wanted, path, length) != 0)
		return true;
	if (!wanted[length])
		job->next++;
	return wanted[length] && wanted[length] != '/';
}

static int relink_tree(const struct stage_lock *lock, size_t tree, uint64_t *bytes_left, struct stage_linked *linked)
{
	cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;
	struct job job = { .bytes_left = *bytes_left };
	struct stage_visitor visitor = { .enter = note_name, .context = &job };
	struct stage_merge merge = { .stack = &stack, .how = STAGE_MERGE_COPY, .is_part = true,
				     .is_dropped = is_left_out, .context = &job };
	cleanup_fd int to_fd = FD_NONE;
	int r = stage_stack_open(lock->sessions_fd, lock->stage_fd, &lock->chain, tree, false, &stack);

	if (r < 0)
		return r;
	close_fd(&stack.mask_fd);
	r = stage_walk(&stack, &visitor);
	/* More than anybody can review. */
	if (r == -E2BIG) {
		job_done(&job);
		return 0;
	}
	if (r == 0)
		choose(&job, linked);
	if (r == 0 && job.name_count)
		r = merge.to_fd = to_fd = stage_live_open(lock->stage_fd, tree);
	if (to_fd >= 0)
		r = stage_merge(&merge);
	*bytes_left = job.bytes_left;
	job_done(&job);
	return r;
}

/* Files are stamped with the time of the last tick, or a later one. */
static uint64_t wait_for_tick(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	uint64_t end_ns = clock_realtime_ns() + 1, tick_ns;
	struct timespec tick;

	do {
		nanosleep(&moment, NULL);
		clock_gettime(CLOCK_REALTIME_COARSE, &tick);
		tick_ns = (uint64_t)tick.tv_sec * NS_PER_S + (uint64_t)tick.tv_nsec;
	} while (tick_ns < end_ns);
	return end_ns;
}

int stage_relink(const struct stage_lock *lock, struct stage_linked *ret_linked, struct err *err)
{
	uint64_t bytes_left = STAGE_LINKED_BYTES_MAX;
	struct stage_linked linked = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < lock->record.tree_count; i++)
		r = relink_tree(lock, i, &bytes_left, &linked);
	/* Whoever begins on this session's layers finds the same there. */
	if (r == 0)
		r = stage_linked_note(lock->stage_fd);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "stage", "hard links cannot be kept: %s",
			       err_errno_name(-r));
	if (linked.kept)
		linked.done_ns = wait_for_tick();
	*ret_linked = linked;
	return 0;
}
