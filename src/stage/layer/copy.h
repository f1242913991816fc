/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies one file, symbolic link or directory (without its entries) from one open directory into another. It never
 * follows a link, never opens a FIFO, socket or device, and notices a file that changes while it is read. Nothing is
 * synced here. Used for what an apply brings to the host, for what it keeps, and for copies of layers.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "stage/layer/closed.h"
#include "stage/record/identity.h"

enum copy_kind {
	/* From a layer to the host: set-id bits and user.overlay.* stay behind, user.* comes along, owner as given. */
	COPY_TO_HOST,
	/* Exactly as it is, as far as privilege goes: all xattrs, the owner, set-id bits; whiteouts (char 0:0) too. */
	COPY_EXACT,
};

/* Whose ACL it gets. */
enum copy_acl {
	COPY_ACL_NONE,
	COPY_ACL_SOURCE,
	COPY_ACL_REPLACED,
};

struct copy {
	int from_fd;             /* borrowed: the directory that holds from */
	const char *from;        /* one component */
	int to_fd;               /* borrowed */
	const char *to;          /* one component that must not exist */
	enum copy_kind kind;
	bool gives_owner;        /* COPY_TO_HOST as root: the copy belongs to uid:gid */
	uid_t uid;
	bool gives_group;        /* COPY_TO_HOST: as a user, where he may; with gives_owner it is given anyway */
	gid_t gid;
	bool makes_as_owner;     /* root: the entry is made with uid and gid as ids for files (os/identity.h) */
	mode_t more_mode;        /* COPY_TO_HOST: of a directory, beside the mode that it has */
	const struct stage_closed *closed; /* borrowed: directories whose modes are lent; NULL: none */
	/* COPY_TO_HOST: what it takes the place of, whose label it keeps; FD_NONE: nothing like it. Borrowed. */
	int replaced_fd;
	enum copy_acl acl;       /* COPY_TO_HOST */
	/* Results, set by copy_entry() on COPY_MADE. */
	struct identity source;  /* of what was copied */
	struct identity made;
	bool lost_set_id;        /* a set-id bit was left behind */
};

/* Outcomes of copy_entry(). */
enum {
	COPY_MADE = 0,
	COPY_CHANGED = 1,        /* the file changed while it was read, three times over; nothing is left behind */
	COPY_REFUSED = 2,        /* neither file, link nor directory */
};

/*
 * Makes the copy. Reflink where the file system has it, else copy_file_range(2) or read and write; holes stay holes
 * (SEEK_HOLE, lseek(2)). On failure (-errno) nothing is left at the destination. Needs no privilege, but the
 * owner of other files is kept only by root. At most the size that the file had when it was opened is read.
 */
int copy_entry(struct copy *copy) MUST_USE;
