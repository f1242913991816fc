/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files as they are: opened and described. Part of atoll-files, which runs it inside; it changes nothing but what an
 * open makes.
 */

#include "inside.h"

/* An operation, behind the judgement of its paths: 0, or a positive errno; what is told of it goes into inside->out. */
int look_open(struct inside *inside, const char *path, const char *to);
int look_stat(struct inside *inside, const char *path, const char *to);

/* Of whom the description is: dir_fd names it (O_PATH), or with a name its directory. */
struct entry {
	int dir_fd;
	const char *name;        /* NULL: dir_fd itself */
	struct stat status;
	bool has_attributes;     /* wanted, too */
};

/* What ATOLL_ENTRY says of it, as fields behind what is in out. */
void entry_put(struct inside *inside, struct buf *out, const struct entry *entry);
