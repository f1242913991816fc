/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which staged changes are flagged: applied only where a person names them. Puts together what the policy protects by
 * name (session/protects.h), what git keeps as data (policy/git-data.h), and where repositories are
 * (stage/change/repositories.h). Used by the box, which counts them at the end of a run, and by atoll-stage, which
 * shows and applies.
 */

#include "base/buf.h"
#include "session/protects.h"
#include "stage/change/change.h"
#include "stage/change/repositories.h"

/* Whether a change is none that has to be flagged, by its content. */
typedef bool flagging_look_fn(const struct stage_stack *stack, const struct stage_change *change);

struct flagging {
	struct protects *protects;          /* owned */
	/* of the tree that is walked */
	const char *tree;                   /* its path; borrowed */
	const struct stage_stack *stack;    /* borrowed */
	struct repositories *repositories;  /* owned */
	struct buf path;                    /* scratch */
	/*
	 * Whether what a package.json has npm run is as it was on the host, whether an index of git names nothing but
	 * files of its working tree, and whether an object of git has the bytes that it had. They read what the sandbox
	 * wrote, so only a confined program has them; NULL: nobody looks, and it is flagged.
	 */
	flagging_look_fn *is_same_package, *is_ordinary_index, *is_same_object;
	uint64_t unread;                    /* flagged only because nobody looked into them */
};

/* policy is borrowed. -ENOMEM. */
int flagging_init(struct flagging *flagging, const struct policy *policy) MUST_USE;
void flagging_done(struct flagging *flagging);

/* Before the walk of each tree. -ENOMEM. */
int flagging_begin(struct flagging *flagging, const char *tree, const struct stage_stack *stack) MUST_USE;

/* Of one change of that tree. What cannot be told is flagged. */
bool flagging_has(struct flagging *flagging, const struct stage_change *change);

/* The change's path on the host, in flagging->path until the next call; NULL where it is longer than memory allows. */
const char *flagging_path(struct flagging *flagging, const char *path);
