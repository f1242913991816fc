/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder: what of a staged session is no layer and no change. Its record (here), who works on its directory
 * (use.h), and what the folders above it share: names of a directory (names.h), tables of paths (paths.h), what a file
 * was when it was looked at (identity.h), small files that are replaced whole (store.h).
 *
 * What a session stages: the file `trees` of its stage directory (doc/format/stage.md), written once by atoll-box
 * before the jail starts, and read by everything that reviews, applies or continues the session. It holds no file's
 * content and no change; those lie in the layers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "os/clock.h"

enum {
	STAGE_TREES_MAX = 64,
	STAGE_BOOT_ID_SIZE = 37,     /* /proc/sys/kernel/random/boot_id, with its NUL */
	STAGE_RECORD_MAX = 1 << 20,  /* bytes of the file */
};

/* Names below the stage directory, and the directory below the session's own. */
#define STAGE_DIRECTORY "stage"
#define STAGE_FILE_TREES "trees"
#define STAGE_FILE_CHAIN "chain"
#define STAGE_DIRECTORY_MASK "mask"
#define STAGE_DIRECTORY_LIVE "live"
#define STAGE_DIRECTORY_LAYERS "layers"
#define STAGE_DIRECTORY_SNAPSHOTS "snapshots"
#define STAGE_DIRECTORY_APPLIES "applies"
/* Where the layers lie on another file system, apply prepares its files in a directory of such a name in the tree. */
#define STAGE_RESERVED_PREFIX ".atoll-"

/* Who wrote the layers, and so how they say that something is not there. */
enum stage_form {
	STAGE_FORM_OVERLAY,          /* the kernel's overlayfs, mounted with userxattr */
	STAGE_FORM_FUSE,             /* fuse-overlayfs: `.wh.NAME` files and user.fuseoverlayfs.* as well */
};

/* One staged tree: a directory of the host, and whose it is. */
struct stage_tree {
	char *path;              /* owned; absolute, normalised, real at the start */
	/* Of the directory at the start: another one at this path is not ours to write. stage_tree_is() compares. */
	uint64_t device, inode;
	uint64_t birth_ns;       /* 0: not known */
	uint64_t filesystem;     /* f_fsid; 0: the file system has none */
	uid_t owner_uid;         /* on the host: what the jail's user stands for in this tree */
	gid_t owner_gid;
	uid_t jail_uid;          /* who owns what lies in the layers (as a user the same as owner_uid) */
	gid_t jail_gid;
};

struct stage_record {
	char session[SESSION_ID_SIZE];      /* the session that this file belongs to */
	char origin[SESSION_ID_SIZE];       /* of a fork: the session whose start counts; else the same as session */
	uint64_t started_realtime_ns;       /* T0: CLOCK_REALTIME_COARSE at the start of the origin */
	uint64_t started_boottime_ns;       /* CLOCK_BOOTTIME at the same moment */
	char boot_id[STAGE_BOOT_ID_SIZE];   /* of the boot in which T0 was taken; "" when unknown */
	struct stage_tree *trees;           /* owned; a fork has those of its origin, in the same order */
	size_t tree_count;                  /* 1 … STAGE_TREES_MAX */
	enum stage_form form;
};

/* Frees the trees; the record is empty then, and may be filled again. */
void stage_record_done(struct stage_record *record);
#define cleanup_stage_record __attribute__((cleanup(stage_record_done)))

/*
 * Fills the two clocks and boot_id with now. Taken as late as can be before the jail starts. The mode of stage_fd (a
 * directory of the session, not O_PATH) is set to what it is, for the kernel's stamp of that.
 */
int stage_record_set_start(struct stage_record *record, int stage_fd) MUST_USE;

/*
 * Adds a tree whose root is host_fd (a directory; O_PATH will do), whose path is path (absolute and
 * normalised) and which stands for these ids. Its index, which names its directories, is returned; -E2BIG beyond
 * STAGE_TREES_MAX, -EINVAL for another path, -ENOTDIR, -ENOMEM.
 */
int stage_record_add_tree(struct stage_record *record, int host_fd, const char *path,
			  const struct stage_tree *ids) MUST_USE;

/*
 * Reads or writes `trees` in stage_fd. Loading checks everything (ids, absolute normalised paths, counts):
 * -EBADMSG for what is malformed, -ENOENT for a session that stages nothing. Storing replaces the
 * file whole (mode 0600), the bytes on the disk before the name is theirs.
 */
int stage_record_load(int stage_fd, struct stage_record *ret_record) MUST_USE;
int stage_record_store(int stage_fd, const struct stage_record *record) MUST_USE;

/* Makes `trees`, empty, for stage_record_create() to write to: of a session that is still to come. */
int stage_record_prepare(int stage_fd) MUST_USE;

/*
 * Writes a new `trees` without waiting for the disk, for the start of a run: what a power cut takes then is a session
 * that was under way. There is none, or an empty one.
 */
int stage_record_create(int stage_fd, const struct stage_record *record) MUST_USE;

/* The same from and to bytes, for tests and fuzzers. bytes are changed by nothing and kept by nobody. */
int stage_record_parse(void *bytes, size_t size, struct stage_record *ret_record) MUST_USE;

/*
 * T0 as it must be compared with the ctimes of now: the stored one, lowered by what the clock was set back since the
 * start as far as CLOCK_BOOTTIME tells (same boot only). A clock that was set forward needs nothing: it makes ctimes
 * later, which errs towards conflict. Reads /proc: call it before the process confines itself.
 */
uint64_t stage_record_start_ns(const struct stage_record *record);

/* Whether the machine was booted since T0; then staged data of a run that was live may be incomplete. */
bool stage_record_is_other_boot(const struct stage_record *record);

/* Fills device, inode, birth and file system of *tree from an open directory (O_PATH will do). -errno. */
int stage_tree_identify(int fd, struct stage_tree *tree) MUST_USE;

/*
 * Whether both are one directory. A device number may be another after a reboot or a new mount, and the same number
 * may be another file system's; the birth of the directory and the id of the file system tell then.
 */
bool stage_tree_is(const struct stage_tree *a, const struct stage_tree *b);

/*
 * Opens the root of a tree on the host and checks that it is the directory of the start. The fd (O_RDONLY |
 * O_DIRECTORY) or -errno with *err: -ESTALE when another directory stands there now.
 */
int stage_tree_open(const struct stage_tree *tree, struct err *err) MUST_USE;

/* Says that something of what a session staged cannot be read, and what to do about it. Returns r, negative. */
int stage_record_explain(const char *session, int r, struct err *err);
