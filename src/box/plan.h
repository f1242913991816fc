/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From a policy to the jail's spec: which mounts, in which order, with which flags, and which walls the
 * policy demands. It looks at the host (which names exist, which are links) but changes nothing.
 */

#include "box/box.h"
#include "jail/spec.h"

struct plan_input {
	const struct policy *policy;
	const char *denials_path; /* host path of the session's denials.jsonl */
	const char *limits_text;  /* content of /run/atoll/limits.md */
	size_t limits_size;
	bool run_as_root;
	uid_t uid; /* inside */
	gid_t gid;
};

struct plan;

/* The limit, in bytes, of all private trees when the policy gives none. */
enum { PLAN_SCRATCH_DEFAULT_MIB = 1024 };

/*
 * Makes the mounts of the policy. Fails with ERR_WALL naming "mask.late" where a masked name in a written
 * tree does not exist and the policy does not let that degrade; *ret_missing gets the walls that are missing
 * with the policy's consent.
 */
int plan_new(struct plan **ret_plan, const struct plan_input *input, uint32_t *ret_missing,
	     struct err *err) MUST_USE;
void plan_free(struct plan *plan);

/* Borrowed from the plan. */
const struct jail_mount *plan_mounts(const struct plan *plan, size_t *ret_count);
