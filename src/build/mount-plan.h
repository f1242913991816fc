/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From a policy to the jail's spec: which mounts, in which order, with which flags, and which walls the
 * policy demands. It looks at the host (which names exist, which are links) but changes nothing.
 *
 * The folder build/ makes what a sandbox stands on: this plan, the staged trees (staging.h, with their limits on the
 * disk: disk-quota.h decides, disk-full.h acts), and the processes beside the jail: the guardian that tidies up
 * (guardian.h), fuse-overlayfs (fuse.h), and short-lived children that enter its namespaces (enter-namespaces.h). It
 * knows no gate; whoever else has mounts to add is a contributor of the plan.
 */

#include "jail/spec.h"
#include "policy/policy.h"
#include "stage/layer/chain.h"
#include "stage/layer/layer.h"

struct plan;

/* Who adds mounts of its own (plan-parts.h). add: 0, -E2BIG or -ENOMEM; NULL: nobody. */
struct plan_contributor {
	int (*add)(void *context, const struct policy *policy, struct plan *plan);
	void *context;
};

/* What the machine is called inside (uname(2), /etc/hosts). */
#define PLAN_HOSTNAME "atoll"

struct plan_input {
	const struct policy *policy;
	const char *state_dir;    /* STATE */
	const char *session;
	const struct stage_chain *chain;   /* a fork: the layers that every tree stands on; NULL: none */
	const struct stage_record *origin; /* a fork: whose trees these must be; NULL: the run has its own */
	bool by_fuse;             /* fuse-overlayfs makes the staged trees */
	bool has_mounts_below;    /* as root: plan the mounts below staged trees (plan_has_mounts_below()) */
	const char *denials_path; /* host path of the session's denials.jsonl */
	const char *limits_text;  /* content of /run/atoll/limits.md */
	size_t limits_size;
	const char *client_path;  /* host path of atoll-request */
	struct plan_contributor behind_masks, last; /* where theirs stand among all mounts */
	const char *home_from;    /* the host's directory that is staged as the home; NULL: the one of that path */
	const char *user_name;    /* what the user is called inside; NULL: as usual */
	const char *root_from;    /* the directory that stands for the host's system (mount-plan-root.c); NULL: the host's */
	bool run_as_root;
	uid_t uid; /* inside */
	gid_t gid;
};

/* The limit, in bytes, of all private trees when the policy gives none. */
enum { PLAN_SCRATCH_DEFAULT_MIB = 1024, PLAN_OWN_MOUNT_INODES = 1 << 20 };

/*
 * Makes the mounts of the policy. Fails with ERR_WALL naming "mask.late" where a masked name in a written
 * tree does not exist and the policy does not let that degrade; *ret_missing gets the walls that are missing
 * with the policy's consent. What is staged is
 * planned only: the directories that hold it are made by build/staging.h. The input is copied; its policy and root_from
 * are borrowed until the plan is freed, the rest during the call.
 */
int plan_new(struct plan **ret_plan, const struct plan_input *input, uint32_t *ret_missing,
	     struct err *err) MUST_USE;

/* Frees it and what was borrowed from it; NULL is nothing. */
void plan_free(struct plan *plan);

/* One staged tree, whose index is its place in plan_trees(): see stage/record/record.h. */
struct plan_tree {
	const char *path; /* real, on the host */
	const char *rule;
	size_t mask_count;
};

/* A name that must look absent in a staged tree. */
struct plan_mask {
	size_t tree;
	const char *path; /* relative to the tree */
	enum stage_mask_kind kind;
	const char *rule;
	const void *content;  /* of a STAGE_MASK_FILE */
	size_t content_size;
};

/*
 * Whether the host has something mounted below a staged tree that is no tree of its own yet. Nearly no host has: where
 * it has (positive), the plan is to be made again with has_mounts_below. 0: it has not; else -errno.
 */
int plan_has_mounts_below(struct plan *plan) MUST_USE;

/* Borrowed from the plan; 0 of them where nothing is staged. */
const struct plan_tree *plan_trees(const struct plan *plan, size_t *ret_count);

/* Likewise the names that must look absent in them. */
const struct plan_mask *plan_masks(const struct plan *plan, size_t *ret_count);

/*
 * Looks for the programs that the mounts take away, once: their masks, which come behind all mounts (borrowed from the
 * plan). A step of its own, since each name of a long list is a look-up for which no other mount has to wait.
 */
int plan_refuse(struct plan *plan, const struct policy *policy, const struct jail_mount **ret_masks,
		size_t *ret_count) MUST_USE;

/* Those of them that the host has, as indices of the policy's rules of exec; ascending, borrowed from the plan. */
const uint32_t *plan_refused(const struct plan *plan, size_t *ret_count);

/* All mounts in their order, without those of plan_refuse(); borrowed from the plan until it is freed. */
const struct jail_mount *plan_mounts(const struct plan *plan, size_t *ret_count);
