/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How transactions end: tidied up, taken back, or found after a crash and gone on with.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/transaction/transaction.h"

/* Of one undo; more is removed at once. */
enum { UNDONE_FILES_MAX = 20000, UNDONE_BYTES_MAX = 64 << 20 };

static bool is_inode(const struct identity *now, const struct identity *known)
{
	return known->mode && now->inode == known->inode;
}

/*
 * Removes a name in an area, of a file that had so many. What else the file is called on the host has a new ctime then,
 * which the journal keeps: no change of the host's to a later undo.
 */
static int remove_name(struct transaction *transaction, const struct journal_op *op, int area_fd, const char *name,
		       uint32_t links)
{
	cleanup_fd int fd = links > 1 ? fd_open_at(area_fd, name, O_PATH | O_NOFOLLOW, 0) : FD_NONE;
	struct identity left;
	struct stat st;

	if (unlinkat(area_fd, name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fd < 0 || fstat(fd, &st) < 0 || !st.st_nlink)
		return 0;
	identity_of_stat(&st, &left);
	journal_put_parted(&transaction->writer, op->tree, &left);
	return 0;
}

/*
 * Whether what an undo took off the host stays with the session, which has all of it in its layers as well. To remove a
 * file can cost more than all else that an undo does (where a file system tells the device of each at once, a
 * millisecond), so a few are left to whoever removes the session.
 */
static bool keeps_undone(const struct journal *journal)
{
	uint64_t bytes = 0;
	size_t files = 0;

	for (size_t i = 0; i < journal->op_count && journal->kind == JOURNAL_UNDO; i++) {
		bool is_taken = journal_op_moves(&journal->ops[i]) && S_ISREG(journal->ops[i].host.mode);

		files += is_taken;
		bytes += is_taken ? journal->ops[i].host.size : 0;
	}
	return journal->kind == JOURNAL_UNDO && files <= UNDONE_FILES_MAX && bytes <= UNDONE_BYTES_MAX;
}

/* Other names of a file would show how many it has. */
static bool is_kept(const struct transaction *transaction, const struct journal_op *op)
{
	return transaction->keeps_undone && transaction_is_near(transaction, op->tree) && S_ISREG(op->host.mode) &&
	       op->host.links == 1;
}

/*
 * Whether nothing of an op is left to be tidied up: it was done a moment ago, and the slot is empty, or holds what
 * stays there.
 */
static bool is_tidy(const struct transaction *transaction, const struct journal_op *op)
{
	bool is_for_undo = transaction->journal.kind == JOURNAL_APPLY && transaction_is_near(transaction, op->tree);

	return !transaction->is_recovered && op->outcome == JOURNAL_APPLIED &&
	       (op->action == JOURNAL_ADD || is_for_undo || is_kept(transaction, op));
}

/*
 * Removes what is ours in the slot of an op: what was prepared and not used; of an undo that does not keep it, what it
 * took off the host (it came from a layer, which has it still); of an area in a tree, what was kept elsewhere. Anything
 * else there is the host's, left by a race, and stays.
 */
static int clean_slot(struct transaction *transaction, const struct journal_op *op)
{
	const struct journal *journal = &transaction->journal;
	int area_fd = transaction_area_of(transaction, op), r;
	bool undone = journal->kind == JOURNAL_UNDO, applied = op->outcome == JOURNAL_APPLIED;
	char name[TRANSACTION_SLOT_SIZE];
	struct identity now;

	if (!journal_op_moves(op) || area_fd < 0 || is_tidy(transaction, op))
		return 0;
	r = identity_at(area_fd, transaction_slot_name(op->slot, name), &now);
	if (r < 0 || !now.mode)
		return r;
	if (applied && is_kept(transaction, op) && is_inode(&now, &op->host))
		return 0;
	if (!(applied && (undone || !transaction_is_near(transaction, op->tree)) && is_inode(&now, &op->host)) &&
	    !(op->area == journal->number && is_inode(&now, &op->content)))
		return 0;
	if (!S_ISDIR(now.mode))
		return remove_name(transaction, op, area_fd, name, now.links);
	return unlinkat(area_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* Our directory in the root of a tree changed the root's time when it came, and does again when it goes. */
static int restore_root(struct transaction *transaction, size_t tree)
{
	const struct journal *journal = &transaction->journal;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, stamp_to_timespec(journal->areas[tree].root.mtime) };
	bool is_touched = false, is_known = true;

	for (size_t i = 0; i < journal->directory_count && journal->is_done; i++) {
		const struct journal_directory *directory = &journal->directories[i];

		if (directory->tree != tree || *directory->path)
			continue;
		is_touched = true;
		is_known = directory->has_wanted && stamp_equal(directory->left.mtime, directory->wanted_mtime);
		times[1] = stamp_to_timespec(directory->wanted_mtime);
	}
	if (is_touched && !is_known)
		return 0;
	return futimens(transaction->place->tree_fds[tree], times) < 0 ? -errno : 0;
}

/*
 * The root as this transaction left it last, before its area goes. Mode 0: not known, as in the recovery of one that
 * wrote nothing into the root itself.
 */
static const struct identity *root_as_left(const struct journal *journal, size_t tree)
{
	const struct identity *left = &journal->areas[tree].made;

	for (size_t i = 0; i < journal->directory_count; i++)
		if (journal->directories[i].tree == tree && !*journal->directories[i].path)
			left = &journal->directories[i].left;
	/* Modes are set after everything else. */
	for (size_t i = 0; i < journal->op_count; i++)
		if (journal->ops[i].action == JOURNAL_SET && journal->ops[i].tree == tree && !*journal->ops[i].path)
			left = &journal->ops[i].left;
	return left;
}

static bool is_as_left(int root_fd, const struct identity *left)
{
	struct identity now;
	struct stat st;

	if (!left->mode || fstat(root_fd, &st) < 0)
		return false;
	identity_of_stat(&st, &now);
	return now.inode == left->inode && now.mode == left->mode && stamp_equal(now.ctime, left->ctime);
}

/*
 * The area's going changes the root once more. Where nobody else has written there since, the journal says so, else a
 * later judgement would take that for a change of the host's.
 */
static void note_root(struct transaction *transaction, size_t tree)
{
	struct identity left;
	struct stat st;

	if (fstat(transaction->place->tree_fds[tree], &st) < 0)
		return;
	identity_of_stat(&st, &left);
	journal_put_root_left(&transaction->writer, (uint32_t)tree, &left);
}

static int remove_far_area(struct transaction *transaction, size_t tree)
{
	const struct journal_area *area = &transaction->journal.areas[tree];
	bool is_ours = area->is_used && is_as_left(transaction->place->tree_fds[tree],
						   root_as_left(&transaction->journal, tree));
	int r;

	if (!area->is_used || !*area->name)
		return 0;
	/* What a race with the host left in it is the host's, and stays. */
	if (unlinkat(transaction->place->tree_fds[tree], area->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return errno == ENOTEMPTY ? 0 : -errno;
	r = restore_root(transaction, tree);
	if (r == 0 && is_ours)
		note_root(transaction, tree);
	return r;
}

static int clean_slots(struct transaction *transaction)
{
	const struct journal *journal = &transaction->journal;
	int r = 0;

	transaction->keeps_undone = keeps_undone(journal);
	for (size_t i = 0; i < journal->op_count && r == 0; i++)
		r = clean_slot(transaction, &journal->ops[i]);
	for (size_t i = 0; i < STAGE_TREES_MAX && r == 0; i++)
		r = remove_far_area(transaction, i);
	return r;
}

int transaction_clean(struct transaction *transaction, struct err *err)
{
	int r = clean_slots(transaction);

	if (r == 0) {
		journal_put_clean(&transaction->writer);
		r = journal_flush(&transaction->writer);
	}
	if (r < 0)
		err_set(err, ERR_STATE, -r, "apply", "it is done, but temporary files cannot be removed: "
						     "%s", strerror(-r));
	return r;
}

static int remove_area(struct transaction *transaction, size_t tree)
{
	const struct journal_area *area = &transaction->journal.areas[tree];
	int r;

	if (!area->is_used || !*area->name)
		return 0;
	/* Also where a crash came right behind the removal: the time of the root is still to be set. */
	r = path_remove_tree(transaction->place->tree_fds[tree], area->name);
	return r < 0 ? r : restore_root(transaction, tree);
}

int transaction_abandon(struct transaction *transaction, struct err *err)
{
	char name[TRANSACTION_SLOT_SIZE];
	int r = 0;

	for (size_t i = 0; i < STAGE_TREES_MAX && r == 0; i++)
		r = remove_area(transaction, i);
	/* The journal names the areas, so it goes last. */
	if (r == 0)
		r = path_remove_tree(transaction->dir_fd, TRANSACTION_SLOTS);
	if (r == 0)
		r = path_remove_tree(transaction->place->applies_fd,
				     transaction_slot_name(transaction->journal.number, name));
	if (r < 0)
		err_set(err, ERR_STATE, -r, "apply", "the prepared files cannot be removed: %s", strerror(-r));
	return r;
}

void transaction_take_back(struct transaction *transaction)
{
	struct identity journal;
	struct err ignored;

	if (transaction->dir_fd >= 0 && identity_at(transaction->dir_fd, JOURNAL_FILE, &journal) == 0 && !journal.mode)
		(void)!transaction_abandon(transaction, &ignored);
}

bool transaction_is_fatal(int error)
{
	static const int fatal[] = { ENOSPC, EDQUOT, ENOMEM, EIO, EROFS, EMFILE, ENFILE };

	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
		if (error == -fatal[i])
			return true;
	return false;
}

static int open_loaded(struct transaction *transaction, struct err *err)
{
	struct journal *journal = &transaction->journal;
	int r;

	transaction->slots_fd = transaction_open_directory(transaction->dir_fd, TRANSACTION_SLOTS);
	if (transaction->slots_fd < 0 && journal->is_committed)
		return err_set(err, ERR_STATE, -transaction->slots_fd, "apply", "applies/%u has lost its slots",
			       journal->number);
	r = journal->is_committed ? transaction_open_undone(transaction, err) : 0;
	if (r == 0)
		r = transaction_open_areas(transaction, false, err);
	if (r < 0 || !journal->is_committed)
		return r;
	r = journal_resume(transaction->dir_fd, journal, &transaction->writer);
	return r < 0 ? err_set(err, ERR_STATE, -r, "apply", "the journal cannot be opened: %s", strerror(-r)) : 0;
}

static int recover_loaded(struct transaction *transaction, struct transaction_recovered *recovered, struct err *err)
{
	const struct journal *journal = &transaction->journal;
	int r = open_loaded(transaction, err);

	if (r < 0)
		return r;
	if (!journal->source.is_published) {
		recovered->taken_back++;
		return transaction_abandon(transaction, err);
	}
	if (!journal->is_done) {
		recovered->finished++;
		r = transaction_run(transaction, err);
	}
	return r < 0 ? r : transaction_clean(transaction, err);
}

static int recover_number(struct transaction_place *place, uint32_t number, struct transaction_recovered *recovered,
			  struct err *err)
{
	cleanup_transaction struct transaction transaction;
	int r;

	transaction_init(&transaction, place);
	transaction.is_recovered = true;
	transaction.dir_fd = transaction_open_number(place->applies_fd, number);
	if (transaction.dir_fd < 0)
		return err_set(err, ERR_STATE, -transaction.dir_fd, "apply", "applies/%u cannot be opened: %s", number,
			       strerror(-transaction.dir_fd));
	r = journal_load(transaction.dir_fd, &transaction.journal);
	if (r == -EBADMSG) {
		err_set(err, ERR_STATE, EBADMSG, "apply", "the journal of apply %u is damaged", number);
		err_hint(err, "the kept files are in stage/applies/%u of the session; nothing was removed", number);
		return r;
	}
	if (r < 0 && r != -ENOENT)
		return err_set(err, ERR_STATE, -r, "apply", "the journal of apply %u cannot be read: %s", number,
			       strerror(-r));
	if (transaction.journal.is_clean)
		return 0;
	/* A journal without its first record: not even an area was made. */
	if (!transaction.journal.has_begun)
		transaction.journal.number = number;
	else if (transaction.journal.number != number ||
		 !str_equal(transaction.journal.session, place->record->session))
		return err_set(err, ERR_STATE, EBADMSG, "apply", "the journal in applies/%u belongs to another "
								 "session", number);
	return recover_loaded(&transaction, recovered, err);
}

int transaction_recover(struct transaction_place *place, struct transaction_recovered *ret_recovered, struct err *err)
{
	cleanup_free uint32_t *numbers = NULL;
	size_t count;
	int r = transaction_list(place->stage_fd, &numbers, &count);

	*ret_recovered = (struct transaction_recovered){ 0 };
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "apply", "applies/ cannot be read: %s", strerror(-r));
	for (size_t i = 0; i < count && r == 0; i++)
		r = recover_number(place, numbers[i], ret_recovered, err);
	return r;
}
