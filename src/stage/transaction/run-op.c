/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One op. The host is looked at right before the rename, and what the rename took away is looked at right after: a
 * change that came between the two lands in the slot, is seen there, and is put back where it was. Nothing is ever
 * replaced by a rename: it exchanges, or moves to a name that must be free.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/transaction/transaction.h"

enum { FLAG_NOREPLACE = 1 << 0, FLAG_EXCHANGE = 1 << 1 };

/* Where an op happens. */
struct spot {
	int parent_fd, area_fd;
	const char *name;
	char slot[TRANSACTION_SLOT_SIZE];
};

int transaction_is_empty(int dir_fd, const char *name)
{
	DIR *dir = path_list(fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
	struct dirent *entry;
	int entries = 0;

	if (!dir)
		return -errno;
	while (!entries && (entry = readdir(dir)))
		entries += !str_equal(entry->d_name, ".") && !str_equal(entry->d_name, "..");
	closedir(dir);
	return !entries;
}

static int rename_plain(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return syscall(SYS_renameat2, from_fd, from, to_fd, to, flags) < 0 ? -errno : 0;
}

/* Lets the owner of a directory into it for the moment; *ret_mode is what it had. 1: done; 0: not the reason. */
static int open_up(int path_fd, uint32_t *ret_mode)
{
	struct stat st;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	*ret_mode = st.st_mode;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0700) == 0700)
		return 0;
	return path_chmod(path_fd, st.st_mode | 0700) < 0 ? 0 : 1;
}

/*
 * A directory that its owner made read-only refuses a new entry, and itself a new parent. All ends of the rename are
 * opened up in turn; a crash meanwhile leaves bits that transaction_finish() of the recovery takes off again.
 */
static int rename_opened(const struct spot *spot, int from_fd, const char *from, int to_fd, const char *to,
			 unsigned flags)
{
	cleanup_fd int host_fd = fd_open_at(spot->parent_fd, spot->name, O_PATH | O_NOFOLLOW, 0);
	cleanup_fd int slot_fd = fd_open_at(spot->area_fd, spot->slot, O_PATH | O_NOFOLLOW, 0);
	int fds[] = { spot->parent_fd, host_fd, slot_fd };
	bool opened[ARRAY_SIZE(fds)] = { false };
	uint32_t modes[ARRAY_SIZE(fds)];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		opened[i] = fds[i] >= 0 && open_up(fds[i], &modes[i]) > 0;
	r = rename_plain(from_fd, from, to_fd, to, flags);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (opened[i] && path_chmod(fds[i], modes[i]) < 0 && r == 0)
			r = -EACCES;
	return r;
}

static int rename_entry(const struct spot *spot, bool to_host, unsigned flags)
{
	int from_fd = to_host ? spot->area_fd : spot->parent_fd, to_fd = to_host ? spot->parent_fd : spot->area_fd;
	const char *from = to_host ? spot->slot : spot->name, *to = to_host ? spot->name : spot->slot;
	int r = rename_plain(from_fd, from, to_fd, to, flags);

	return r == -EACCES ? rename_opened(spot, from_fd, from, to_fd, to, flags) : r;
}

/* Whether an error means that the host is not what it was, rather than that the file system failed. */
static bool is_host_change(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EEXIST || error == -EXDEV ||
	       error == -ENOTEMPTY || error == -ESTALE;
}

static int end_op(struct journal_op *op, int r)
{
	op->outcome = r == 0 ? JOURNAL_APPLIED : is_host_change(r) ? JOURNAL_SKIPPED : JOURNAL_FAILED;
	op->errnum = op->outcome == JOURNAL_FAILED ? -r : 0;
	return 0;
}

/*
 * Whether nobody has touched the host's file since the plan, but for what was done to its other names here. Where a
 * crash came between, nobody knows what ctime that left.
 */
static bool has_ctime(const struct transaction *transaction, const struct journal_op *op, const struct identity *now)
{
	return S_ISDIR(now->mode) || !now->mode || stamp_equal(now->ctime, op->host.ctime) ||
	       known_has(&transaction->known, op->tree, now) || (transaction->is_recovered && op->host.links != 1);
}

/* The host's entry must be what the plan saw. */
static int check_host(const struct transaction *transaction, const struct spot *spot, const struct journal_op *op)
{
	struct identity now;
	int r = identity_at(spot->parent_fd, spot->name, &now);

	if (r < 0)
		return r;
	if (!identity_equal(&now, &op->host) || !has_ctime(transaction, op, &now))
		return -ESTALE;
	if (!S_ISDIR(now.mode))
		return 0;
	r = transaction_is_empty(spot->parent_fd, spot->name);
	/* Whoever may not look into it gets the answer from the check behind the rename. */
	return r == 0 ? -ENOTEMPTY : r < 0 && r != -EACCES ? r : 0;
}

/* What was taken off the host and lies in the slot now: is it what the plan saw? */
static int check_taken(const struct spot *spot, const struct journal_op *op)
{
	struct identity taken;
	int r = identity_at(spot->area_fd, spot->slot, &taken);

	if (r < 0)
		return r;
	/* Not the ctime: the rename itself has changed that. */
	if (!identity_equal(&taken, &op->host))
		return -ESTALE;
	if (!S_ISDIR(taken.mode))
		return 0;
	r = transaction_is_empty(spot->area_fd, spot->slot);
	return r == 0 ? -ENOTEMPTY : r < 0 && r != -EACCES ? r : 0;
}

static int put_back(const struct spot *spot, const struct journal_op *op)
{
	struct identity slot;
	int r = rename_entry(spot, true, op->action == JOURNAL_REMOVE ? FLAG_NOREPLACE : FLAG_EXCHANGE);

	if (r < 0 || op->action == JOURNAL_REMOVE)
		return r;
	/* The exchange may have brought yet another change of the host into the slot, where it is safe. */
	r = identity_at(spot->area_fd, spot->slot, &slot);
	return r == 0 && slot.inode != op->content.inode ? -EIO : r;
}

/*
 * A rename to another directory writes the `..` of the directory that is renamed, which xfs counts as a change of it.
 * Where entries follow, transaction_finish() sets the time once more.
 */
static void restore_mtime(const struct spot *spot, const struct journal_op *op)
{
	cleanup_fd int fd = FD_NONE;
	struct identity now;
	struct stat st;

	if (!S_ISDIR(op->content.mode))
		return;
	fd = fd_open_at(spot->parent_fd, spot->name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	identity_of_stat(&st, &now);
	if (now.inode == op->content.inode && !stamp_equal(now.mtime, op->content.mtime))
		(void)!transaction_set_mtime(fd, op->content.mtime);
}

/*
 * After the rename, also when a crash came behind it. A change of the host that was taken away goes back; where the
 * host has put yet another thing there meanwhile, what was taken stays in the slot, and the outcome says so.
 */
static int verify(const struct spot *spot, struct journal_op *op)
{
	int r = op->action == JOURNAL_ADD ? 0 : check_taken(spot, op);

	if (r < 0) {
		int back = put_back(spot, op);

		return back < 0 ? -EIO : r;
	}
	restore_mtime(spot, op);
	/* Nothing of ours is left there. */
	if (op->action == JOURNAL_REMOVE) {
		op->left = (struct identity){ 0 };
		return 0;
	}
	r = identity_at(spot->parent_fd, spot->name, &op->left);
	/*
	 * Somebody has replaced it already, or written into it (in a recovery, anything since the crash): it is not
	 * ours to take back then.
	 */
	if (r < 0 || (op->content.mode && !identity_equal(&op->left, &op->content)))
		op->left = (struct identity){ 0 };
	return 0;
}

/*
 * In a recovery the directory may be gone that an op was done in, by a later op of the same transaction. There is no
 * way back then, and none is needed unless the slot holds something that the plan did not see: that stays where it
 * is.
 */
static int verify_taken(const struct spot *spot, struct journal_op *op)
{
	op->left = (struct identity){ 0 };
	return op->action == JOURNAL_ADD || check_taken(spot, op) == 0 ? 0 : -EIO;
}

/* Whether the rename has been made: 1, 0; the slot tells. -errno. */
static int is_made(const struct spot *spot, const struct journal_op *op)
{
	struct identity slot;
	int r = identity_at(spot->area_fd, spot->slot, &slot);

	if (r < 0)
		return r;
	if (op->action == JOURNAL_ADD)
		return !slot.mode;
	if (op->action == JOURNAL_REMOVE)
		return slot.mode != 0;
	return !slot.mode ? -EIO : slot.inode != op->content.inode;
}

static int make(const struct transaction *transaction, const struct spot *spot, const struct journal_op *op)
{
	int r = check_host(transaction, spot, op);

	if (r < 0)
		return r;
	return rename_entry(spot, op->action != JOURNAL_REMOVE,
			    op->action == JOURNAL_REPLACE ? FLAG_EXCHANGE : FLAG_NOREPLACE);
}

/* The rename has moved the ctime of all other names, of what was taken and of what was brought. */
static int note_links(struct transaction *transaction, const struct spot *spot, const struct journal_op *op)
{
	struct identity taken;
	int r = op->left.links > 1 ? known_put(&transaction->known, op->tree, &op->left) : 0;

	if (r < 0 || op->host.links <= 1 || identity_at(spot->area_fd, spot->slot, &taken) < 0)
		return r;
	return known_put(&transaction->known, op->tree, &taken);
}

int transaction_run_op(struct transaction *transaction, struct journal_op *op)
{
	struct spot spot = { .area_fd = transaction_area_of(transaction, op) };
	int r;

	if (op->outcome != JOURNAL_PENDING)
		return 0;
	if (spot.area_fd < 0)
		return -EBADMSG;
	transaction_slot_name(op->slot, spot.slot);
	/* Slots are ours: nothing but a crash can have made the rename before. */
	r = transaction->is_recovered ? is_made(&spot, op) : 0;
	spot.parent_fd = transaction_parent(transaction, op->tree, op->path, &spot.name);
	if (spot.parent_fd == -ENOMEM || spot.parent_fd == -EMFILE || spot.parent_fd == -ENFILE)
		return spot.parent_fd;
	if (spot.parent_fd < 0)
		return end_op(op, r == 1 ? verify_taken(&spot, op) : spot.parent_fd);
	if (r == 0)
		r = make(transaction, &spot, op);
	if (r >= 0)
		r = verify(&spot, op);
	if (r == 0)
		r = note_links(transaction, &spot, op);
	return r == -ENOMEM ? r : end_op(op, r);
}
