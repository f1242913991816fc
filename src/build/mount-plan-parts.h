/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For build/ and the contributors of a plan only: the plan of the mounts while it is made. mount-plan.c makes it in
 * order, mount-plan-staged.c adds what is staged. Fields are build/'s; contributors use the functions.
 */

#include "build/mount-plan.h"

enum { PLAN_MOUNTS_MAX = 4096 };

struct plan {
	struct plan_input input;         /* policy and root_from live as long; the rest while it is made */
	struct jail_mount *mounts;
	size_t count, capacity;
	char **strings; /* owned text behind targets and contents */
	size_t string_count, string_capacity;
	struct plan_tree *trees;
	size_t tree_count, tree_capacity;
	struct jail_layers **layers; /* of each tree; owned */
	size_t layers_capacity;
	struct plan_mask *masks;
	size_t mask_count, mask_capacity;
	uint32_t *refused;               /* see plan_refused() */
	size_t refused_count, refused_capacity;
	struct jail_mount *covers;       /* their masks */
	size_t cover_count, cover_capacity;
	char **points;                   /* all mount points of the host; NULL: not read yet */
	uint64_t scratch_bytes, scratch_inodes;
	bool new_binaries;
};

/*
 * What the host has mounted strictly below path: *ret_points is the first of so many, in order, borrowed. The list is
 * read once for a plan. -errno as mount_points_below().
 */
int plan_points_below(struct plan *plan, const char *path, char *const **ret_points) MUST_USE;

/* Room for one more item behind count in *(void **)items. -E2BIG beyond PLAN_MOUNTS_MAX, or -ENOMEM. */
int plan_grow(void *items, size_t count, size_t *capacity, size_t item_size) MUST_USE;

/* Takes text, which may be NULL; NULL when there is no memory. */
const char *plan_keep(struct plan *plan, char *text);

/* Appends a mount; one without a target is -ENOMEM. */
int plan_add(struct plan *plan, struct jail_mount mount) MUST_USE;

/*
 * Whether the sandbox will see the host's own file at this real path: the policy shows it, and nothing is planned in its
 * place yet.
 */
bool plan_shows_file(const struct plan *plan, const char *path);

/* The entry that decides about a path if it had no entry of its own; NULL: it would be hidden. */
const struct file_plan_entry *plan_entry_around(const struct policy *policy, size_t index);

/* Whether the policy has an entry for exactly this path. */
bool plan_policy_names(const struct policy *policy, const char *path);

/* What stands in /etc in the place of the host's files: accounts, and names of hosts. plan-etc.c */
int plan_add_etc(struct plan *plan) MUST_USE;

/* A directory of the host that becomes a tree. */
struct plan_tree_request {
	const char *path, *rule;
	const char *target;     /* where it is inside; NULL: at the same path */
	uint32_t flags;         /* of jail_mount */
	size_t source_trusted;
	bool is_system;         /* what cannot be staged in it is left out, instead of a refusal of the whole */
};

/* As root: whether the file system at path can be a layer, which the kernel must idmap. As a user: true. */
bool plan_can_stage(const struct plan *plan, const char *path);

/* -E2BIG beyond STAGE_TREES_MAX. */
int plan_add_tree(struct plan *plan, const struct plan_tree_request *request) MUST_USE;

/* What the host has mounted below the tree. A file that is mounted over another is shown as it is. */
int plan_add_mounts_below(struct plan *plan, const struct policy *policy, size_t index,
			  const struct plan_tree_request *around) MUST_USE;

/* Whether an entry of the policy at or above point, and nearer to it than the one at index, decides about it. */
bool plan_has_own_entry(const struct policy *policy, size_t index, const char *point);

/* The root directory as a staged entry: a tree for each directory in it. plan-system.c */
int plan_add_system(struct plan *plan, const struct policy *policy, size_t index,
		    const struct plan_tree_request *like, struct err *err) MUST_USE;

/*
 * Whether a path is one of the system, and so not the host's in a sandbox with a root of its own. False without one.
 * mount-plan-root.c
 */
bool plan_is_of_root(const struct plan *plan, const char *path);

/* A tree for each directory of the root, where it has one of its own. -errno with *err. */
int plan_add_root(struct plan *plan, struct err *err) MUST_USE;

/* path_real() as it is inside: of a path of the root, within that. */
int plan_real(const struct plan *plan, const char *path, char out[PATH_MAX]) MUST_USE;

/* What a staged entry becomes: its tree, and as root those of the host's mounts below it. */
int plan_add_stage(struct plan *plan, const struct policy *policy, size_t index, struct err *err) MUST_USE;

/* Whether the trees are those of the origin, in its order; takes the directory of atoll's own changes out of them. */
int plan_check_stage(struct plan *plan, struct err *err) MUST_USE;

/* A file that is shown in a staged tree and is not the host's; its directory must be. */
int plan_add_stage_file(struct plan *plan, const char *path, const void *content, size_t size,
			const char *rule) MUST_USE;

/* A mask whose nearest entry above is staged. */
int plan_add_stage_mask(struct plan *plan, const struct file_plan_entry *entry, const char *rule) MUST_USE;
