/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/record/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

static struct stamp stamp_of(struct timespec time)
{
	return (struct stamp){ .seconds = time.tv_sec, .ns = (uint32_t)time.tv_nsec };
}

struct timespec stamp_to_timespec(struct stamp stamp)
{
	return (struct timespec){ .tv_sec = (time_t)stamp.seconds, .tv_nsec = (long)stamp.ns };
}

bool stamp_equal(struct stamp a, struct stamp b)
{
	return a.seconds == b.seconds && a.ns == b.ns;
}

void identity_of_stat(const struct stat *st, struct identity *ret_identity)
{
	*ret_identity = (struct identity){
		.mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid, .links = (uint32_t)st->st_nlink,
		.inode = st->st_ino, .size = (uint64_t)st->st_size,
		.mtime = stamp_of(st->st_mtim), .ctime = stamp_of(st->st_ctim), .atime = stamp_of(st->st_atim),
	};
}

int identity_at(int dir_fd, const char *name, struct identity *ret_identity)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		identity_of_stat(&st, ret_identity);
		return 0;
	}
	if (errno != ENOENT)
		return -errno;
	*ret_identity = (struct identity){ 0 };
	return 0;
}

bool identity_equal(const struct identity *a, const struct identity *b)
{
	if ((a->mode & S_IFMT) != (b->mode & S_IFMT) || a->inode != b->inode)
		return false;
	if (S_ISDIR(a->mode) || !a->mode)
		return true;
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid && a->size == b->size &&
	       stamp_equal(a->mtime, b->mtime);
}
