/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a file is still what it was when something was made from it, told by stat(2) alone; and the private files
 * in which what was made is kept from one run to the next. Run by atoll and its box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* What stat(2) said of it; zeroed: it was not there. */
struct seen {
	bool exists;
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
};

/* A time of stat(2) as nanoseconds since 1970, negative before. */
int64_t seen_time_ns(struct timespec time);

/* 0 also where it is not there; -errno where that cannot be told. */
int seen_look(const char *path, struct seen *ret_seen) MUST_USE;

/*
 * Whether it is the same now. made_ns: when what was made from it was written, by the clock of the file system. What
 * changed within two seconds before that may have changed once more in the same tick: then it is not.
 */
bool seen_is_fresh(const char *path, const struct seen *then, int64_t made_ns);

/*
 * A file that was kept: regular, the caller's alone (0600, its own uid, one name), of 1 to max bytes. An fd to read
 * from, owned by the caller, with *ret_st; -EPERM for any other file, -EFBIG, -errno.
 */
int seen_open_kept(const char *path, size_t max, struct stat *ret_st) MUST_USE;

/*
 * Keeps bytes at path, in a directory that is made where needed (0700). With more than entries_max files in it all of
 * them go first. Readers see all or nothing.
 */
int seen_keep(const char *path, const void *bytes, size_t size, size_t entries_max) MUST_USE;
