/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of atoll-files: the root of the sandbox, the request in hand, and what is kept between two of them. One
 * process, no threads. Everything that it meets in the file system is hostile.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "wire/files.h"

enum {
	OBJECT_NOFOLLOW = 1 << 0, /* a link at the end is the object */
	OBJECT_MISSING = 1 << 1,  /* it need not be there, nor those above it */
	OBJECT_NAME = 1 << 2,     /* a name in a directory, whatever stands there */
};

/* Where a path leads: a directory or an object, and what of the path is missing below it. */
struct place {
	int fd;                  /* owned: O_PATH; FD_NONE: not found yet */
	char rest[4096];         /* "": fd is the object */
	struct stat status;      /* of fd */
};

struct walk;

struct inside {
	int root_fd, net;        /* net: 1: the network is the sandbox's */
	struct buf in, out, rows;
	struct walk *walks;      /* owned; NULL: none (tree.c) */
	struct files_request request;
	uint64_t ticket;
	struct place places[2];
	int result_fd;           /* owned: goes with the reply */
};
