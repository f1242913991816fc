/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder: what writes to the host. A transaction (transaction.h) has a plan in a journal (journal.h), runs it op by
 * op (run-op.c), finishes modes and times (finish.c), and is finished or taken back after a crash (recover.c). Apply
 * and undo (undo.h) make such plans; applied-state.h says later what is ours on the host.
 *
 * Brings chosen changes of a session to the host: from the list of changes (stage/change/change.h) to the plan of a
 * transaction, its content, and what became of each. Which changes are wanted is said by the caller, because that takes
 * the policy's globs; what must come along or stay behind for the sake of the tree is worked out here. Run by
 * atoll-stage.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "stage/change/change.h"
#include "stage/transaction/transaction.h"

enum apply_verdict {
	APPLY_UNWANTED,      /* not asked for */
	APPLY_TAKEN,         /* shall be applied; afterwards: was applied */
	APPLY_KEPT,          /* a conflict that is settled for what the host has: only noted */
	APPLY_CONFLICT,      /* left: both sides changed, or the host changed while it was applied */
	APPLY_FLAGGED,       /* left: it needs --allow-flagged */
	APPLY_REFUSED,       /* left: never applied */
	APPLY_SYSTEM,        /* of the sandbox's own system: it stays with the session */
	APPLY_HELD,          /* left: something that belongs to it was left (below it, or the directory above it) */
	APPLY_RACED,         /* left: it changed while it was read */
	APPLY_FAILED,        /* left: the file system said no */
	APPLY_VERDICT_COUNT,
};

extern const char *const apply_verdict_names[APPLY_VERDICT_COUNT];   /* for --json */

struct apply_item {
	const struct stage_change *change;  /* borrowed */
	enum apply_verdict verdict;         /* in: UNWANTED, TAKEN, KEPT, or why it is left; out: what became of it */
	bool is_implied;                    /* a directory that was taken for what is below it */
	bool lost_set_id;                   /* it was applied without its set-id bits */
	int errnum;                         /* positive, with APPLY_FAILED */
	/* A file to be applied instead of the staged one, as a merge of both: its name in merged_fd, or NULL. */
	const char *merged;
	/* merged has a part of what was staged, on the host's text: what is left can be applied later. */
	bool is_partial;
	bool has_markers;                   /* of a merge: lines of both sides stand in it, between markers */
};

struct apply {
	struct apply_item *items;           /* borrowed; in the order of stage_changes_walk(), tree after tree */
	size_t count;
	const struct stage_stack *stacks;   /* borrowed; one for each tree of the record */
	int merged_fd;                      /* borrowed; FD_NONE where there are no merges */
	/* Result: the number of the transaction, 0 where there was nothing to do; how many items were applied. */
	uint32_t number;
	size_t applied, kept;
	uint64_t bytes;                     /* of file content brought to the host */
};

/*
 * Completes the choice: takes the new directories above what is taken, leaves directories that could not go because
 * something below stays, and what is below a directory that is left. Writes nothing (for --dry-run too). -ENOMEM.
 */
int apply_complete(struct apply *apply) MUST_USE;

/*
 * Applies every item that is APPLY_TAKEN, and notes those that are APPLY_KEPT. The place is locked and recovered. 0
 * also where items were left meanwhile (their verdicts say why). Negative with *err: nothing of the host was changed,
 * or the transaction waits for transaction_recover() (then apply->number is set).
 */
int apply_run(struct transaction_place *place, struct apply *apply, struct err *err) MUST_USE;
