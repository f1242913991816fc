/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known of paths that transactions left: applied-state.c has those of a session, restored.c what undos gave
 * back. Within these two only.
 */

#include "stage/apply/applied-state.h"
#include "stage/record/paths.h"
#include "stage/transaction/journal.h"
#include "stage/transaction/known.h"

/* One path may have been written by several transactions: its entries are chained, the newest first. */
struct applied_entry {
	struct identity identity;
	uint32_t next;                /* PATHS_NONE: the last */
};

/* The newest decision about a path. */
struct applied_decision {
	uint32_t number;              /* of the transaction, which an undo names */
	const struct journal_op *op;  /* in its journal; NULL: it was taken back */
};

struct applied_state {
	uint64_t start_ns;            /* of the run */
	struct journal *journals;     /* owned: the paths are theirs */
	size_t journal_count;
	struct applied_entry *entries;   /* owned */
	size_t count, capacity;
	struct paths index;
	uint32_t *heads;              /* owned: by the number that index gives */
	struct known known;           /* owned: files with several names */
	size_t head_count;
	struct applied_decision *decisions; /* owned */
	size_t decision_count;
	struct paths decided;         /* the index of the decision about each path */
};

/* The entry of a path with this identity, the newest first; NULL: there is none. */
const struct applied_entry *applied_find(const struct applied_state *left, uint32_t tree, const char *path,
				   const struct identity *now);

/* Room for so many more entries: applied_add() takes it. -ENOMEM. */
int applied_reserve(struct applied_state *left, size_t more) MUST_USE;
int applied_add(struct applied_state *left, uint32_t tree, const char *path, const struct identity *identity) MUST_USE;

/*
 * Loads the finished transactions of a stage directory behind left->journals, ascending; those that are damaged or not
 * done are left out. -errno.
 */
int applied_load_journals(struct applied_state *left, int stage_fd) MUST_USE;
