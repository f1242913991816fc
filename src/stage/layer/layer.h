/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder: everything that lies below a session's trees and was written by a sandbox. chain.h says which layers,
 * this header makes and opens them, mask.c and closed.h prepare them, walk.h reads them merged, copy.h, links.h and
 * attributes.h take single entries out of them, remove.h throws them away, origins.h says where a file of them came
 * from.
 *
 * Layers as directories: making the live upper and work directories and the mask layer, opening the stack of a tree,
 * and what an entry of an upper means. overlayfs itself is mounted by jail/; its format is read here
 * (Documentation/filesystems/overlayfs.rst), never obeyed: what the kernel would follow in a layer (redirect, metacopy)
 * is refused. Everything below a layer is hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "stage/layer/chain.h"
#include "stage/layer/closed.h"
#include "stage/record/record.h"

/*
 * openat2(2) beneath dir_fd without following any link and without leaving its mount: the only way in which anything
 * below a layer or a staged tree is opened. path is relative and may be longer than PATH_MAX (it is then
 * resolved in pieces); "" is dir_fd itself. O_CLOEXEC is added. The fd, or -errno (-ELOOP, -EXDEV, …).
 */
int stage_open_beneath(int dir_fd, const char *path, uint64_t flags, mode_t mode) MUST_USE;

/* The directory that holds the last component of path; *ret_name points at that component in path. */
int stage_open_parent(int dir_fd, const char *path, const char **ret_name) MUST_USE;

/*
 * Makes live/T/upper and live/T/work as they must be before a mount: upper is kept when it is there (mode, owner
 * and times of a new one are those of host_fd, the owner being the jail's); work is always made anew, so that the
 * mark which a `volatile` mount leaves (work/incompat/volatile) and half-made copies are gone. Nothing may run.
 */
int stage_live_make(int stage_fd, size_t tree_index, const struct stage_tree *tree, int host_fd,
		    struct err *err) MUST_USE;

enum stage_mask_kind {
	STAGE_MASK_NAME,      /* the name itself looks absent */
	STAGE_MASK_CONTENT,   /* the directory stays and looks empty: a star or two behind its slash */
	STAGE_MASK_FILE,      /* another file than the host's is shown, whose directory must be the host's */
};

/* Where a mask is written. Everything is borrowed. */
struct stage_mask {
	int stage_fd;
	enum stage_form form;
	size_t tree_index;
	const struct stage_tree *tree;
	int host_fd;          /* the root of the tree on the host */
	const void *content;  /* STAGE_MASK_FILE */
	size_t content_size;
};

/*
 * Makes path (relative to the tree, normalised, without "..") look absent in mask/T, which is made where it is
 * missing. Directories on the way take mode and times of those of the host and the jail's owner, because they win
 * in the merge; where the host lacks one, that one is whited out. May be called in any order and twice.
 * -ELOOP, -ENOTDIR where a component of the host is a link or a file: what is behind it is another path, which the
 * caller must name. -EPERM where whiteouts cannot be made there. *err says which path.
 */
int stage_mask_add(const struct stage_mask *mask, const char *path, enum stage_mask_kind kind,
		   struct err *err) MUST_USE;

enum { STAGE_STACK_MAX = STAGE_CHAIN_MAX + 1 };

/* The layers of one tree, top first, as fds (O_RDONLY | O_DIRECTORY for the walk). */
struct stage_stack {
	int layers[STAGE_STACK_MAX];  /* owned */
	size_t count;
	int mask_fd;                  /* owned; FD_NONE where nothing is masked */
	int host_fd;                  /* owned; the root of the tree on the host; FD_NONE until it is opened */
	enum stage_form form;         /* of all layers and the mask */
	struct stage_closed *closed;  /* borrowed; what was opened that the sandbox had closed; NULL: nothing */
};

/* An empty stack. */
#define STAGE_STACK_NONE ((struct stage_stack){ .mask_fd = FD_NONE, .host_fd = FD_NONE })

/*
 * Opens the stack of a tree, with live/T/upper on top where with_live says so, and the mask. sessions_fd:
 * STATE/sessions, where the layers of a chain are found. A layer that is missing is an error (-ENOENT), never an
 * empty one. The host's side is opened by stage_stack_open_host(). What the sandbox closed in the layers is opened
 * where the caller has set closed in the stack, for as long as that is there.
 */
int stage_stack_open(int sessions_fd, int stage_fd, const struct stage_chain *chain, size_t tree_index,
		     bool with_live, struct stage_stack *ret_stack) MUST_USE;

/*
 * Opens the host's tree by stage_tree_open(), in the place of one that the stack had: 0, or its error with *err and the
 * stack as before. done closes all that is open in it; it may be used as an empty one after that.
 */
int stage_stack_open_host(struct stage_stack *stack, const struct stage_tree *tree, struct err *err) MUST_USE;
void stage_stack_done(struct stage_stack *stack);
#define cleanup_stage_stack __attribute__((cleanup(stage_stack_done)))

/* layers/N/T of a session, below sessions_fd (O_RDONLY | O_DIRECTORY). session and number are checked. */
int stage_layer_open(int sessions_fd, const struct stage_layer *layer, size_t tree_index) MUST_USE;

/* Whether an entry of a layer says "nothing is here": a character device 0:0. */
bool stage_is_whiteout(const struct stat *st);

/*
 * STAGE_FORM_FUSE, where the file system takes no such devices: a file `.wh.NAME` says that NAME is not there, and
 * `.wh..wh..opq` that nothing below shows through its directory. What is called so and is no empty file was made
 * inside.
 */
#define STAGE_WHITEOUT_PREFIX ".wh."
#define STAGE_OPAQUE_NAME ".wh..wh..opq"

/* What the extended attributes of an entry of a layer say. */
struct stage_marks {
	bool is_opaque;      /* nothing of the layers below shows through (directories) */
	bool is_copied_up;   /* it was copied from below; symbolic links never say so */
	bool is_forged;      /* it has attributes of the overlay that are not ours (redirect, metacopy, …) */
	bool has_user;       /* it has user.* attributes of its own */
};

/* Reads them from an open file or directory, or by name in dir_fd without following a link. 0, or -errno. */
int stage_marks_of_fd(int fd, enum stage_form form, struct stage_marks *ret_marks) MUST_USE;
int stage_marks_at(int dir_fd, const char *name, enum stage_form form, struct stage_marks *ret_marks) MUST_USE;

/* Whether an extended attribute is the overlay's own and must never reach the host. */
bool stage_xattr_is_overlay(const char *name);
