/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a staged file and the host's are alike: bytes, link targets, user.* attributes. Both sides are opened by
 * name in a directory fd and must be what was seen before. Within stage/ only.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* One side: the file called name in dir_fd, as st says that it was. */
struct compare_side {
	int dir_fd;
	const char *name;
	const struct stat *st;
};

struct compare {
	uint8_t *buffers;      /* owned; made on first use */
	uint64_t budget_bytes; /* of what may still be read; UINT64_MAX: no limit */
};

/* Frees the buffers; the budget stays used. */
void compare_done(struct compare *compare);

/* The regular file, O_RDONLY, without following a link. -ESTALE when it is another one by now. */
int compare_open(const struct compare_side *side) MUST_USE;

/*
 * Whether two regular files of the same size have the same bytes: 1, 0; -EDQUOT when the budget does not suffice,
 * -ESTALE, -EACCES, -errno.
 */
int compare_files(struct compare *compare, const struct compare_side *a, const struct compare_side *b) MUST_USE;

/* Whether two symbolic links have the same target: 1, 0, -errno. */
int compare_links(const struct compare_side *a, const struct compare_side *b) MUST_USE;

/* Whether the attributes that are wanted are the same: 1, 0, -errno. */
int compare_xattrs(const struct compare_side *a, const struct compare_side *b,
		   bool (*is_wanted)(const char *name)) MUST_USE;
