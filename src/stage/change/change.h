/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder: the judgement. compare.h has the bytes and attributes of two files, seen.h what the host was at the
 * start, repositories.h where git repositories are, difference.h the numbers of a comparison.
 *
 * What a session would do to the host: the merged walk of a staged tree, judged path by path against the host as it is
 * now (doc/format/stage.md has the table). Decides what is a change, what is a conflict and what is never applied; it
 * writes nothing and shows nothing. Policy comes in by callbacks, for the box counts with this code too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "stage/layer/layer.h"
#include "stage/layer/walk.h"

struct json;

enum stage_change_kind {
	STAGE_ADDED,
	STAGE_MODIFIED,       /* also where the type differs */
	STAGE_DELETED,
	STAGE_CHANGE_KIND_COUNT,
};

/* Whether it can be applied. */
enum stage_change_state {
	STAGE_CLEAN,
	STAGE_CONFLICT,       /* both sides changed: the person decides */
	STAGE_REFUSED,        /* never applied */
	STAGE_SYSTEM,         /* of the sandbox's own system: never applied, stays with the session */
	STAGE_CHANGE_STATE_COUNT,
};

enum stage_reason {
	STAGE_REASON_NONE,
	/* of conflicts */
	STAGE_HOST_CHANGED,   /* changed on the host since the start */
	STAGE_HOST_DELETED,   /* deleted on the host; the sandbox changed it */
	STAGE_HOST_ADDED,     /* the sandbox made it anew, and on the host it was added or changed since */
	STAGE_BELOW,          /* a directory that has to stay because of something below it */
	STAGE_ABOVE,          /* a directory above it cannot be made */
	/* of refusals */
	STAGE_FIFO,
	STAGE_SOCKET,
	STAGE_DEVICE,
	STAGE_FORGED,         /* attributes that only the overlay itself may set */
	STAGE_MASKED,         /* a name that the policy masks */
	STAGE_MOUNT,          /* another file system is mounted there on the host */
	STAGE_RESERVED,       /* a name in the root that apply itself uses: STAGE_RESERVED_PREFIX */
	STAGE_TOO_DEEP,
	STAGE_UNREADABLE,     /* the caller may not read it, on either side */
	STAGE_RACED,          /* it changed while it was read */
	STAGE_REASON_COUNT,
};

extern const char *const stage_change_kind_names[STAGE_CHANGE_KIND_COUNT];   /* "added", … */
extern const char *const stage_change_state_names[STAGE_CHANGE_STATE_COUNT]; /* "clean", "conflict", "refused" */
extern const char *const stage_reason_names[STAGE_REASON_COUNT];             /* "host-changed", … for --json */
extern const char *const stage_reason_texts[STAGE_REASON_COUNT];             /* for people */

/* What differs, of STAGE_MODIFIED. */
enum {
	STAGE_DIFFERS_TYPE = 1 << 0,
	STAGE_DIFFERS_CONTENT = 1 << 1,  /* or may: sizes or times differ and the bytes were not compared */
	STAGE_DIFFERS_MODE = 1 << 2,
	STAGE_DIFFERS_MTIME = 1 << 3,
	STAGE_DIFFERS_XATTRS = 1 << 4,   /* stage/layer/attributes.h */
	STAGE_DIFFERS_OWNER = 1 << 5,    /* what is applied belongs to stage_change.owner; never alone */
};

struct stage_change {
	size_t tree;                     /* index into the record */
	const char *path;                /* relative to the tree; "" is its root */
	enum stage_change_kind kind;     /* what the sandbox did */
	enum stage_change_state state;
	enum stage_reason reason;
	unsigned differs;                /* STAGE_DIFFERS_* */
	bool is_flagged;                 /* protected: applied only when the person names it */
	bool is_settled;                 /* a conflict about which a person has decided, that the host's stays */
	bool is_copied_up;
	bool staged_exists, host_exists;
	struct stat staged;              /* where staged_exists; ids are those of the layer */
	struct stat host;                /* where host_exists: what the judgement rests on; compare before writing */
	uid_t owner;                     /* with STAGE_DIFFERS_OWNER: whose file it will be */
	size_t layer;                    /* of the stack: where the staged bytes are */
	/* Only in the callback of stage_changes_walk(): the directories that hold it; FD_NONE where there is none. */
	int staged_dir_fd, host_dir_fd;
};

struct stage_change_options {
	size_t tree;                     /* index, handed through to each change */
	uint64_t start_ns;               /* stage_record_start_ns() */
	bool exact_content;              /* compare bytes whenever sizes agree, so that STAGE_DIFFERS_CONTENT is sure */
	/* Whose a file will be that the sandbox made anew, once it is applied; (uid_t)-1: nobody looks at that. */
	uid_t owner;
	/* It is a tree of the sandbox's own system: all of its changes are STAGE_SYSTEM, and no policy is asked. */
	bool is_system;
	/* NULL or: only these paths (relative to the tree, normalised; "" is all) and what is below them. */
	const char *const *paths;
	size_t path_count;
	/* Policy. path is relative to the tree; of refused changes nobody asks. May be NULL. */
	bool (*is_flagged)(void *context, const struct stage_change *change);
	bool (*is_masked)(void *context, const char *path);
	/* Whether the host's file is exactly what an earlier apply of this session left there. May be NULL. */
	bool (*is_own)(void *context, const char *path, const struct stat *host);
	/*
	 * Whether it is what was there at the start, given back by an undo of another session: new ctimes, and the rest
	 * is old. Means nothing below a directory that is another. May be NULL.
	 */
	bool (*is_restored)(void *context, const char *path, const struct stat *host);
	/*
	 * Whether the host's directory is one that note_seen() was told of: the one that was there at the start. Asked
	 * only where ctimes do not tell. May be NULL.
	 */
	bool (*is_seen)(void *context, const struct stage_entry *entry);
	/* Whether note_seen() was told of something of the host's at this path. May be NULL. */
	bool (*was_seen)(void *context, const char *path);
	/*
	 * Told each directory of the host, but the root, that is sure to be the one of the start, and each file of the
	 * start that the sandbox has replaced by one that it made. May be NULL.
	 */
	void (*note_seen)(void *context, const struct stage_entry *entry);
	/* Whether a conflict between these two sides (NULL: not there) was settled before. May be NULL. */
	bool (*is_settled)(void *context, const char *path, const struct stat *host, const struct stat *staged);
	void *context;
};

/*
 * Calls on_change for each change of one tree, in a fixed order: names by their bytes; a directory comes before what is
 * added or modified below it and after what is deleted below it; what stood below a directory that became
 * a file comes (deleted) before the file. A deleted directory is STAGE_CLEAN only if all below it is. A directory
 * that cannot be read to its end comes (once more) as STAGE_REFUSED behind what is below it.
 * 0; -E2BIG at a limit of the walk; what on_change returned when negative; -errno.
 */
int stage_changes_walk(const struct stage_stack *stack, const struct stage_change_options *options,
		       int (*on_change)(void *context, const struct stage_change *change), void *context) MUST_USE;

/* The same as a list; paths are owned by it. */
struct stage_changes {
	struct stage_change *items;
	size_t count, capacity;
	struct stage_path_block *paths;
};

enum { STAGE_CHANGES_MAX = 4 << 20 };

/* Appends the changes of one tree. -E2BIG beyond STAGE_CHANGES_MAX. May be called for each tree in turn. */
int stage_changes_load(struct stage_changes *changes, const struct stage_stack *stack,
		       const struct stage_change_options *options) MUST_USE;
void stage_changes_done(struct stage_changes *changes);
#define cleanup_stage_changes __attribute__((cleanup(stage_changes_done)))

/*
 * Opens the staged bytes of a change (regular files: O_RDONLY; directories: O_RDONLY | O_DIRECTORY) beneath its
 * layer, and checks that they are what was judged: -ESTALE when another inode, size or type stands there now.
 */
int stage_change_open(const struct stage_stack *stack, const struct stage_change *change) MUST_USE;

/*
 * The same beneath the host's tree, against what stood there when the change was found. -EINVAL: there was nothing.
 * The descriptors of both are the caller's.
 */
int stage_change_open_host(const struct stage_stack *stack, const struct stage_change *change) MUST_USE;

/* Whether two that were opened so have the same attributes, of those that an apply brings: 1, 0, -errno. */
int stage_change_has_same_attributes(int a_fd, int b_fd) MUST_USE;

/* The target of a symbolic link of either side, in out[size]; its length, or -errno (-ESTALE, -ENAMETOOLONG). */
int stage_change_read_link(int dir_fd, const char *name, char *out, size_t size) MUST_USE;

/* Whether it is about a directory on both sides: made, removed, or with another mode. */
bool stage_change_is_directory(const struct stage_change *change);

/* Whether a ctime may be of start_ns or later. A file system that keeps whole seconds has cut it down. */
bool stage_is_since(const struct timespec *ctime, uint64_t start_ns);

/* Whether both are the same file at the same moment: device, inode, type, size, mtime and ctime. */
bool stage_stat_is_same(const struct stat *a, const struct stat *b);

struct stage_counts {
	uint64_t added, modified, deleted;   /* files and links of any state but refused */
	uint64_t directories;                /* made, removed or with another mode; not in the three above */
	uint64_t flagged, conflicts, refused; /* conflicts: those that are not settled */
	uint64_t system;                     /* STAGE_SYSTEM, of any type; in none of the others */
	bool is_cut;                         /* the bound was reached: "at least" */
};

/* Counts one more change, by its state and type; flagged and conflicts beside that. */
void stage_counts_add(struct stage_counts *counts, const struct stage_change *change);

/* Whether there is any change in them. */
bool stage_counts_any(const struct stage_counts *counts);

/* Its numbers as members of the object that was begun; is_cut is said by who counts up to a bound. */
void stage_counts_put(const struct stage_counts *counts, struct json *json);

/*
 * Counts the changes of one tree into *counts (which it adds to), and stops once bound of them were seen in
 * all. For the end of a run: cheap, no bytes are compared beyond 1 MiB in all (what was not counts as modified).
 */
int stage_changes_count(const struct stage_stack *stack, const struct stage_change_options *options, uint64_t bound,
			struct stage_counts *counts) MUST_USE;
