/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What comes behind the renames: the times of directories that the renames changed by the way, then modes, and the
 * copies of what was kept on another file system. All of it may be done twice with the same result.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/attributes.h"
#include "stage/layer/copy.h"
#include "stage/layer/layer.h"
#include "stage/layer/links.h"
#include "stage/transaction/transaction.h"

static int open_path(struct transaction *transaction, uint32_t tree, const char *path)
{
	return stage_open_beneath(transaction->place->tree_fds[tree], path, O_PATH | O_DIRECTORY, 0);
}

int transaction_set_mtime(int path_fd, struct stamp mtime)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, stamp_to_timespec(mtime) };
	char link[32];
	int r = str_format(link, sizeof link, "/proc/self/fd/%d", path_fd);

	if (r < 0)
		return r;
	return utimensat(AT_FDCWD, link, times, 0) < 0 ? -errno : 0;
}

/* Only a directory in which all went well looks as it was meant to. */
static void mark_incomplete(struct journal *journal)
{
	for (size_t i = 0; i < journal->op_count; i++)
		if (journal_op_moves(&journal->ops[i]) && journal->ops[i].outcome != JOURNAL_APPLIED)
			journal->directories[journal->ops[i].directory].is_incomplete = true;
}

/* An op sets its mode in the end, once nothing below it is looked up any more. */
static bool is_set_later(const struct journal *journal, const struct journal_directory *directory)
{
	for (size_t i = 0; i < journal->op_count; i++)
		if (journal->ops[i].action == JOURNAL_SET && journal->ops[i].tree == directory->tree &&
		    str_equal(journal->ops[i].path, directory->path))
			return true;
	return false;
}

static void settle_directory(struct transaction *transaction, struct journal_directory *directory)
{
	cleanup_fd int fd = open_path(transaction, directory->tree, directory->path);
	struct stat st;

	/* Gone, or somebody else's by now. */
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	/* A crash came while it was opened up for a rename. */
	if (st.st_ino == directory->before.inode && (directory->before.mode & 0700) != 0700 &&
	    (st.st_mode & 07777) == ((directory->before.mode & 07777) | 0700) &&
	    !is_set_later(&transaction->journal, directory) && path_chmod(fd, directory->before.mode) < 0)
		return;
	if (directory->has_wanted && !directory->is_incomplete)
		(void)!transaction_set_mtime(fd, directory->wanted_mtime);
	if (fstat(fd, &st) == 0)
		identity_of_stat(&st, &directory->left);
}

/* The slots of an undo are those of its apply. */
static int set_attributes(const struct transaction *transaction, const struct journal_op *op, int path_fd)
{
	bool is_undo = transaction->journal.kind == JOURNAL_UNDO;
	int slots_fd = is_undo ? transaction->undone_slots_fd : transaction->slots_fd;
	char name[TRANSACTION_SLOT_SIZE];
	cleanup_fd int kept_fd = transaction_open_directory(slots_fd, transaction_slot_name(op->slot + is_undo, name));
	cleanup_fd int fd = stage_open_beneath(path_fd, "", O_RDONLY | O_DIRECTORY, 0);

	if (kept_fd < 0 || fd < 0)
		return kept_fd < 0 ? kept_fd : fd;
	return attributes_match(kept_fd, fd, attributes_is_content);
}

/* As the plan saw it, opened up by us meanwhile, or set already before a crash; else the host has set its own. */
static bool is_expected_mode(const struct journal_op *op, uint32_t mode)
{
	mode &= 07777;
	return mode == (op->host.mode & 07777) || mode == ((op->host.mode & 07777) | 0700) ||
	       mode == (op->content.mode & 07777);
}

static int set_directory(struct transaction *transaction, struct journal_op *op)
{
	cleanup_fd int fd = open_path(transaction, op->tree, op->path);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ino != op->host.inode || !is_expected_mode(op, st.st_mode))
		return -ESTALE;
	/* Who may not write a directory sets no attribute on it. An ACL changes the mode by the way: that is last. */
	r = 0;
	if (op->flags & JOURNAL_SETS_XATTRS && !transaction->place->is_root && (st.st_mode & 0700) != 0700)
		r = path_chmod(fd, st.st_mode | 0700);
	if (r == 0 && op->flags & JOURNAL_SETS_XATTRS)
		r = set_attributes(transaction, op, fd);
	if (r == 0)
		r = path_chmod(fd, op->content.mode);
	if (r == 0 && op->flags & JOURNAL_SETS_MTIME)
		r = transaction_set_mtime(fd, op->content.mtime);
	if (r == 0 && fstat(fd, &st) == 0)
		identity_of_stat(&st, &op->left);
	return r;
}

/*
 * What the host has must be what was looked at, or what this transaction has made of it by a merge (whose ctime is that
 * of the rename). To take a decision back nothing has to be there.
 */
static int keep_decision(struct transaction *transaction, struct journal_op *op)
{
	const char *name;
	cleanup_fd int fd = FD_NONE;
	int tree_fd = transaction->place->tree_fds[op->tree], r;

	if (transaction->journal.kind == JOURNAL_UNDO || !*op->path)
		return 0;
	fd = stage_open_parent(tree_fd, op->path, &name);
	op->left = (struct identity){ 0 };
	r = fd < 0 ? fd : identity_at(fd, name, &op->left);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		r = 0;
	if (r < 0)
		return r;
	if (!identity_equal(&op->left, &op->host))
		return -ESTALE;
	return !op->left.mode || S_ISDIR(op->left.mode) || op->flags & JOURNAL_MERGED ||
			       stamp_equal(op->left.ctime, op->host.ctime)
		       ? 0
		       : -ESTALE;
}

int transaction_unlock(struct transaction *transaction)
{
	struct journal *journal = &transaction->journal;

	/* The plan has them deepest first; the way in is from the top. */
	for (size_t i = journal->op_count; i-- > 0;) {
		const struct journal_op *op = &journal->ops[i];
		cleanup_fd int fd = FD_NONE;
		struct stat st;

		if (transaction->place->is_root || op->action != JOURNAL_SET)
			continue;
		fd = open_path(transaction, op->tree, op->path);
		if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != op->host.inode || (st.st_mode & 0700) == 0700)
			continue;
		if (path_chmod(fd, st.st_mode | 0700) < 0)
			continue;
	}
	return 0;
}

/* A directory that is not there any more is the host's doing, unless it was made here: then this undo has taken it. */
static uint32_t outcome_of_set(const struct journal_op *op, int r)
{
	static const int gone[] = { -ENOENT, -ENOTDIR, -ELOOP, -ESTALE };

	if (r == 0)
		return JOURNAL_APPLIED;
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		if (r == gone[i])
			return op->flags & JOURNAL_LENT ? JOURNAL_APPLIED : JOURNAL_SKIPPED;
	return JOURNAL_FAILED;
}

int transaction_finish(struct transaction *transaction)
{
	struct journal *journal = &transaction->journal;

	mark_incomplete(journal);
	for (size_t i = 0; i < journal->directory_count; i++)
		settle_directory(transaction, &journal->directories[i]);
	for (size_t i = 0; i < journal->op_count; i++) {
		struct journal_op *op = &journal->ops[i];
		int r;

		if (journal_op_moves(op))
			continue;
		r = op->action == JOURNAL_SET ? set_directory(transaction, op) : keep_decision(transaction, op);
		op->outcome = outcome_of_set(op, r);
		op->errnum = op->outcome == JOURNAL_FAILED ? -r : 0;
	}
	return 0;
}

/* One kept entry; what an interrupted attempt left of the copy goes first. */
static int keep_slot(struct transaction *transaction, struct links *links, const struct journal_op *op)
{
	char name[TRANSACTION_SLOT_SIZE], first[TRANSACTION_SLOT_SIZE];
	struct copy copy = {
		.from_fd = transaction->area_fds[op->tree], .from = transaction_slot_name(op->slot, name),
		.to_fd = transaction->slots_fd, .to = name, .kind = COPY_EXACT,
	};
	uint32_t slot;
	int r = 0;

	if (unlinkat(copy.to_fd, name, S_ISDIR(op->host.mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
		return -errno;
	if (S_ISREG(op->host.mode) && op->host.links > 1)
		r = links_find_or_put(links, op->tree, 0, op->host.inode, op->slot, &slot);
	if (r < 0)
		return r;
	if (r == 1)
		return linkat(copy.to_fd, transaction_slot_name(slot, first), copy.to_fd, name, 0) < 0 ? -errno : 0;
	r = copy_entry(&copy);
	return r == COPY_CHANGED ? -EBUSY : r == COPY_REFUSED ? -EBADMSG : r;
}

int transaction_keep(struct transaction *transaction, struct err *err)
{
	const struct journal *journal = &transaction->journal;
	cleanup_links struct links links = { 0 };
	size_t kept = 0;

	/* What an undo takes off the host came from a layer: it is there still. */
	if (journal->kind != JOURNAL_APPLY)
		return 0;
	for (size_t i = 0; i < journal->op_count; i++) {
		const struct journal_op *op = &journal->ops[i];
		int r;

		if (transaction_is_near(transaction, op->tree) || op->outcome != JOURNAL_APPLIED || !op->host.mode ||
		    !journal_op_moves(op))
			continue;
		r = keep_slot(transaction, &links, op);
		kept++;
		if (r < 0) {
			err_set(err, ERR_STATE, -r, "apply", "the replaced files cannot be kept: %s", strerror(-r));
			err_hint(err, "free some space in the state directory, then run atoll apply --resume");
			return r;
		}
	}
	if (kept && syncfs(transaction->slots_fd) < 0)
		return err_set(err, ERR_STATE, errno, "apply", "the replaced files cannot be synced: %s",
			       strerror(errno));
	return 0;
}
