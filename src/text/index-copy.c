/* SPDX-License-Identifier: Apache-2.0 */
#include "text/index-copy.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

enum { INDEX_MAX = 512 << 20 };

struct index_copy {
	git_index *index;
	struct timespec written;     /* mtime of the index that was copied */
	bool was_there;
};

void index_copy_free(struct index_copy *copy)
{
	if (!copy)
		return;
	git_index_free(copy->index);
	free(copy);
}

static int write_bytes(const char *path, const char *bytes, size_t size)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	return fd < 0 ? fd : fd_write_full(fd, bytes, size);
}

static int copy_file(struct index_copy *copy, const char *from, const char *to)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	cleanup_free char *bytes = NULL;
	struct stat st;
	size_t size;
	int r;

	if (unlinkat(AT_FDCWD, to, 0) < 0 && errno != ENOENT)
		return -errno;
	if (fd == -ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if (!S_ISREG(st.st_mode))
		return -ERANGE;
	r = fd_read_sized(fd, st.st_size, INDEX_MAX, &bytes, &size);
	copy->written = st.st_mtim;
	copy->was_there = true;
	return r < 0 ? r : write_bytes(to, bytes, size);
}

static bool is_since(const git_index_time *time, const struct timespec *written)
{
	return time->seconds > (int32_t)written->tv_sec ||
	       (time->seconds == (int32_t)written->tv_sec && time->nanoseconds >= (uint32_t)written->tv_nsec);
}

/*
 * git compares the bytes of a file that was changed when its index was written or later ("racily clean"). The new index
 * is younger, and git would believe the times of such files. A size of 0 has it compare them
 * (Documentation/technical/racy-git.txt).
 */
static int distrust_racy(struct index_copy *copy)
{
	for (size_t i = 0; copy->was_there && i < git_index_entrycount(copy->index); i++) {
		git_index_entry entry = *git_index_get_byindex(copy->index, i);

		if (!entry.file_size || !S_ISREG(entry.mode) || !is_since(&entry.mtime, &copy->written))
			continue;
		entry.file_size = 0;
		if (git_index_add(copy->index, &entry) < 0)
			return -EIO;
	}
	return 0;
}

int index_copy_open(const char *index_path, const char *copy_path, struct index_copy **ret_copy)
{
	struct index_copy *copy = calloc(1, sizeof *copy);
	int r = copy ? copy_file(copy, index_path, copy_path) : -ENOMEM;

	if (r == 0 && git_index_open(&copy->index, copy_path) < 0)
		r = -ERANGE;
	if (r == 0 && git_index_has_conflicts(copy->index))
		r = -EUCLEAN;
	if (r == 0)
		r = distrust_racy(copy);
	if (r < 0)
		index_copy_free(copy);
	else
		*ret_copy = copy;
	return r;
}

bool index_copy_find(const struct index_copy *copy, const char *path, struct commit_file *ret_file)
{
	const git_index_entry *entry = git_index_get_bypath(copy->index, path, 0);

	if (!entry)
		return false;
	ret_file->mode = entry->mode;
	memcpy(ret_file->id, entry->id.id, sizeof ret_file->id);
	return true;
}

int index_copy_put(struct index_copy *copy, const char *path, const struct commit_file *file, const struct stat *st)
{
	/* gitformat-index(5): all of these are cut to 32 bits. */
	git_index_entry entry = {
		.ctime = { (int32_t)st->st_ctim.tv_sec, (uint32_t)st->st_ctim.tv_nsec },
		.mtime = { (int32_t)st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec },
		.dev = (uint32_t)st->st_dev, .ino = (uint32_t)st->st_ino, .mode = file->mode, .uid = st->st_uid,
		.gid = st->st_gid, .file_size = (uint32_t)st->st_size, .path = path,
	};

	memcpy(entry.id.id, file->id, sizeof file->id);
	return git_index_add(copy->index, &entry) < 0 ? -EINVAL : 0;
}

int index_copy_remove(struct index_copy *copy, const char *path)
{
	if (!git_index_get_bypath(copy->index, path, 0))
		return 0;
	return git_index_remove(copy->index, path, 0) < 0 ? -EINVAL : 0;
}

int index_copy_store(struct index_copy *copy)
{
	return git_index_write(copy->index) < 0 ? -EIO : 0;
}
