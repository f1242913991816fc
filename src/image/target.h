/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder: systems for sandboxes (`atoll run --root`), unpacked from what others made: a tarball, a directory, an
 * OCI image layout, what `docker save` writes. All of it is hostile; atoll-template confines itself before it reads a
 * byte. target.h is where it goes, layer.h unpacks one archive, tree.h copies a directory, bundle.h knows which layers
 * an image has.
 *
 * A target is a directory in which no name leads out: every path is resolved by the kernel as if the directory were the
 * root (RESOLVE_IN_ROOT), so that links of an image mean what they mean in the image. Owners, set-id bits, extended
 * attributes and device nodes are not taken: in a sandbox all of it belongs to one user.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"

enum { IMAGE_ENTRIES_MAX = 2000000 };
#define IMAGE_BYTES_MAX (UINT64_C(64) << 30) /* holes count as well */

struct image_counts {
	uint64_t files, directories, links, bytes;
	uint64_t left_out;           /* device nodes, sockets, pipes */
};

/* How commands run in an image, where it says so: what `docker save` and layouts have in their config. */
struct image_config {
	struct buf env;              /* NAME=value NUL … */
	char cwd[PATH_MAX];          /* absolute; "": it says nothing */
};

enum { IMAGE_ENV_MAX = 32 << 10 };

struct image_target {
	int root_fd;                 /* borrowed */
	struct image_counts counts;
	struct hash_stream identity; /* of all that was done, in its order */
	struct image_config *config; /* borrowed; NULL: nobody wants it */
	/* Called after each entry; NULL: nobody is told. */
	void (*progress)(const struct image_counts *counts);
};

/* An empty target; root_fd (O_PATH will do) is borrowed for its life. Nothing has to be freed. */
void image_target_init(struct image_target *target, int root_fd);

/*
 * A name of an archive as a path of the target: without "." and slashes at its ends. 1; 0: it is the root itself;
 * -EINVAL: it has "..", which no image needs; -ENAMETOOLONG.
 */
int image_path(const char *name, char out[PATH_MAX]) MUST_USE;

/*
 * Each takes the place of what is there; directories above are made where they are missing. path: as image_path() gives
 * it. 0; -E2BIG beyond IMAGE_ENTRIES_MAX; -errno of the file system. A directory that is there keeps what is in it, and
 * its owner can always read and change it.
 */
int image_put_directory(struct image_target *target, const char *path, mode_t mode) MUST_USE;
int image_put_symlink(struct image_target *target, const char *path, const char *text) MUST_USE;

/* A second name of the file at `to`; -EINVAL: that is no file of the target. */
int image_put_link(struct image_target *target, const char *path, const char *to) MUST_USE;

/* A new empty file for image_write(). The fd, owned by the caller. */
int image_put_file(struct image_target *target, const char *path, mode_t mode) MUST_USE;

/* Bytes of that file at an offset. *end: how far it has been written, 0 at first. -EFBIG beyond IMAGE_BYTES_MAX. */
int image_write(struct image_target *target, int fd, const void *bytes, size_t size, uint64_t offset,
		uint64_t *end) MUST_USE;

/* Takes a name away with all that is below it; one that is not there is no error. */
int image_remove(struct image_target *target, const char *path) MUST_USE;

/* The same with what is in a directory, which stays. */
int image_empty(struct image_target *target, const char *path) MUST_USE;

/*
 * Adds what a sandbox needs of any system: places for what is mounted, two files that are shown another way, a setting
 * for apt, where it is, and a sudo that starts its command as it is, for the one user is uid 0 already.
 */
int image_complete(struct image_target *target) MUST_USE;
