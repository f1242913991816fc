/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside jail/ only: the new root while it is being filled. targets.c knows where mounts go, special.c
 * makes /proc and /dev, mounts.c all else. Runs in the child: no allocation, async-signal-safe.
 */

#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jail/job.h"
#include "os/landlock.h"

enum {
	ROOT_PRIVATE_MAX = 64,
	ROOT_LAYERED_MAX = 1024, /* mounts that come later than these are never in a layer */
	/* Looks at a target whose mount meets ENOENT: the host put another file there meanwhile, as useradd does. */
	ROOT_TRIES = 16,
	ROOT_INSIDE = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	ROOT_READ = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR,
	/* Everything but device nodes. */
	ROOT_WRITE = LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE |
		     LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SOCK | LANDLOCK_MAKE_FIFO |
		     LANDLOCK_MAKE_SYM | LANDLOCK_REFER,
};

struct root {
	struct jail_job *job;
	int fd;                                  /* of the new root's mount */
	int ruleset_fd, abi;
	dev_t private_devices[ROOT_PRIVATE_MAX]; /* file systems in which names may be made; [0] is the root's */
	size_t private_count;
	int mask_file, mask_directory;           /* empty, in the root, unlinked at the end */
	const char *held;                        /* a target whose directories nobody can rename any more; NULL: none */
	uint64_t layered[ROOT_LAYERED_MAX / 64]; /* by index: what a layer of layered.c shows or hides already */
	struct err *err;
};

/* Fills root->err for this mount with "WHAT TARGET (RULE): ERRNO" and returns r. */
int root_fail(struct root *root, const struct jail_mount *mount, int r, const char *what);

/* A Landlock rule, where there is a ruleset. */
int root_allow(struct root *root, int fd, bool is_directory, uint64_t rights) MUST_USE;

/* Whether fd lies in a file system of the sandbox's own, and the entry of one more. */
bool root_is_private(const struct root *root, int fd);
int root_add_private(struct root *root, int fd) MUST_USE;

/* One that was made for the sandbox, and in which names are the agent's alone: a staged tree. */
int root_add_own(struct root *root, int fd) MUST_USE;

/* 1, 0 or -errno. */
int root_is_directory(int fd) MUST_USE;

/* The name of a target that lies right below the root, in root->fd; NULL for one that lies deeper. */
const char *root_name_of(const char *target);

/* The directory that holds a target, made where that is private; *ret_name: its last component. O_PATH fd or -errno. */
int root_open_parent(struct root *root, const char *target, const char **ret_name) MUST_USE;

/* What to mount on: made in private file systems, its parents held in place elsewhere. O_PATH fd or -errno. */
int root_open_target(struct root *root, const char *target, bool is_directory) MUST_USE;

/* What a mask covers: the target, or what it leads to through links. O_PATH fd or -errno. */
int root_open_masked(struct root *root, const char *target) MUST_USE;

/* Attaches a detached tree at the mount's target, with its Landlock rule. 0 also where an optional one is missing. */
int root_attach(struct root *root, const struct jail_mount *mount, int tree, uint64_t rights) MUST_USE;

/* "NUMBER" for a mount option or a setting. 0, or -ENAMETOOLONG. */
int root_format_number(char *out, size_t size, uint64_t value) MUST_USE;

/* A detached tmpfs; 0 bytes or inodes: the kernel's default. The fd or -errno. */
int root_new_tmpfs(uint64_t size_bytes, uint64_t inodes, const char *mode, uint64_t attributes) MUST_USE;

/*
 * Covers what target_fd names with nothing, read-only, so that no write succeeds into nowhere: a directory with an
 * empty one, a file with one that nobody may open.
 */
int root_cover(struct root *root, int target_fd) MUST_USE;

/* A JAIL_OVERLAY: finds its layers, makes the overlay, attaches it with its Landlock rule. 0 or -errno. overlay.c */
int root_mount_overlay(struct root *root, const struct jail_mount *mount) MUST_USE;

/* An overlay takes layers from mounts of this namespace alone; it covers them. overlay.c */
int root_attach_layer(struct root *root, const struct jail_mount *mount, int tree) MUST_USE;

/* A detached overlay that cannot be written, of attached mounts, top first. The fd or -errno. overlay.c */
int overlay_read_only(const int *fds, size_t count, uint64_t attributes) MUST_USE;

/*
 * JAIL_LAYERED: attaches the tree, and upon it an overlay in which the later mounts' masks are absent and their files
 * present. 0 also where no overlay can be had: what is in one, root_has_layered() tells. Without one, and for
 * JAIL_SPREAD, the later mounts' files have names all the same, as far as they lie in no directory of the host's but
 * this. layered.c
 */
int root_mount_layered(struct root *root, const struct jail_mount *mount, int tree_fd, uint64_t rights) MUST_USE;
bool root_has_layered(const struct root *root, const struct jail_mount *mount);

/* A JAIL_FUSE: attaches the next of the job's served trees, private to the sandbox. 0 or -errno. fuse.c */
int root_mount_fuse(struct root *root, const struct jail_mount *mount) MUST_USE;

/*
 * A new proc(5) of the sandbox's PID namespace, with what leads out of it covered; a tmpfs with the few devices that
 * programs need. 0, or -errno with root->err filled in. special.c
 */
int root_mount_proc(struct root *root, const struct jail_mount *mount) MUST_USE;
int root_mount_dev(struct root *root, const struct jail_mount *mount) MUST_USE;
