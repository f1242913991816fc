/* SPDX-License-Identifier: Apache-2.0 */

/* Which apply, which of its ops, and whether the host lets them go back. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "os/path.h"
#include "stage/layer/layer.h"
#include "stage/record/paths.h"
#include "stage/apply/undo.h"

const char *const undo_verdict_names[UNDO_VERDICT_COUNT] = {
	[UNDO_UNWANTED] = "unwanted", [UNDO_TAKEN] = "undone", [UNDO_ALREADY] = "already",
	[UNDO_CHANGED] = "changed", [UNDO_FAILED] = "failed",
};

void undo_done(struct undo *undo)
{
	journal_done(&undo->apply);
	known_done(&undo->known);
	free(undo->items);
	*undo = (struct undo){ 0 };
}

/* The item of a slot; slots ascend with the ops. NULL when the journal has none such. */
static struct undo_item *item_of_slot(struct undo *undo, uint32_t slot)
{
	size_t low = 0, high = undo->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (undo->items[middle].op->slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < undo->count && undo->items[low].op->slot == slot ? &undo->items[low] : NULL;
}

static int make_items(struct undo *undo)
{
	undo->count = undo->apply.op_count;
	undo->items = calloc(undo->count + 1, sizeof *undo->items);
	if (!undo->items)
		return -ENOMEM;
	for (size_t i = 0; i < undo->count; i++) {
		undo->items[i].op = &undo->apply.ops[i];
		undo->items[i].verdict = undo->apply.ops[i].outcome == JOURNAL_APPLIED ? UNDO_TAKEN : UNDO_ALREADY;
	}
	return 0;
}

/* What earlier undos of this apply have taken back, and what all transactions since have left. */
static int mark_undone(int stage_fd, struct undo *undo, const uint32_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		cleanup_journal struct journal journal = { 0 };
		int r = numbers[i] > undo->apply.number ? transaction_load(stage_fd, numbers[i], &journal) : -ENOENT;

		if (r == -ENOMEM)
			return r;
		if (r < 0 || !journal.is_done)
			continue;
		r = known_put_journal(&undo->known, &journal);
		if (r < 0)
			return r;
		if (journal.undoes != undo->apply.number)
			continue;
		for (size_t k = 0; k < journal.op_count; k++) {
			struct undo_item *item = journal.ops[k].outcome == JOURNAL_APPLIED ?
						 item_of_slot(undo, journal.ops[k].slot) : NULL;

			if (item)
				item->verdict = UNDO_ALREADY;
		}
	}
	return 0;
}

/* 0: read; 1: it is no finished apply. */
static int load_apply(int stage_fd, uint32_t number, const uint32_t *numbers, size_t count, struct undo *ret_undo)
{
	int r = transaction_load(stage_fd, number, &ret_undo->apply);

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return 1;
	if (!ret_undo->apply.is_done || ret_undo->apply.kind != JOURNAL_APPLY) {
		undo_done(ret_undo);
		return 1;
	}
	r = make_items(ret_undo);
	if (r == 0)
		r = known_put_journal(&ret_undo->known, &ret_undo->apply);
	return r == 0 ? mark_undone(stage_fd, ret_undo, numbers, count) : r;
}

static size_t count_taken(const struct undo *undo)
{
	size_t taken = 0;

	for (size_t i = 0; i < undo->count; i++)
		taken += undo->items[i].verdict == UNDO_TAKEN && journal_op_is_shown(undo->items[i].op);
	return taken;
}

static size_t count_applied(const struct undo *undo)
{
	size_t applied = 0;

	for (size_t i = 0; i < undo->count; i++)
		applied += undo->items[i].op->outcome == JOURNAL_APPLIED &&
			   journal_op_is_shown(undo->items[i].op);
	return applied;
}

int undo_list(int stage_fd, struct undo_entry **ret_entries, size_t *ret_count)
{
	cleanup_free uint32_t *numbers = NULL;
	cleanup_free struct undo_entry *entries = NULL;
	size_t count, used = 0;
	int r = transaction_list(stage_fd, &numbers, &count);

	*ret_count = 0;
	if (r < 0)
		return r;
	entries = calloc(count + 1, sizeof *entries);
	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		cleanup_undo struct undo undo = { 0 };

		r = load_apply(stage_fd, numbers[i], numbers, count, &undo);
		if (r < 0)
			return r;
		if (r == 1)
			continue;
		entries[used] = (struct undo_entry){ .number = numbers[i], .time_ns = undo.apply.time_ns,
						     .applied = count_applied(&undo) };
		entries[used].undone = entries[used].applied - count_taken(&undo);
		used++;
	}
	*ret_entries = take_ptr(entries);
	*ret_count = used;
	return 0;
}

static int fail_none(uint32_t number, struct err *err)
{
	if (number)
		err_set(err, ERR_NOT_FOUND, ENOENT, "undo", "there is no apply %u of this session", number);
	else
		err_set(err, ERR_NOT_FOUND, ENOENT, "undo", "nothing is applied that could be taken back");
	err_hint(err, "atoll undo --list shows what was applied");
	return -ENOENT;
}

int undo_open(struct transaction_place *place, uint32_t number, struct undo *ret_undo, struct err *err)
{
	cleanup_free uint32_t *numbers = NULL;
	size_t count;
	int r = transaction_list(place->stage_fd, &numbers, &count);

	*ret_undo = (struct undo){ 0 };
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "undo", "applies/ cannot be read: %s", strerror(-r));
	for (size_t i = count; i-- > 0;) {
		if (number && numbers[i] != number)
			continue;
		r = load_apply(place->stage_fd, numbers[i], numbers, count, ret_undo);
		if (r < 0)
			return err_set(err, ERR_INTERNAL, -r, "undo", "the journal cannot be read: %s", strerror(-r));
		if (r == 0 && (number || count_taken(ret_undo)))
			return 0;
		undo_done(ret_undo);
	}
	return fail_none(number, err);
}

/* Completing. */

static bool took_directory(const struct journal_op *op)
{
	return journal_op_moves(op) && S_ISDIR(op->host.mode);
}

/* What was in a directory that went can only go back into it. */
static void take_above(struct undo *undo, const struct paths *gone, const struct journal_op *op)
{
	size_t length = paths_parent(op->path, strlen(op->path));

	for (; length; length = paths_parent(op->path, length)) {
		uint32_t at = paths_find(gone, op->tree, op->path, length);

		/* What is above one that is taken is its own affair, or was settled with it. */
		if (at == PATHS_NONE || undo->items[at].verdict == UNDO_TAKEN)
			return;
		if (undo->items[at].verdict == UNDO_UNWANTED) {
			undo->items[at].verdict = UNDO_TAKEN;
			undo->items[at].is_implied = true;
		}
	}
}

static int imply(struct undo *undo)
{
	cleanup_paths struct paths gone = { 0 };
	int r = 0;

	for (size_t i = 0; i < undo->count && r == 0; i++)
		if (took_directory(undo->items[i].op))
			r = paths_put(&gone, undo->items[i].op->tree, undo->items[i].op->path,
				      strlen(undo->items[i].op->path), (uint32_t)i);
	for (size_t i = 0; i < undo->count && r == 0; i++)
		if (undo->items[i].verdict == UNDO_TAKEN)
			take_above(undo, &gone, undo->items[i].op);
	return r;
}

/* The directory that was looked into last: paths come in the order of the tree. */
struct directory {
	int fd;                /* owned; or why it cannot be opened */
	uint32_t tree;
	const char *path;      /* of an entry in it, borrowed; NULL: none yet */
	size_t length;         /* of the directory's part of path */
};

/* The directory that holds an op, borrowed until the next call, and its last component; as stage_open_parent(). */
static int open_directory(struct directory *last, int tree_fd, const struct journal_op *op, const char **ret_name)
{
	size_t length = paths_parent(op->path, strlen(op->path));

	if (!last->path || last->tree != op->tree || last->length != length ||
	    memcmp(last->path, op->path, length) != 0) {
		close_fd(&last->fd);
		*last = (struct directory){ .fd = stage_open_parent(tree_fd, op->path, ret_name), .tree = op->tree,
					    .path = op->path, .length = length };
	}
	*ret_name = op->path + length + (length != 0);
	return last->fd;
}

/*
 * Whether the host has at the path what the apply left there. 1, 0, -errno. The ctime is one that we gave, to this name
 * of a file or to another, or by what was done in a directory since: then nobody else has written to it, or set an
 * attribute, whatever its size and times are.
 */
static int is_as_left(const struct undo *undo, int tree_fd, struct undo_item *item, struct directory *last)
{
	const struct journal_op *op = item->op;
	struct identity now;
	const char *name;
	int parent_fd, r;

	/* A decision can be taken back whatever the host has there by now. */
	if (op->action == JOURNAL_KEEP || (op->action == JOURNAL_SET && !*op->path))
		return 1;
	parent_fd = open_directory(last, tree_fd, op, &name);
	/*
	 * Below a directory that went too, or has become a file or a link: the way is free once that is back. A link of
	 * the host's stops the op itself, which is never led through one.
	 */
	if (parent_fd == -ENOENT || parent_fd == -ENOTDIR || parent_fd == -ELOOP)
		return op->action == JOURNAL_REMOVE;
	if (parent_fd < 0)
		return parent_fd == -EXDEV ? 0 : parent_fd;
	r = identity_at(parent_fd, name, &now);
	if (r < 0)
		return r;
	if (op->action == JOURNAL_REMOVE)
		return !now.mode;
	item->ctime = now.ctime;
	return op->left.mode && identity_equal(&now, &op->left) && known_has(&undo->known, op->tree, &now);
}

/*
 * A directory that the apply closed to its owner (chmod 000), and that is as it was left: opened now, since nothing
 * below it could be looked up, and its own mode comes back at the end.
 */
static int open_closed(struct undo *undo, int tree_fd, struct undo_item *item, struct directory *last)
{
	const struct journal_op *op = item->op;
	struct identity opened;
	struct stat st;
	cleanup_fd int fd = FD_NONE;
	int r = is_as_left(undo, tree_fd, item, last);

	if (r <= 0)
		return r;
	fd = stage_open_beneath(tree_fd, op->path, O_PATH | O_DIRECTORY, 0);
	r = fd < 0 ? fd : path_chmod(fd, op->content.mode | 0700);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return r;
	identity_of_stat(&st, &opened);
	return known_put(&undo->known, op->tree, &opened);
}

static int open_all_closed(struct transaction_place *place, struct undo *undo, struct err *err)
{
	struct directory last = { .fd = FD_NONE };
	int tree_fd = 0, r = 0;

	/* The plan has them deepest first; the way in is from the top. */
	for (size_t i = undo->count; i-- > 0 && tree_fd >= 0 && r != -ENOMEM && !place->is_root;) {
		struct undo_item *item = &undo->items[i];

		if (item->verdict != UNDO_TAKEN || item->op->action != JOURNAL_SET || !*item->op->path ||
		    (item->op->content.mode & 0500) == 0500)
			continue;
		tree_fd = transaction_tree(place, item->op->tree, err);
		r = tree_fd < 0 ? 0 : open_closed(undo, tree_fd, item, &last);
	}
	close_fd(&last.fd);
	return r == -ENOMEM ? err_set(err, ERR_INTERNAL, ENOMEM, "undo", "out of memory") : tree_fd < 0 ? tree_fd : 0;
}

int undo_complete(struct transaction_place *place, struct undo *undo, struct err *err)
{
	struct directory last = { .fd = FD_NONE };
	int r = imply(undo), tree_fd = 0;

	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "undo", "%s", strerror(-r));
	r = open_all_closed(place, undo, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < undo->count && tree_fd >= 0; i++) {
		struct undo_item *item = &undo->items[i];

		if (item->verdict != UNDO_TAKEN)
			continue;
		tree_fd = transaction_tree(place, item->op->tree, err);
		r = tree_fd < 0 ? 1 : is_as_left(undo, tree_fd, item, &last);
		if (r == 1)
			continue;
		item->verdict = r == 0 ? UNDO_CHANGED : UNDO_FAILED;
		item->errnum = r < 0 ? -r : 0;
	}
	close_fd(&last.fd);
	return tree_fd < 0 ? tree_fd : 0;
}
