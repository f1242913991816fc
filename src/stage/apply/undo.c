/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ops of the apply, from the last to the first, each turned round. Near by (applies/N/slots on the file system of
 * the tree) the very inode that was there goes back. Else it is copied beside the tree first.
 */

#include "stage/apply/undo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "stage/layer/copy.h"
#include "stage/layer/layer.h"
#include "stage/layer/links.h"

struct preparation {
	struct transaction *transaction;
	struct undo *undo;
	struct links links;
	uint32_t *directories;     /* owned: for each directory of the apply, 1 + its index here; 0: not yet */
	bool *keeps;               /* owned: for each directory of the apply, something in it stays applied */
	struct undo_item **items;  /* owned: the item of each op */
};

static void preparation_done(struct preparation *preparation)
{
	links_done(&preparation->links);
	free(preparation->directories);
	free(preparation->keeps);
	free(preparation->items);
}

static int preparation_init(struct preparation *preparation)
{
	const struct undo *undo = preparation->undo;
	size_t count = undo->apply.directory_count + 1;

	preparation->directories = calloc(count, sizeof *preparation->directories);
	preparation->keeps = calloc(count, sizeof *preparation->keeps);
	preparation->items = calloc(undo->count + 1, sizeof(struct undo_item *));
	if (!preparation->directories || !preparation->keeps || !preparation->items)
		return -ENOMEM;
	for (size_t i = 0; i < undo->count; i++) {
		const struct undo_item *item = &undo->items[i];

		if (journal_op_moves(item->op) && item->verdict != UNDO_TAKEN && item->verdict != UNDO_ALREADY)
			preparation->keeps[item->op->directory] = true;
	}
	return 0;
}

/* The directory that holds an op, with the time that it shall have again if all in it goes back. */
static int add_directory(struct preparation *preparation, struct journal_op *op, uint32_t index)
{
	struct transaction *transaction = preparation->transaction;
	const struct journal_directory *known = &preparation->undo->apply.directories[index];
	struct journal_directory *directory;
	cleanup_fd int fd = FD_NONE;
	struct stat st;

	if (preparation->directories[index]) {
		op->directory = preparation->directories[index] - 1;
		return 0;
	}
	directory = journal_add_directory(&transaction->journal);
	if (!directory)
		return -ENOMEM;
	directory->tree = known->tree;
	directory->path = known->path;
	directory->before = known->before;
	fd = stage_open_beneath(transaction->place->tree_fds[known->tree], known->path, O_PATH | O_DIRECTORY, 0);
	if (fd >= 0 && fstat(fd, &st) == 0)
		identity_of_stat(&st, &directory->before);
	if (!*known->path && !transaction_is_near(transaction, known->tree))
		directory->before = transaction->journal.areas[known->tree].root;
	/* One that somebody else has written into since keeps its time; what earlier undos did there is no else. */
	directory->has_wanted = !preparation->keeps[index] &&
				(!known->left.mode || stamp_equal(known->left.mtime, directory->before.mtime) ||
				 known_has(&preparation->undo->known, known->tree, &directory->before));
	directory->wanted_mtime = known->before.mtime;
	op->directory = (uint32_t)transaction->journal.directory_count - 1;
	preparation->directories[index] = op->directory + 1;
	return 0;
}

/* What was kept in applies/N/slots is copied into our own area, which is on the file system of the tree. */
static int copy_kept(struct preparation *preparation, const struct journal_op *was, struct journal_op *op)
{
	struct transaction *transaction = preparation->transaction;
	char name[TRANSACTION_SLOT_SIZE], first[TRANSACTION_SLOT_SIZE];
	struct copy copy = {
		.from_fd = transaction->undone_slots_fd, .from = transaction_slot_name(was->slot, name),
		.to_fd = transaction->area_fds[op->tree], .to = name, .kind = COPY_EXACT,
	};
	uint32_t slot;
	int r = 0;

	op->area = transaction->journal.number;
	if (S_ISREG(was->host.mode) && was->host.links > 1)
		r = links_find_or_put(&preparation->links, op->tree, 0, was->host.inode, was->slot, &slot);
	if (r == 1 && linkat(copy.to_fd, transaction_slot_name(slot, first), copy.to_fd, name, 0) == 0)
		return identity_at(copy.to_fd, name, &op->content);
	if (r < 0)
		return r;
	r = copy_entry(&copy);
	if (r > 0)
		return -EIO;
	op->content = copy.made;
	transaction->prepared++;
	transaction->has_unsyncable |= !S_ISREG(copy.made.mode);
	return r;
}

static int find_kept(struct preparation *preparation, const struct journal_op *was, struct journal_op *op)
{
	struct transaction *transaction = preparation->transaction;
	char name[TRANSACTION_SLOT_SIZE];
	int r;

	if (!transaction_is_near(transaction, op->tree))
		return copy_kept(preparation, was, op);
	op->area = transaction->journal.undoes;
	r = identity_at(transaction->undone_slots_fd, transaction_slot_name(was->slot, name), &op->content);
	if (r < 0)
		return r;
	return op->content.mode ? 0 : -ENOENT;
}

static int prepare_item(struct preparation *preparation, struct undo_item *item)
{
	struct journal *journal = &preparation->transaction->journal;
	const struct journal_op *was = item->op;
	struct journal_op *op = journal_add_op(journal);
	int r = 0;

	if (!op)
		return -ENOMEM;
	*op = (struct journal_op){ .tree = was->tree, .path = was->path, .area = journal->number, .slot = was->slot,
				   .flags = was->flags & (JOURNAL_MERGED | JOURNAL_SETTLED), .host = was->left };
	/* Another name of the file may have come after this one. */
	op->host.ctime = item->ctime;
	op->action = was->action == JOURNAL_ADD ? JOURNAL_REMOVE :
		     was->action == JOURNAL_REMOVE ? JOURNAL_ADD : JOURNAL_REPLACE;
	if (op->action != JOURNAL_REMOVE)
		r = find_kept(preparation, was, op);
	/* Its way into the slot may have changed that. */
	if (S_ISDIR(op->content.mode))
		op->content.mtime = was->host.mtime;
	if (r == 0)
		r = add_directory(preparation, op, was->directory);
	if (r < 0)
		journal->op_count--;
	else
		preparation->items[journal->op_count - 1] = item;
	return r;
}

/* What is no rename: attributes of a directory, and what was only decided. */
static int prepare_set(struct preparation *preparation, struct undo_item *item)
{
	struct journal *journal = &preparation->transaction->journal;
	const struct journal_op *was = item->op;
	struct journal_op *op = journal_add_op(journal);

	if (!op)
		return -ENOMEM;
	*op = (struct journal_op){ .action = JOURNAL_SET, .tree = was->tree, .path = was->path,
				   .area = journal->number, .slot = was->slot, .flags = was->flags,
				   .host = was->left, .content = was->host };
	/* Bits were lent to a directory that this undo removes. Where that fails, it keeps what it has. */
	if (was->flags & JOURNAL_LENT) {
		op->content = was->left;
		op->flags = JOURNAL_LENT;
	}
	if (was->action == JOURNAL_KEEP) {
		op->action = JOURNAL_KEEP;
		op->content = was->content;
	}
	preparation->items[journal->op_count - 1] = item;
	return 0;
}

static int prepare_all(struct preparation *preparation)
{
	struct undo *undo = preparation->undo;
	int r = 0;

	for (size_t i = undo->count; i-- > 0 && r == 0;) {
		struct undo_item *item = &undo->items[i];

		if (item->verdict != UNDO_TAKEN || !journal_op_moves(item->op))
			continue;
		r = prepare_item(preparation, item);
		if (r < 0 && !transaction_is_fatal(r)) {
			item->verdict = UNDO_FAILED;
			item->errnum = -r;
			r = 0;
		}
	}
	/* They stand deepest first already. */
	for (size_t i = 0; i < undo->count && r == 0; i++)
		if (undo->items[i].verdict == UNDO_TAKEN && !journal_op_moves(undo->items[i].op))
			r = prepare_set(preparation, &undo->items[i]);
	return r;
}

static void report_outcomes(struct preparation *preparation)
{
	static const enum undo_verdict verdicts[JOURNAL_OUTCOME_COUNT] = {
		[JOURNAL_PENDING] = UNDO_FAILED, [JOURNAL_APPLIED] = UNDO_TAKEN,
		[JOURNAL_SKIPPED] = UNDO_CHANGED, [JOURNAL_FAILED] = UNDO_FAILED,
	};
	const struct journal *journal = &preparation->transaction->journal;
	struct undo *undo = preparation->undo;

	for (size_t i = 0; i < journal->op_count; i++) {
		preparation->items[i]->verdict = verdicts[journal->ops[i].outcome];
		preparation->items[i]->errnum = journal->ops[i].errnum;
	}
	for (size_t i = 0; i < undo->count; i++)
		undo->undone += undo->items[i].verdict == UNDO_TAKEN && journal_op_is_shown(undo->items[i].op);
}

static bool choose_trees(const struct undo *undo, bool uses[STAGE_TREES_MAX])
{
	bool any = false;

	memset(uses, 0, STAGE_TREES_MAX * sizeof *uses);
	for (size_t i = 0; i < undo->count; i++) {
		if (undo->items[i].verdict != UNDO_TAKEN)
			continue;
		uses[undo->items[i].op->tree] = true;
		any = true;
	}
	return any;
}

static int prepare(struct preparation *preparation, struct err *err)
{
	int r = preparation_init(preparation);

	if (r == 0)
		r = prepare_all(preparation);
	return r < 0 ? err_set(err, ERR_STATE, -r, "undo", "the undo cannot be prepared: %s", strerror(-r)) : 0;
}

int undo_run(struct transaction_place *place, struct undo *undo, struct err *err)
{
	cleanup_transaction struct transaction transaction = { 0 };
	struct preparation preparation = { .transaction = &transaction, .undo = undo };
	bool uses[STAGE_TREES_MAX];
	int r;

	undo->number = 0;
	undo->undone = 0;
	if (!choose_trees(undo, uses))
		return 0;
	r = transaction_begin(place, JOURNAL_UNDO, undo->apply.number, uses, &transaction, err);
	if (r == 0)
		r = prepare(&preparation, err);
	r = transaction_execute(&transaction, r, err);
	if (transaction.journal.is_committed) {
		undo->number = transaction.journal.number;
		report_outcomes(&preparation);
	}
	preparation_done(&preparation);
	return r;
}
