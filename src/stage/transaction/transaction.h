/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One apply or undo as a transaction: everything that shall go to the host is prepared and synced beside it, the
 * journal is written and published, and then each path changes with one rename. A crash at any point is finished or
 * taken back by transaction_recover(). What to do to which path is decided by apply.c and undo.c. Run by atoll-stage.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "stage/record/record.h"
#include "stage/transaction/journal.h"
#include "stage/transaction/known.h"

/* Names in applies/ and applies/N. */
#define TRANSACTION_LOCK "lock"
#define TRANSACTION_SLOTS "slots"

struct transaction;

/* The session whose trees are written, under its lock. */
struct transaction_place {
	int stage_fd;                      /* borrowed: sessions/ID/stage */
	const struct stage_record *record; /* borrowed */
	int applies_fd, lock_fd;           /* owned */
	int tree_fds[STAGE_TREES_MAX];     /* owned; opened and locked when first needed */
	bool is_root;
	/* Told now and then, for people: what is going on, how far. May be NULL. */
	void (*progress)(void *context, const char *phase, size_t done, size_t total);
	void *context;
	/*
	 * Told the plan once it is complete and synced, before anything of it can happen; what it prepared may be read
	 * through transaction_area_of(). Negative with *err: then nothing happens. May be NULL.
	 */
	int (*announce)(void *context, const struct transaction *transaction, struct err *err);
	void *announce_context;
};

/*
 * Takes the session's lock: -EBUSY with *err while another apply or undo has it. Makes applies/ where it is missing.
 * Nothing else is done; callers recover first.
 */
int transaction_place_open(int stage_fd, const struct stage_record *record, struct transaction_place *ret_place,
			   struct err *err) MUST_USE;
void transaction_place_done(struct transaction_place *place);
#define cleanup_transaction_place __attribute__((cleanup(transaction_place_done)))

/* The root of a tree, locked against the applies of other sessions; borrowed. -EBUSY, -ESTALE, … with *err. */
int transaction_tree(struct transaction_place *place, size_t tree, struct err *err) MUST_USE;

/* The numbers of the transactions that there are, ascending; freed with free(). */
int transaction_list(int stage_fd, uint32_t **ret_numbers, size_t *ret_count) MUST_USE;

/* Reads the journal of number below stage_fd. As journal_load(). */
int transaction_load(int stage_fd, uint32_t number, struct journal *ret_journal) MUST_USE;

struct transaction {
	struct transaction_place *place;   /* borrowed */
	struct journal journal;
	struct journal_writer writer;
	int dir_fd;                        /* owned: applies/N */
	int slots_fd;                      /* owned: applies/N/slots */
	int area_fds[STAGE_TREES_MAX];     /* owned: where this transaction's slots of a tree are */
	int undone_slots_fd;               /* owned: of an undo, the slots of what it undoes */
	struct known known;                /* owned: what its renames have made of files so far */
	bool keeps_undone;                 /* what this undo takes off the host stays in the slots */
	bool is_recovered;                 /* it was begun by a process that is gone: known lacks what that one did */
	size_t prepared;                   /* entries made in the areas since the last sync */
	bool has_unsyncable;               /* one of them is no regular file: a file's own sync would not do */
	bool has_attributes;               /* slots_fd holds attributes of directories (JOURNAL_SETS_XATTRS) */
	/* The directory that was used last. */
	int parent_fd;                     /* owned */
	uint32_t parent_tree;
	char *parent_path;                 /* owned */
};

/* Closes and frees; on the disk everything stays as it is, for transaction_recover(). */
void transaction_done(struct transaction *transaction);
#define cleanup_transaction __attribute__((cleanup(transaction_done)))

/*
 * Begins number = the highest + 1 for the trees that uses[] names. From here on until transaction_commit(), whatever
 * happens, recovery takes everything back.
 */
int transaction_begin(struct transaction_place *place, enum journal_kind kind, uint32_t undoes,
		      const bool uses[STAGE_TREES_MAX], struct transaction *ret_transaction,
		      struct err *err) MUST_USE;

/* Whether the slots of this tree lie in applies/N/slots: a rename takes them to the tree. */
bool transaction_is_near(const struct transaction *transaction, size_t tree);

enum { TRANSACTION_SLOT_SIZE = 12 };
/* Writes the file name that a slot has in its area, its number in decimal, to out, and returns out. */
const char *transaction_slot_name(uint32_t slot, char out[TRANSACTION_SLOT_SIZE]);

/*
 * The directory of path's last component beneath its tree, and that component. Borrowed until the next call. -errno,
 * among them -ELOOP, -ENOTDIR, -ENOENT, -EXDEV where the host has something else in the way by now.
 */
int transaction_parent(struct transaction *transaction, uint32_t tree, const char *path,
		       const char **ret_name) MUST_USE;

/*
 * Writes the plan in transaction->journal, syncs everything that was prepared and then the journal, and publishes it.
 * From here on recovery finishes what was begun.
 */
int transaction_commit(struct transaction *transaction, struct err *err) MUST_USE;

/*
 * Carries the plan out, syncs, and writes what became of each op (journal.ops[].outcome). 0 also where some were
 * skipped or failed. An error leaves a transaction that transaction_recover() goes on with.
 */
int transaction_run(struct transaction *transaction, struct err *err) MUST_USE;

/* Removes what is left in the areas of a transaction that is done. */
int transaction_clean(struct transaction *transaction, struct err *err) MUST_USE;

/* Takes back what was only begun: nothing of the host was touched. */
int transaction_abandon(struct transaction *transaction, struct err *err) MUST_USE;

/* The same for one that fails: nothing where it was published already, which is recovery's to go on with. */
void transaction_take_back(struct transaction *transaction);

/* Whether an error of one entry (negative) concerns the whole: no room, no memory. Others leave that entry. */
bool transaction_is_fatal(int error);

/*
 * From a plan to its end: commits, runs and cleans a transaction that was begun and prepared with the result r. Takes
 * it back where r or the commit failed, or where nothing is to be done. What became of each op is in the journal, once
 * that is committed.
 */
int transaction_execute(struct transaction *transaction, int r, struct err *err) MUST_USE;

struct transaction_recovered {
	size_t finished, taken_back;   /* transactions */
};

/* Finishes or takes back every transaction that a crash left. -EBADMSG with *err for a journal that is damaged. */
int transaction_recover(struct transaction_place *place, struct transaction_recovered *ret_recovered,
			struct err *err) MUST_USE;

/* Within the folder: place.c, transaction.c, run-op.c, finish.c and recover.c. */

/* All fds FD_NONE, nothing begun. The place is borrowed until transaction_done(). */
void transaction_init(struct transaction *transaction, struct transaction_place *place);
/* A directory by one component, never through a link; and applies/N. The fd, or -errno. */
int transaction_open_directory(int dir_fd, const char *name) MUST_USE;
int transaction_open_number(int applies_fd, uint32_t number) MUST_USE;
/* The areas of the journal, made first where they are new; in recovery one may be missing. */
int transaction_open_areas(struct transaction *transaction, bool is_new, struct err *err) MUST_USE;
/* The slots of the apply that an undo takes back. */
int transaction_open_undone(struct transaction *transaction, struct err *err) MUST_USE;

/*
 * The directory in which the slot of an op is: of this apply, or of the one that it takes back. Borrowed; FD_NONE where
 * it is not open (transaction_open_areas(), transaction_open_undone()).
 */
int transaction_area_of(const struct transaction *transaction, const struct journal_op *op);
/* utimensat(2) of what an O_PATH descriptor names: its mtime alone. */
int transaction_set_mtime(int path_fd, struct stamp mtime) MUST_USE;
/* Whether a directory has no entries: 1, 0, -errno. */
int transaction_is_empty(int dir_fd, const char *name) MUST_USE;
/* Does one op, or sees that it is done, and fills its outcome. -errno only when nothing can go on. */
int transaction_run_op(struct transaction *transaction, struct journal_op *op) MUST_USE;
/* After the ops: times of directories, then modes of directories. */
int transaction_finish(struct transaction *transaction) MUST_USE;
/* Makes directories whose mode keeps even their owner out passable, until transaction_finish(). */
int transaction_unlock(struct transaction *transaction) MUST_USE;
/* Copies what was kept in the root of a tree to applies/N/slots. */
int transaction_keep(struct transaction *transaction, struct err *err) MUST_USE;
