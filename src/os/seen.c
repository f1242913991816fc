/* SPDX-License-Identifier: Apache-2.0 */
#include "os/seen.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

enum { NS_PER_S = 1000000000 };

int64_t seen_time_ns(struct timespec time)
{
	return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}

int seen_look(const char *path, struct seen *ret_seen)
{
	struct stat st;

	*ret_seen = (struct seen){ .exists = false };
	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	*ret_seen = (struct seen){
		.exists = true, .device = st.st_dev, .inode = st.st_ino, .size = (uint64_t)st.st_size,
		.mtime_ns = seen_time_ns(st.st_mtim), .ctime_ns = seen_time_ns(st.st_ctim),
	};
	return 0;
}

/* git calls an entry that changed within the tick racily clean. ctime, since utimes(2) cannot set it. */
bool seen_is_fresh(const char *path, const struct seen *then, int64_t made_ns)
{
	struct seen now;

	if (seen_look(path, &now) < 0 || now.exists != then->exists)
		return false;
	return !now.exists ||
	       (now.device == then->device && now.inode == then->inode && now.size == then->size &&
		now.mtime_ns == then->mtime_ns && now.ctime_ns == then->ctime_ns &&
		now.ctime_ns < made_ns - 2LL * NS_PER_S);
}

int seen_open_kept(const char *path, size_t max, struct stat *ret_st)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret_st) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode) || ret_st->st_uid != geteuid() || (ret_st->st_mode & 07777) != 0600 ||
	    ret_st->st_nlink != 1)
		return -EPERM;
	if (ret_st->st_size <= 0 || (uint64_t)ret_st->st_size > max)
		return -EFBIG;
	return take_fd(&fd);
}

static void prune(const char *directory, size_t entries_max)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	size_t count = 0;

	if (!dir)
		return;
	while (readdir(dir))
		count++;
	rewinddir(dir);
	while (count > entries_max && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
}

int seen_keep(const char *path, const void *bytes, size_t size, size_t entries_max)
{
	char directory[PATH_MAX];
	int r = str_copy(directory, sizeof directory, path);

	if (r < 0)
		return r;
	*strrchr(directory, '/') = 0;
	r = path_make_directories(AT_FDCWD, directory, 0700);
	if (r < 0)
		return r;
	prune(directory, entries_max);
	return fd_replace_file_at(AT_FDCWD, path, bytes, size, 0600);
}
