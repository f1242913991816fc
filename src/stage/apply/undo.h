/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Takes an apply back, whole or in part: each path goes back to what its journal kept, if the host has not changed it
 * since. An undo is a transaction like an apply; applying again takes it back. Run by atoll-stage.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "stage/transaction/known.h"
#include "stage/transaction/transaction.h"

enum undo_verdict {
	UNDO_UNWANTED,       /* not asked for */
	UNDO_TAKEN,          /* shall be taken back; afterwards: was */
	UNDO_ALREADY,        /* it was taken back before, or was never applied */
	UNDO_CHANGED,        /* left: the host has changed it since the apply */
	UNDO_FAILED,         /* left: the file system said no, or what was kept is gone */
	UNDO_VERDICT_COUNT,
};

extern const char *const undo_verdict_names[UNDO_VERDICT_COUNT];

struct undo_item {
	const struct journal_op *op;     /* of the apply; borrowed from undo->apply */
	enum undo_verdict verdict;
	bool is_implied;                 /* taken for what is below it */
	struct stamp ctime;              /* of what is there, as undo_complete() found it */
	int errnum;                      /* positive, with UNDO_FAILED */
};

struct undo {
	struct journal apply;            /* the journal of what is taken back */
	struct known known;              /* owned: what the session's transactions left, from this apply on */
	struct undo_item *items;         /* owned; one for each op of the apply, in its order */
	size_t count;
	/* Result. */
	uint32_t number;                 /* of the undo's own transaction; 0: there was nothing to do */
	size_t undone;
};

/* Frees the journal, the items and what is known; undo->items of a caller ends with it. */
void undo_done(struct undo *undo);
#define cleanup_undo __attribute__((cleanup(undo_done)))

/* One apply, for lists. */
struct undo_entry {
	uint32_t number;
	uint64_t time_ns;                /* CLOCK_REALTIME of the apply */
	size_t applied, undone;          /* paths */
};

/* The applies of a session, oldest first; freed with free(). Journals that are damaged or unfinished are left out. */
int undo_list(int stage_fd, struct undo_entry **ret_entries, size_t *ret_count) MUST_USE;

/*
 * Reads the apply with this number, or the newest that has something to be taken back (number 0). Every item is
 * UNDO_TAKEN or UNDO_ALREADY. -ENOENT with *err when there is none.
 */
int undo_open(struct transaction_place *place, uint32_t number, struct undo *ret_undo, struct err *err) MUST_USE;

/*
 * After the caller has made items UNDO_UNWANTED: takes the directories that taken items need, and finds which paths the
 * host has changed since. Writes nothing.
 */
int undo_complete(struct transaction_place *place, struct undo *undo, struct err *err) MUST_USE;

/* Takes back what is UNDO_TAKEN. Results as those of apply_run(). */
int undo_run(struct transaction_place *place, struct undo *undo, struct err *err) MUST_USE;
