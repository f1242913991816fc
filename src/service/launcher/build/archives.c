/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/archives.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"

enum { PART_AGE_MAX_S = 86400, NS_PER_S = 1000000000, ARCHIVES_MAX = 256 };

bool archives_hash_is_valid(const char *hash)
{
	return strlen(hash) == HASH_HEX_SIZE - 1 && strspn(hash, "0123456789abcdef") == HASH_HEX_SIZE - 1;
}

/* The directory of an owner, made where it is missing. A name of an owner may be any text: its hash is the name. */
static int open_directory(const char *directory, const char *owner)
{
	char path[PATH_MAX], hex[HASH_HEX_SIZE];
	struct hash_stream stream;
	struct hash hash;
	int r;

	hash_stream_begin(&stream);
	hash_stream_add(&stream, owner, strlen(owner));
	hash_stream_end(&stream, &hash);
	hash_to_hex(&hash, hex);
	r = str_format(path, sizeof path, "%s/archives/%.32s", directory, hex);
	if (r == 0)
		r = path_make_directories(AT_FDCWD, path, 0700);
	return r < 0 ? r : fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

int archives_open(const char *directory, const char *owner, const char *hash)
{
	cleanup_fd int dir_fd = open_directory(directory, owner);

	if (dir_fd < 0)
		return dir_fd;
	return archives_hash_is_valid(hash) ? fd_open_at(dir_fd, hash, O_RDONLY | O_NOFOLLOW, 0) : -ENOENT;
}

int archives_has(const char *directory, const char *owner, const char *hash)
{
	cleanup_fd int fd = archives_open(directory, owner, hash);

	if (fd == -ENOENT)
		return 0;
	return fd < 0 ? fd : futimens(fd, NULL) < 0 ? -errno : 1;
}

int archives_begin(const char *directory, const char *owner, char part[CREDENTIAL_ID_SIZE])
{
	cleanup_fd int dir_fd = open_directory(directory, owner);
	int r = dir_fd < 0 ? dir_fd : credential_new_id(part);

	return r < 0 ? r : fd_open_at(dir_fd, part, O_WRONLY | O_CREAT | O_EXCL, 0600);
}

/* ---- bounds ---- */

struct oldest {
	char name[HASH_HEX_SIZE];
	struct timespec at;
};

/* All that is there; parts that nobody finished go, and *oldest is the archive that was not used for the longest. */
static uint64_t look(int dir_fd, const char *kept, struct oldest *oldest, size_t *count)
{
	int64_t now_s = (int64_t)(clock_realtime_ns() / NS_PER_S);
	int fd = fd_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint64_t bytes = 0;

	*count = 0;
	oldest->name[0] = 0;
	while (listing && (entry = readdir(listing))) {
		struct stat st;

		if (entry->d_name[0] == '.' || fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bytes += (uint64_t)st.st_size;
		++*count;
		if (!archives_hash_is_valid(entry->d_name)) {
			if (st.st_mtim.tv_sec + PART_AGE_MAX_S < now_s)
				(void)!unlinkat(dir_fd, entry->d_name, 0);
		} else if (!str_equal(entry->d_name, kept) &&
			   (!oldest->name[0] || st.st_mtim.tv_sec < oldest->at.tv_sec)) {
			oldest->at = st.st_mtim;
			memcpy(oldest->name, entry->d_name, sizeof oldest->name);
		}
	}
	if (listing)
		closedir(listing);
	else
		close_fd(&fd);
	return bytes;
}

static void trim(int dir_fd, const char *kept)
{
	struct oldest oldest;
	size_t count;

	while ((look(dir_fd, kept, &oldest, &count) > ARCHIVES_BYTES_MAX || count > ARCHIVES_MAX) && oldest.name[0])
		if (unlinkat(dir_fd, oldest.name, 0) < 0)
			return;
}

int archives_commit(const char *directory, const char *owner, const char *hash, const char *part, uint64_t size)
{
	cleanup_fd int dir_fd = open_directory(directory, owner);
	struct stat st;

	if (dir_fd < 0)
		return dir_fd;
	if (strchr(part, '/') || fstatat(dir_fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -ENOENT;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size) {
		(void)!unlinkat(dir_fd, part, 0);
		return -EBADMSG;
	}
	if (renameat(dir_fd, part, dir_fd, hash) < 0)
		return -errno;
	trim(dir_fd, hash);
	return 0;
}
