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
#include "os/fd.h"
#include "os/path.h"

enum { ARCHIVES_MAX = 256 };

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

/* ---- bounds ---- */

struct content {
	uint64_t bytes;
	size_t count;
	char oldest[HASH_HEX_SIZE];      /* that was not used for the longest; "": none */
	struct timespec at;
};

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* What an owner has of archives, or of parts; kept: is never the oldest. */
static struct content look(int dir_fd, bool is_part, const char *kept)
{
	struct content content = { .oldest = "" };
	int fd = fd_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (listing && (entry = readdir(listing))) {
		struct stat st;

		if (entry->d_name[0] == '.' || archives_hash_is_valid(entry->d_name) == is_part ||
		    fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		content.bytes += (uint64_t)st.st_size;
		content.count++;
		if (!str_equal(entry->d_name, kept) && (!content.oldest[0] || is_before(&st.st_mtim, &content.at)) &&
		    str_copy(content.oldest, sizeof content.oldest, entry->d_name) == 0)
			content.at = st.st_mtim;
	}
	if (listing)
		closedir(listing);
	else
		close_fd(&fd);
	return content;
}

/* Until there are so few, the oldest first. What somebody writes to a part that goes is freed when it is closed. */
static void trim(int dir_fd, bool is_part, const char *kept, uint64_t bytes_max, size_t count_max)
{
	for (;;) {
		struct content content = look(dir_fd, is_part, kept);

		if ((content.bytes <= bytes_max && content.count <= count_max) || !content.oldest[0] ||
		    unlinkat(dir_fd, content.oldest, 0) < 0)
			return;
	}
}

/* ---- parts ---- */

int archives_begin(const char *directory, const char *owner, char part[CREDENTIAL_ID_SIZE])
{
	cleanup_fd int dir_fd = open_directory(directory, owner);
	int r = dir_fd < 0 ? dir_fd : credential_new_id(part);

	if (r < 0)
		return r;
	trim(dir_fd, true, "", UINT64_MAX, PARTS_MAX - 1);
	return fd_open_at(dir_fd, part, O_WRONLY | O_CREAT | O_EXCL, 0600);
}

/* A part is named as archives_begin() names one: nothing else of the directory may be meant. */
static bool part_is_valid(const char *part)
{
	return *part && *part != '.' && !strchr(part, '/') && !archives_hash_is_valid(part);
}

int archives_drop(const char *directory, const char *owner, const char *part)
{
	cleanup_fd int dir_fd = open_directory(directory, owner);

	if (dir_fd < 0)
		return dir_fd;
	if (!part_is_valid(part))
		return -EINVAL;
	return unlinkat(dir_fd, part, 0) < 0 && errno != ENOENT ? -errno : 0;
}

void archives_drop_all(const char *directory)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *owners = path_join(path, sizeof path, directory, "archives") < 0 ? NULL : opendir(path);

	while (owners && (entry = readdir(owners))) {
		cleanup_fd int dir_fd = entry->d_name[0] == '.' ? FD_NONE :
				fd_open_at(dirfd(owners), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		if (dir_fd >= 0)
			trim(dir_fd, true, "", UINT64_MAX, 0);
	}
	if (owners)
		closedir(owners);
}

int archives_commit(const char *directory, const char *owner, const char *hash, const char *part, uint64_t size)
{
	cleanup_fd int dir_fd = open_directory(directory, owner);
	struct stat st;

	if (dir_fd < 0)
		return dir_fd;
	if (!part_is_valid(part) || fstatat(dir_fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -ENOENT;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size) {
		(void)!unlinkat(dir_fd, part, 0);
		return -EBADMSG;
	}
	if (renameat(dir_fd, part, dir_fd, hash) < 0)
		return -errno;
	trim(dir_fd, false, hash, ARCHIVES_BYTES_MAX, ARCHIVES_MAX);
	return 0;
}
