/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The merged walk: what a stack of layers shows at each path, beside what the host has there. Hostile to the
 * reader by assumption: it works with fds only, on the heap and not on the C stack, holds few fds whatever the depth,
 * and ends at its limits. Reads nothing but directories, file status and attributes. Used by atoll-stage, and by
 * atoll-box to count.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "stage/layer/layer.h"

enum {
	STAGE_WALK_DEPTH_MAX = 4096,          /* directories in one another */
	STAGE_WALK_ENTRIES_MAX = 8 << 20,     /* entries in the whole tree */
	STAGE_WALK_DIRECTORY_MAX = 2 << 20,   /* names in one directory */
	STAGE_WALK_FDS_MAX = 384,             /* open at a time, about; never less than one level needs */
};

enum stage_entry_kind {
	STAGE_ENTRY_FILE,        /* a layer has something that is no directory: staged tells what */
	STAGE_ENTRY_DIRECTORY,
	STAGE_ENTRY_WHITEOUT,    /* a layer says that nothing is here */
	STAGE_ENTRY_HIDDEN,      /* no layer has it, and it does not show through: below what is opaque or gone */
};

/* Why something below an entry was not looked at. */
enum stage_walk_trouble {
	STAGE_WALK_FINE,
	STAGE_WALK_TOO_DEEP,     /* STAGE_WALK_DEPTH_MAX */
	STAGE_WALK_UNREADABLE,   /* a directory that the caller may not read: errnum tells */
	STAGE_WALK_CHANGED,      /* it became something else while it was read */
	STAGE_WALK_MOUNT,        /* on the host another file system is mounted there */
};

/* One path. Everything is borrowed for the length of the call. */
struct stage_entry {
	const char *path;            /* relative to the tree, "" for its root; bytes without '\0' */
	const char *name;            /* the last component */
	size_t depth;                /* 0: the root */
	enum stage_entry_kind kind;
	/* Directories: nothing of the host shows through below. In enter() as far as the deciding layer tells. */
	bool is_opaque;
	struct stat staged;          /* of the deciding layer; STAGE_ENTRY_FILE and _DIRECTORY */
	struct stage_marks marks;    /* the same; filled for directories and regular files */
	size_t layer;                /* index into the stack of the deciding layer; whiteouts too */
	int layer_dir_fd;            /* the directory in that layer in which name is; FD_NONE for HIDDEN */
	bool host_exists;
	struct stat host;
	int host_dir_fd;             /* the directory on the host in which name may be; FD_NONE where there is none */
	bool is_masked;              /* the mask layer hides this name of the host */
	enum stage_walk_trouble trouble; /* in leave(): nothing or not everything below was looked at */
	int errnum;                  /* positive, with STAGE_WALK_UNREADABLE */
};

enum { STAGE_WALK_SKIP = 1 };

struct stage_visitor {
	/* Before what is below. 0: go on; STAGE_WALK_SKIP: not below this one (leave() comes all the same); negative
	 * ends the walk. */
	int (*enter)(void *context, const struct stage_entry *entry);
	/*
	 * After what is below, for entries that have or could have had something below: a directory in a layer or on
	 * the host. May be NULL.
	 */
	int (*leave)(void *context, const struct stage_entry *entry);
	void *context;
};

/*
 * Walks the stack depth first, the names of a directory in the order of their bytes, beginning with the root
 * itself. Without a host (stack->host_fd is FD_NONE) it is the layers alone. Costs are proportional to what the layers
 * hold and to what they hide, not to the size of the tree. 0; -E2BIG at a limit; what a visitor returned; -errno.
 */
int stage_walk(const struct stage_stack *stack, const struct stage_visitor *visitor) MUST_USE;
