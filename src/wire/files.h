/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the owner of a sandbox asks about its files and ports: one table of operations and their fields, used by
 * libatoll, which asks, by the box, which judges, and by atoll-files, which does it inside; and what the last two say
 * to each other. It decides nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/field.h"

enum files_operation {
	FILES_OPEN = 1, FILES_STAT, FILES_READDIR, FILES_MKDIR, FILES_MOVE, FILES_REMOVE, FILES_SETATTR, FILES_WATCH,
	FILES_UNWATCH, FILES_CONNECT, FILES_OPERATION_COUNT,
};

extern const char *const files_operation_names[FILES_OPERATION_COUNT];

/* A reply of atoll-files, whole: what the box makes of it for a client (LINK_REPLY) has one field more. */
enum { FILES_REPLY_MAX = FRAME_MESSAGE_MAX - 64 };

enum {
	FILES_FD = 3,            /* of atoll-files: its socket to the box */
	FILES_DEPTH_MAX = 64, FILES_ROWS_MAX = 64 << 10, FILES_ATTRIBUTES_MAX = 64 << 10, FILES_WATCHES_MAX = 64,
};

/* "flags", as atoll.h has them. */
enum {
	FILES_OPEN_READ = 1, FILES_OPEN_WRITE = 2, FILES_OPEN_APPEND = 4, FILES_OPEN_CREATE = 8,
	FILES_OPEN_EXCLUSIVE = 16, FILES_OPEN_TRUNCATE = 32, FILES_OPEN_PARENTS = 64,
	FILES_STAT_NOFOLLOW = 1, FILES_STAT_ATTRIBUTES = 2, /* READDIR has the second, too */
	FILES_REMOVE_RECURSIVE = 1,
	FILES_WATCH_RECURSIVE = 1, FILES_WATCH_ENTRIES = 2,
};

/* Bits of struct files_request.set: which of its fields are there. */
enum files_field {
	FILES_HAS_PATH, FILES_HAS_TO, FILES_HAS_FLAGS, FILES_HAS_MODE, FILES_HAS_UID, FILES_HAS_GID, FILES_HAS_MTIME,
	FILES_HAS_NOFOLLOW, FILES_HAS_DEPTH, FILES_HAS_FROM, FILES_HAS_PORT, FILES_HAS_FAMILY, FILES_HAS_WATCH,
	FILES_HAS_ATTRIBUTES, FILES_FIELD_COUNT,
};

struct files_request {
	enum files_operation operation;
	uint32_t set;
	const char *path, *to;   /* borrowed, absolute */
	uint64_t flags, mode, uid, gid, mtime_ns, nofollow, depth, from, port, family, watch;
	char **attributes;       /* owned by who got it: free(); the strings are borrowed */
};

/*
 * put: operation and fields behind what is in out. get: checks both by the table: -EBADMSG for what an operation does
 * not have, lacks or has out of its bounds; -ENOMEM.
 */
void files_request_put(struct buf *out, const struct files_request *request);
int files_request_get(struct frame *frame, struct files_request *ret_request) MUST_USE;

/* Whether it makes, writes, moves or removes something there, or could by what it opens. */
bool files_request_changes(const struct files_request *request);

enum files_message {
	/* box -> atoll-files */
	FILES_BEGIN = 1,         /* u32 uid, u32 gid, u32 whether the box is root's; fds: init's pidfd, its rules */
	FILES_REQUEST,           /* u64 ticket, request */
	FILES_GO,                /* u64 ticket, u32 errno, or 0 and string path, string to (NULL: none): as judged */
	/* atoll-files -> box */
	FILES_READY = 64,        /* it has confined itself */
	FILES_PLACE,             /* u64 ticket, string rest, string rest of to; fds: what path and to lead to, O_PATH */
	FILES_REPLY,             /* u64 ticket, u32 errno, fields; fd: what was opened */
	FILES_CHANGE,            /* u64 watch, fields: "change", … */
};
