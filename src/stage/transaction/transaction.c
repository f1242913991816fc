/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How a crash is survived. A slot is a numbered name in a directory of ours on the same file system as the tree;
 * every op is one rename between the slot and the path (an exchange, or a move that never replaces), so the inode
 * that lies in the slot tells whether the op was done, and whatever was on the host is in the slot afterwards:
 * nothing is ever overwritten. Before the journal has its final name nothing of the host is touched, and recovery
 * removes the slots; from then on recovery goes on with the ops that are not done.
 */

#include "stage/transaction/transaction.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/layer.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

/* Up to so many files are synced one by one; beyond, the whole file system once. */
enum { SYNC_FILES_MAX = 16 };

void transaction_init(struct transaction *transaction, struct transaction_place *place)
{
	*transaction = (struct transaction){
		.place = place, .writer = JOURNAL_WRITER_NONE, .dir_fd = FD_NONE, .slots_fd = FD_NONE,
		.undone_slots_fd = FD_NONE, .parent_fd = FD_NONE,
	};
	for (size_t i = 0; i < STAGE_TREES_MAX; i++)
		transaction->area_fds[i] = FD_NONE;
}

void transaction_done(struct transaction *transaction)
{
	if (!transaction->place)
		return;
	journal_done(&transaction->journal);
	known_done(&transaction->known);
	journal_writer_done(&transaction->writer);
	close_fd(&transaction->dir_fd);
	close_fd(&transaction->slots_fd);
	close_fd(&transaction->undone_slots_fd);
	close_fd(&transaction->parent_fd);
	for (size_t i = 0; i < STAGE_TREES_MAX; i++)
		close_fd(&transaction->area_fds[i]);
	free(take_ptr(transaction->parent_path));
	transaction->place = NULL;
}

bool transaction_is_near(const struct transaction *transaction, size_t tree)
{
	return !*transaction->journal.areas[tree].name;
}

int transaction_area_of(const struct transaction *transaction, const struct journal_op *op)
{
	return op->area == transaction->journal.number ? transaction->area_fds[op->tree] : transaction->undone_slots_fd;
}

int transaction_parent(struct transaction *transaction, uint32_t tree, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;
	char *parent;

	*ret_name = slash ? slash + 1 : path;
	if (transaction->parent_fd >= 0 && transaction->parent_tree == tree &&
	    strlen(transaction->parent_path) == length && memcmp(transaction->parent_path, path, length) == 0)
		return transaction->parent_fd;
	parent = strndup(path, length);
	if (!parent)
		return -ENOMEM;
	close_fd(&transaction->parent_fd);
	free(transaction->parent_path);
	transaction->parent_path = parent;
	transaction->parent_tree = tree;
	transaction->parent_fd = stage_open_beneath(transaction->place->tree_fds[tree], parent,
						    O_PATH | O_DIRECTORY, 0);
	return transaction->parent_fd;
}

/* Beginning. */

/*
 * Whether a rename can go from one directory to the other. Two mounts of one file system are told apart before the
 * name is looked up, so a name that does not exist tells without touching anything.
 */
static bool is_same_mount(int slots_fd, int tree_fd)
{
	struct stat a, b;

	if (fstat(slots_fd, &a) < 0 || fstat(tree_fd, &b) < 0 || a.st_dev != b.st_dev)
		return false;
	return syscall(SYS_renameat2, slots_fd, "probe", tree_fd, ".atoll-probe", 0) < 0 && errno == ENOENT;
}

/* Every op is a rename with flags: a file system without them is refused before anything is begun there. */
static int check_exchange(int area_fd, const char *path, struct err *err)
{
	int r = 0;

	if (mkdirat(area_fd, "probe-a", 0700) < 0 || mkdirat(area_fd, "probe-b", 0700) < 0 ||
	    syscall(SYS_renameat2, area_fd, "probe-a", area_fd, "probe-b", RENAME_EXCHANGE) < 0)
		r = -errno;
	unlinkat(area_fd, "probe-a", AT_REMOVEDIR);
	unlinkat(area_fd, "probe-b", AT_REMOVEDIR);
	if (r == -EINVAL)
		err_set(err, ERR_STATE, EINVAL, "apply", "the file system of %s cannot exchange two names", path);
	else if (r < 0)
		err_set(err, ERR_STATE, -r, "apply", "nothing can be prepared for %s: %s", path, strerror(-r));
	return r;
}

static void identity_of_fd(int fd, struct identity *ret_identity)
{
	struct stat st;

	if (fstat(fd, &st) == 0)
		identity_of_stat(&st, ret_identity);
}

/* Opens the area of a tree, and makes it first where it is new. Another's directory of that name is not ours. */
static int open_area(struct transaction *transaction, size_t tree, bool is_new, struct err *err)
{
	const char *name = transaction->journal.areas[tree].name;
	int tree_fd = transaction_tree(transaction->place, tree, err);
	struct stat st;
	int fd;

	if (tree_fd < 0)
		return tree_fd;
	if (!*name) {
		fd = fd_duplicate(transaction->slots_fd);
	} else {
		struct journal_area *area = &transaction->journal.areas[tree];

		if (is_new && mkdirat(tree_fd, name, 0700) < 0)
			return err_set(err, ERR_STATE, errno, "apply", "%s/%s cannot be made: %s",
				       transaction->place->record->trees[tree].path, name, strerror(errno));
		if (is_new)
			identity_of_fd(tree_fd, &area->made);
		fd = stage_open_beneath(tree_fd, name, O_RDONLY | O_DIRECTORY, 0);
	}
	/* Recovery: it may be gone already, or was not made yet. */
	if (fd == -ENOENT && !is_new)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_STATE, fd < 0 ? -fd : errno, "apply", "the prepared files cannot be opened: %s",
			       strerror(fd < 0 ? -fd : errno));
	transaction->area_fds[tree] = fd;
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(err, ERR_STATE, EPERM, "apply", "%s in %s was made by somebody else", name,
			       transaction->place->record->trees[tree].path);
	return 0;
}

int transaction_open_areas(struct transaction *transaction, bool is_new, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < STAGE_TREES_MAX && r == 0; i++) {
		if (!transaction->journal.areas[i].is_used)
			continue;
		r = open_area(transaction, i, is_new, err);
		if (r == 0 && is_new)
			r = check_exchange(transaction->area_fds[i], transaction->place->record->trees[i].path, err);
	}
	return r;
}

static int choose_areas(struct transaction *transaction, const bool uses[STAGE_TREES_MAX], struct err *err)
{
	struct journal *journal = &transaction->journal;

	for (size_t i = 0; i < transaction->place->record->tree_count; i++) {
		struct journal_area *area = &journal->areas[i];
		int tree_fd;

		if (!uses[i])
			continue;
		tree_fd = transaction_tree(transaction->place, i, err);
		if (tree_fd < 0)
			return tree_fd;
		area->is_used = true;
		identity_of_fd(tree_fd, &area->root);
		if (!is_same_mount(transaction->slots_fd, tree_fd) &&
		    str_format(area->name, sizeof area->name, STAGE_RESERVED_PREFIX "%s-%u",
			       journal->session, journal->number) < 0)
			return err_set(err, ERR_INTERNAL, ENAMETOOLONG, "apply", "the name of an area is too long");
	}
	return 0;
}

static int make_number(struct transaction *transaction, struct err *err)
{
	cleanup_free uint32_t *numbers = NULL;
	char name[TRANSACTION_SLOT_SIZE];
	int applies_fd = transaction->place->applies_fd;
	size_t count;
	int r = transaction_list(transaction->place->stage_fd, &numbers, &count);

	if (r < 0)
		return err_set(err, ERR_STATE, -r, "apply", "applies/ cannot be read: %s", strerror(-r));
	transaction->journal.number = count ? numbers[count - 1] + 1 : 1;
	if (mkdirat(applies_fd, transaction_slot_name(transaction->journal.number, name), 0700) == 0)
		transaction->dir_fd = transaction_open_directory(applies_fd, name);
	if (transaction->dir_fd >= 0 && mkdirat(transaction->dir_fd, TRANSACTION_SLOTS, 0700) == 0)
		transaction->slots_fd = transaction_open_directory(transaction->dir_fd, TRANSACTION_SLOTS);
	if (transaction->slots_fd < 0)
		return err_set(err, ERR_STATE, errno, "apply", "applies/%s cannot be made: %s", name, strerror(errno));
	return 0;
}

/* The slots of the apply that an undo takes back. */
int transaction_open_undone(struct transaction *transaction, struct err *err)
{
	cleanup_fd int dir_fd = FD_NONE;

	if (!transaction->journal.undoes)
		return 0;
	dir_fd = transaction_open_number(transaction->place->applies_fd, transaction->journal.undoes);
	if (dir_fd >= 0)
		transaction->undone_slots_fd = transaction_open_directory(dir_fd, TRANSACTION_SLOTS);
	if (transaction->undone_slots_fd < 0)
		return err_set(err, ERR_STATE, ENOENT, "undo", "the files that apply %u replaced are no longer kept",
			       transaction->journal.undoes);
	return 0;
}

static int write_begin(struct transaction *transaction, struct err *err)
{
	int r = journal_create(transaction->dir_fd, &transaction->writer);

	if (r == 0) {
		journal_put_begin(&transaction->writer, &transaction->journal);
		r = journal_flush(&transaction->writer);
	}
	/* The names of the journal and of its directory must be on the disk before a directory in a tree is. */
	if (r == 0 && (fsync(transaction->dir_fd) < 0 || fsync(transaction->place->applies_fd) < 0))
		r = -errno;
	return r < 0 ? err_set(err, ERR_STATE, -r, "apply", "the journal cannot be written: %s", strerror(-r)) : 0;
}

int transaction_begin(struct transaction_place *place, enum journal_kind kind, uint32_t undoes,
		      const bool uses[STAGE_TREES_MAX], struct transaction *ret_transaction, struct err *err)
{
	struct journal *journal = &ret_transaction->journal;
	int r;

	transaction_init(ret_transaction, place);
	journal->kind = kind;
	journal->undoes = undoes;
	journal->time_ns = clock_realtime_ns();
	memcpy(journal->session, place->record->session, sizeof journal->session);
	r = make_number(ret_transaction, err);
	if (r == 0)
		r = transaction_open_undone(ret_transaction, err);
	if (r == 0)
		r = choose_areas(ret_transaction, uses, err);
	if (r == 0)
		r = write_begin(ret_transaction, err);
	if (r == 0)
		r = transaction_open_areas(ret_transaction, true, err);
	return r;
}

/* Committing. */

static int sync_slot(int area_fd, const char *name)
{
	cleanup_fd int fd = fd_open_at(area_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd < 0)
		return fd;
	return fsync(fd) < 0 ? -errno : 0;
}

static int sync_slots_singly(struct transaction *transaction)
{
	const struct journal *journal = &transaction->journal;

	for (size_t i = 0; i < journal->op_count; i++) {
		const struct journal_op *op = &journal->ops[i];
		char name[TRANSACTION_SLOT_SIZE];
		int r;

		if (!journal_op_moves(op) || !op->content.mode || op->area != journal->number)
			continue;
		r = sync_slot(transaction->area_fds[op->tree], transaction_slot_name(op->slot, name));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Few files: each by itself, for a whole file system may have gigabytes of others' data to write. */
static int sync_prepared(struct transaction *transaction)
{
	bool few = transaction->prepared <= SYNC_FILES_MAX && !transaction->has_unsyncable;

	if (transaction->has_attributes && syncfs(transaction->slots_fd) < 0)
		return -errno;

	if (few && sync_slots_singly(transaction) < 0)
		few = false;
	for (size_t i = 0; i < STAGE_TREES_MAX; i++)
		if (transaction->area_fds[i] >= 0 &&
		    (few ? fsync(transaction->area_fds[i]) : syncfs(transaction->area_fds[i])) < 0)
			return -errno;
	return 0;
}

int transaction_commit(struct transaction *transaction, struct err *err)
{
	struct transaction_place *place = transaction->place;
	int r = sync_prepared(transaction);

	if (r < 0)
		return err_set(err, ERR_STATE, -r, "apply", "the prepared files cannot be synced: %s", strerror(-r));
	journal_put_plan(&transaction->writer, &transaction->journal);
	r = journal_flush(&transaction->writer);
	if (r == 0 && place->announce) {
		r = place->announce(place->announce_context, transaction, err);
		if (r < 0)
			return r;
	}
	if (r == 0)
		r = journal_publish(transaction->dir_fd);
	transaction->journal.is_committed = r == 0;
	return r < 0 ? err_set(err, ERR_STATE, -r, "apply", "the journal cannot be written: %s", strerror(-r)) : 0;
}

/* Running. */

static int sync_parents_singly(struct transaction *transaction)
{
	const struct journal *journal = &transaction->journal;

	for (size_t i = 0; i < journal->directory_count; i++) {
		const struct journal_directory *directory = &journal->directories[i];
		cleanup_fd int fd = stage_open_beneath(transaction->place->tree_fds[directory->tree], directory->path,
						       O_RDONLY | O_DIRECTORY, 0);

		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd;
		if (fsync(fd) < 0)
			return -errno;
	}
	return 0;
}

static int sync_trees(struct transaction *transaction)
{
	bool few = transaction->journal.directory_count <= SYNC_FILES_MAX && sync_parents_singly(transaction) == 0;

	for (size_t i = 0; i < STAGE_TREES_MAX; i++) {
		int fd = transaction->area_fds[i];

		if (fd >= 0 && (few ? fsync(fd) : syncfs(fd)) < 0)
			return -errno;
	}
	if (transaction->undone_slots_fd >= 0 && fsync(transaction->undone_slots_fd) < 0)
		return -errno;
	return 0;
}

static int carry_all(struct transaction *transaction)
{
	struct journal *journal = &transaction->journal;
	struct transaction_place *place = transaction->place;
	int r = transaction_unlock(transaction);

	for (size_t i = 0; i < journal->op_count && r == 0; i++) {
		if (place->progress && i % 256 == 0)
			place->progress(place->context, "applying", i, journal->op_count);
		if (journal_op_moves(&journal->ops[i]))
			r = transaction_run_op(transaction, &journal->ops[i]);
	}
	if (r == 0)
		r = transaction_finish(transaction);
	return r < 0 ? r : sync_trees(transaction);
}

static int write_done(struct transaction *transaction)
{
	struct journal *journal = &transaction->journal;
	int r;

	for (size_t i = 0; i < journal->op_count; i++)
		journal_put_outcome(&transaction->writer, (uint32_t)i, &journal->ops[i]);
	for (size_t i = 0; i < journal->directory_count; i++)
		journal_put_directory_left(&transaction->writer, (uint32_t)i, &journal->directories[i].left);
	journal_put_done(&transaction->writer);
	r = journal_flush(&transaction->writer);
	if (r == 0)
		journal->is_done = true;
	return r;
}

int transaction_run(struct transaction *transaction, struct err *err)
{
	int r = carry_all(transaction);

	if (r == 0)
		r = transaction_keep(transaction, err);
	if (r == 0)
		r = write_done(transaction);
	if (r < 0 && !err->code) {
		err_set(err, ERR_STATE, -r, "apply", "the apply could not be finished: %s", strerror(-r));
		err_hint(err, "nothing is lost; atoll apply --resume goes on");
	}
	return r;
}

int transaction_execute(struct transaction *transaction, int r, struct err *err)
{
	bool is_empty = transaction->journal.op_count == 0;

	if (r == 0 && !is_empty)
		r = transaction_commit(transaction, err);
	if (r < 0 || is_empty) {
		transaction_take_back(transaction);
		return r;
	}
	r = transaction_run(transaction, err);
	return r == 0 ? transaction_clean(transaction, err) : r;
}
