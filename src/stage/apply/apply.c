/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of the ops is that of the changes, which is safe: what goes, goes deepest first, what comes, comes from the
 * top, and a directory that becomes a file is emptied before. Modes of directories come last, deepest first, since
 * they may close the way to what is below.
 */

#include "stage/apply/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "os/clone.h"
#include "os/fd.h"
#include "stage/layer/attributes.h"
#include "stage/layer/copy.h"
#include "stage/layer/links.h"
#include "stage/record/paths.h"


struct preparation {
	struct transaction *transaction;
	struct apply *apply;
	struct links links;
	struct paths directories;      /* of the journal, by path */
	struct paths made;             /* directories that ops make: the index of the op */
	uint32_t *items;               /* the item of each op; owned */
	size_t item_capacity;
	uint32_t next_slot;
	/* The directory of a layer that was used last. */
	int layer_fd;
	size_t layer_tree, layer;
	const char *layer_path;
	size_t layer_length;
};

static void preparation_done(struct preparation *preparation)
{
	links_done(&preparation->links);
	paths_done(&preparation->directories);
	paths_done(&preparation->made);
	free(preparation->items);
	close_fd(&preparation->layer_fd);
}

/* The directory in its layer that holds the staged bytes of a change. */
static int layer_directory(struct preparation *preparation, const struct stage_change *change)
{
	const struct stage_stack *stack = &preparation->apply->stacks[change->tree];
	size_t length = paths_parent(change->path, strlen(change->path));
	cleanup_free char *parent = NULL;

	if (preparation->layer_fd >= 0 && preparation->layer_tree == change->tree &&
	    preparation->layer == change->layer && preparation->layer_length == length &&
	    memcmp(preparation->layer_path, change->path, length) == 0)
		return preparation->layer_fd;
	parent = strndup(change->path, length);
	if (!parent)
		return -ENOMEM;
	close_fd(&preparation->layer_fd);
	preparation->layer_tree = change->tree;
	preparation->layer = change->layer;
	preparation->layer_path = change->path;
	preparation->layer_length = length;
	preparation->layer_fd = stage_open_beneath(stack->layers[change->layer], parent, O_PATH | O_DIRECTORY, 0);
	return preparation->layer_fd;
}

static struct journal_op *add_op(struct preparation *preparation, const struct stage_change *change, uint32_t item)
{
	struct journal *journal = &preparation->transaction->journal;
	struct journal_op *op;

	if (journal->op_count >= preparation->item_capacity) {
		size_t wanted = preparation->item_capacity ? preparation->item_capacity * 2 : 64;
		uint32_t *grown = realloc(preparation->items, wanted * sizeof *grown);

		if (!grown)
			return NULL;
		preparation->items = grown;
		preparation->item_capacity = wanted;
	}
	op = journal_add_op(journal);
	if (!op)
		return NULL;
	preparation->items[journal->op_count - 1] = item;
	op->tree = (uint32_t)change->tree;
	op->path = change->path;
	op->area = journal->number;
	/* Never one that was given back: other names of the file in it may be linked to it. */
	op->slot = preparation->next_slot++;
	return op;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The other names of a file that was copied already. 1: linked; 0: it is to be copied. */
static int link_copied(struct preparation *preparation, const struct stage_change *change, struct journal_op *op)
{
	char first[TRANSACTION_SLOT_SIZE], name[TRANSACTION_SLOT_SIZE];
	int area_fd = preparation->transaction->area_fds[change->tree], r;
	uint32_t slot;

	if (!S_ISREG(change->staged.st_mode) || change->staged.st_nlink < 2)
		return 0;
	r = links_find_or_put(&preparation->links, op->tree, change->staged.st_dev, change->staged.st_ino, op->slot,
			      &slot);
	if (r <= 0)
		return r;
	/*
	 * The first one may have been thrown away since it changed while it was read; this one is read by itself
	 * then.
	 */
	if (linkat(area_fd, transaction_slot_name(slot, first), area_fd, transaction_slot_name(op->slot, name), 0) < 0)
		return errno == ENOENT || errno == EMLINK ? 0 : -errno;
	r = identity_at(area_fd, name, &op->content);
	return r < 0 ? r : 1;
}

/*
 * Whether the bytes are those of the file that was judged, and not of what the agent has put there since. The ctime
 * tells also of a file with many names: here nobody but the agent gives it another one, and all else can be set back.
 */
static bool is_as_judged(const struct identity *source, const struct stat *judged)
{
	struct identity seen;

	identity_of_stat(judged, &seen);
	return identity_equal(source, &seen) && (S_ISDIR(seen.mode) || stamp_equal(source->ctime, seen.ctime));
}

/*
 * What goes on below a directory moves its times, so of one with attributes nobody can tell whether they are those
 * that were judged; such a one waits until it stands still.
 */
static int check_directory(const struct identity *source, const struct stat *judged, int area_fd, const char *name)
{
	struct identity seen;
	cleanup_fd int fd = FD_NONE;

	identity_of_stat(judged, &seen);
	if (source->mode != seen.mode)
		return -ESTALE;
	if (stamp_equal(source->ctime, seen.ctime))
		return 0;
	fd = transaction_open_directory(area_fd, name);
	return fd < 0 ? fd : attributes_has(fd, attributes_is_content) ? -ESTALE : 0;
}

/* Even the owner of a directory needs these bits to put something into it; JOURNAL_SET takes them off in the end. */
static int make_passable(struct preparation *preparation, int area_fd, const char *name, struct journal_op *op)
{
	if (preparation->transaction->place->is_root || (op->content.mode & 0700) == 0700)
		return 0;
	return fchmodat(area_fd, name, (op->content.mode & 07777) | 0700, 0) < 0 ? -errno : 0;
}

/*
 * The host's file that this one takes the place of, for what of it stays; FD_NONE where there is none like it, or none
 * that may be read. One that has changed by now is seen when its op is done, and stays whole.
 */
static int open_replaced(const struct preparation *preparation, const struct stage_change *change)
{
	const struct stage_stack *stack = &preparation->apply->stacks[change->tree];
	int fd;

	if (!change->host_exists || !S_ISREG(change->host.st_mode) || !S_ISREG(change->staged.st_mode))
		return FD_NONE;
	fd = stage_change_open_host(stack, change);
	return fd < 0 && !transaction_is_fatal(fd) ? FD_NONE : fd;
}

/*
 * What the agent left on a file that it wrote into is its ACL; one that it made anew under the name of another has that
 * one's, as far as its mode lets it. As root the ids in a layer are those of the sandbox's own range, and mean nothing.
 */
static enum copy_acl choose_acl(const struct preparation *preparation, const struct apply_item *item, int replaced_fd)
{
	bool means_something = !preparation->transaction->place->is_root;

	if (replaced_fd >= 0 && (!means_something || item->merged || !item->change->is_copied_up))
		return COPY_ACL_REPLACED;
	return means_something && !item->merged ? COPY_ACL_SOURCE : COPY_ACL_NONE;
}

/* What the directory that holds an op is, or will be, on the host. */
static int describe_parent(const struct preparation *preparation, const struct journal_op *op, struct identity *out)
{
	const struct transaction *transaction = preparation->transaction;
	size_t length = paths_parent(op->path, strlen(op->path));
	uint32_t known = paths_find(&preparation->directories, op->tree, op->path, length);
	cleanup_free char *path = NULL;
	cleanup_fd int fd = FD_NONE;
	struct stat st;

	if (known != PATHS_NONE) {
		*out = transaction->journal.directories[known].before;
		return 0;
	}
	known = paths_find(&preparation->made, op->tree, op->path, length);
	if (known != PATHS_NONE) {
		*out = transaction->journal.ops[known].content;
		return 0;
	}
	path = strndup(op->path, length);
	fd = path ? stage_open_beneath(transaction->place->tree_fds[op->tree], path, O_PATH | O_DIRECTORY, 0) : -ENOMEM;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	identity_of_stat(&st, out);
	return 0;
}

static uint32_t other_owner(uint32_t id, uint32_t otherwise)
{
	uint32_t owner = clone_other_owner(id);

	return owner != id ? owner : otherwise;
}

/*
 * Inside, another group may look like the sandbox's own. What was there keeps the host's; what is new gets that of its
 * directory, where the directory says so (set-group-ID). As root, what was written into stays its owner's as well.
 */
static void choose_owner(const struct preparation *preparation, const struct apply_item *item,
			 const struct journal_op *op, struct copy *copy)
{
	const struct stage_change *change = item->change;
	struct identity parent;

	/* As root, another's file that was moved stays his. */
	if (copy->gives_owner) {
		copy->uid = other_owner(change->staged.st_uid, copy->uid);
		copy->gid = other_owner(change->staged.st_gid, copy->gid);
	}
	if (change->host_exists && (change->host.st_mode & S_IFMT) == (change->staged.st_mode & S_IFMT)) {
		copy->gives_group = true;
		copy->gid = change->host.st_gid;
		if (change->is_copied_up)
			copy->uid = change->host.st_uid;
	} else if (describe_parent(preparation, op, &parent) == 0 && parent.mode & S_ISGID) {
		copy->gives_group = true;
		copy->gid = parent.gid;
		/* The kernel gives it on to directories; fuse-overlayfs, which had lost it, did not. */
		if (preparation->transaction->place->record->form == STAGE_FORM_FUSE)
			copy->more_mode = S_ISGID;
	}
}

static int copy_staged(struct preparation *preparation, struct apply_item *item, struct journal_op *op)
{
	const struct stage_change *change = item->change;
	const struct stage_tree *tree = &preparation->transaction->place->record->trees[change->tree];
	int area_fd = preparation->transaction->area_fds[change->tree];
	cleanup_fd int replaced_fd = open_replaced(preparation, change);
	char name[TRANSACTION_SLOT_SIZE];
	struct copy copy = {
		.closed = preparation->apply->stacks[change->tree].closed,
		.replaced_fd = replaced_fd, .acl = choose_acl(preparation, item, replaced_fd),
		.from_fd = item->merged ? preparation->apply->merged_fd : layer_directory(preparation, change),
		.from = item->merged ? item->merged : last_component(change->path),
		.to_fd = area_fd, .to = transaction_slot_name(op->slot, name), .kind = COPY_TO_HOST,
		.gives_owner = preparation->transaction->place->is_root,
		.uid = tree->owner_uid, .gid = tree->owner_gid,
	};
	int r = copy.from_fd < 0 ? copy.from_fd : replaced_fd < 0 && replaced_fd != FD_NONE ? replaced_fd : 0;

	choose_owner(preparation, item, op, &copy);
	if (r == 0)
		r = copy_entry(&copy);
	if (r < 0)
		return r;
	if (r == COPY_MADE && !item->merged &&
	    (!is_as_judged(&copy.source, &change->staged) ||
	     (S_ISDIR(copy.made.mode) && check_directory(&copy.source, &change->staged, area_fd, name) < 0))) {
		unlinkat(area_fd, name, S_ISDIR(copy.made.mode) ? AT_REMOVEDIR : 0);
		r = COPY_CHANGED;
	}
	if (r != COPY_MADE)
		return -ESTALE;
	op->content = copy.made;
	item->lost_set_id = copy.lost_set_id;
	preparation->apply->bytes += S_ISREG(copy.made.mode) ? copy.made.size : 0;
	preparation->transaction->has_unsyncable |= !S_ISREG(copy.made.mode);
	return S_ISDIR(copy.made.mode) ? make_passable(preparation, area_fd, name, op) : 0;
}

/* The times that the agent left on a directory that it wrote into: those of the topmost layer that has it. */
static void find_staged_mtime(struct preparation *preparation, struct journal_directory *directory)
{
	const struct stage_stack *stack = &preparation->apply->stacks[directory->tree];

	for (size_t i = 0; i < stack->count && !directory->has_wanted; i++) {
		cleanup_fd int fd = stage_open_beneath(stack->layers[i], directory->path, O_PATH | O_DIRECTORY, 0);
		struct identity identity;
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			continue;
		identity_of_stat(&st, &identity);
		directory->wanted_mtime = identity.mtime;
		directory->has_wanted = true;
	}
}

static int describe_directory(struct preparation *preparation, struct journal_directory *directory, size_t length)
{
	struct transaction *transaction = preparation->transaction;
	uint32_t made = paths_find(&preparation->made, directory->tree, directory->path, length);
	cleanup_fd int fd = FD_NONE;
	struct stat st;

	if (made != PATHS_NONE) {
		directory->before = transaction->journal.ops[made].content;
		directory->wanted_mtime = directory->before.mtime;
		directory->has_wanted = true;
		return 0;
	}
	fd = stage_open_beneath(transaction->place->tree_fds[directory->tree], directory->path,
				O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	identity_of_stat(&st, &directory->before);
	if (!length && !transaction_is_near(transaction, directory->tree))
		directory->before = transaction->journal.areas[directory->tree].root;
	find_staged_mtime(preparation, directory);
	return 0;
}

/* Enters the directory that holds an op into the journal, once. */
static int add_directory(struct preparation *preparation, struct journal_op *op)
{
	struct journal *journal = &preparation->transaction->journal;
	size_t length = paths_parent(op->path, strlen(op->path));
	struct journal_directory *directory;
	int r;

	op->directory = paths_find(&preparation->directories, op->tree, op->path, length);
	if (op->directory != PATHS_NONE)
		return 0;
	directory = journal_add_directory(journal);
	if (!directory)
		return -ENOMEM;
	directory->tree = op->tree;
	directory->path = journal_keep_text(journal, strndup(op->path, length));
	r = directory->path ? describe_directory(preparation, directory, length) : -ENOMEM;
	if (r < 0) {
		journal->directory_count--;
		return r;
	}
	op->directory = (uint32_t)journal->directory_count - 1;
	return paths_put(&preparation->directories, op->tree, directory->path, length, op->directory);
}

/* What an op does to a path of these two sides; 0: nothing but attributes of a directory. */
static uint32_t action_of(const struct stage_change *change)
{
	if (!change->staged_exists)
		return JOURNAL_REMOVE;
	if (!change->host_exists)
		return JOURNAL_ADD;
	return S_ISDIR(change->staged.st_mode) && S_ISDIR(change->host.st_mode) ? JOURNAL_SET : JOURNAL_REPLACE;
}

static void fill_set(struct journal_op *op, const struct stage_change *change)
{
	identity_of_stat(&change->staged, &op->content);
	op->flags |= JOURNAL_SETS_MTIME;
}

static int fill_content(struct preparation *preparation, struct apply_item *item, struct journal_op *op)
{
	int r = item->merged ? 0 : link_copied(preparation, item->change, op);

	return r == 0 ? copy_staged(preparation, item, op) : r < 0 ? r : 0;
}

/* Makes the op of an item, with its content. -ESTALE: one of the sides is no longer what was judged. */
static int prepare_item(struct preparation *preparation, uint32_t index)
{
	struct apply_item *item = &preparation->apply->items[index];
	const struct stage_change *change = item->change;
	struct transaction *transaction = preparation->transaction;
	struct journal_op *op = add_op(preparation, change, index);
	int r = op ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	op->action = action_of(change);
	if (change->host_exists)
		identity_of_stat(&change->host, &op->host);
	if (item->merged && !item->is_partial)
		op->flags |= JOURNAL_MERGED;
	if (change->state == STAGE_CONFLICT)
		op->flags |= JOURNAL_SETTLED;
	if (op->action != JOURNAL_REMOVE)
		r = fill_content(preparation, item, op);
	if (r == 0)
		r = add_directory(preparation, op);
	if (r == 0 && S_ISDIR(op->content.mode))
		r = paths_put(&preparation->made, op->tree, op->path, strlen(op->path),
			      (uint32_t)(op - transaction->journal.ops));
	if (r < 0) {
		char name[TRANSACTION_SLOT_SIZE];

		/* A slot that stays behind is removed with the area. */
		unlinkat(transaction->area_fds[op->tree], transaction_slot_name(op->slot, name), 0);
		transaction->journal.op_count--;
	}
	transaction->prepared++;
	return r;
}

/* Keeps the attributes of a directory in a slot, which is one too: beside the journal, wherever the tree is. */
static int keep_attributes(struct preparation *preparation, uint32_t slot, int from_fd)
{
	int slots_fd = preparation->transaction->slots_fd;
	char name[TRANSACTION_SLOT_SIZE];
	cleanup_fd int fd = FD_NONE;

	if (from_fd < 0)
		return from_fd;
	if (mkdirat(slots_fd, transaction_slot_name(slot, name), 0700) < 0)
		return -errno;
	fd = transaction_open_directory(slots_fd, name);
	return fd < 0 ? fd : attributes_match(from_fd, fd, attributes_is_content);
}

/* Those that it shall have, and those that it has. */
static int prepare_attributes(struct preparation *preparation, const struct stage_change *change, struct journal_op *op)
{
	const struct stage_stack *stack = &preparation->apply->stacks[change->tree];
	cleanup_fd int staged_fd = stage_change_open(stack, change), host_fd = FD_NONE;
	int r = keep_attributes(preparation, op->slot, staged_fd);

	if (r == 0)
		host_fd = stage_change_open_host(stack, change);
	if (r == 0)
		r = keep_attributes(preparation, preparation->next_slot++, host_fd);
	op->flags |= JOURNAL_SETS_XATTRS;
	preparation->transaction->has_attributes = true;
	return r;
}

/* Attributes of a directory: of one that is there, or the bits that make_passable() lent to a new one. */
static int prepare_set(struct preparation *preparation, uint32_t index)
{
	const struct apply_item *item = &preparation->apply->items[index];
	const struct stage_change *change = item->change;
	bool is_new = action_of(change) != JOURNAL_SET;
	uint32_t made = is_new ? paths_find(&preparation->made, (uint32_t)change->tree, change->path,
					    strlen(change->path)) : PATHS_NONE;
	struct journal_op *op;

	if (is_new && (made == PATHS_NONE || preparation->transaction->place->is_root ||
		       (change->staged.st_mode & 0700) == 0700))
		return 0;
	op = add_op(preparation, change, index);
	if (!op)
		return -ENOMEM;
	op->action = JOURNAL_SET;
	if (is_new) {
		op->host = preparation->transaction->journal.ops[made].content;
		op->host.mode |= 0700;
		op->flags = JOURNAL_LENT;
	} else {
		identity_of_stat(&change->host, &op->host);
	}
	fill_set(op, change);
	if (change->state == STAGE_CONFLICT)
		op->flags |= JOURNAL_SETTLED;
	return !is_new && change->differs & STAGE_DIFFERS_XATTRS ? prepare_attributes(preparation, change, op) : 0;
}

static int add_decision(struct preparation *preparation, uint32_t item, const struct identity *host, uint32_t flags)
{
	const struct stage_change *change = preparation->apply->items[item].change;
	struct journal_op *op = add_op(preparation, change, item);

	if (!op)
		return -ENOMEM;
	op->action = JOURNAL_KEEP;
	op->flags = flags;
	op->host = *host;
	if (change->staged_exists)
		identity_of_stat(&change->staged, &op->content);
	return 0;
}

/* The conflicts that are settled by this: for the host's side, or by what a merge made of both. */
static int prepare_decisions(struct preparation *preparation)
{
	const struct apply *apply = preparation->apply;
	const struct journal *journal = &preparation->transaction->journal;
	size_t count = journal->op_count;
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		const struct identity made = journal->ops[i].content;

		if (journal->ops[i].flags & JOURNAL_MERGED)
			r = add_decision(preparation, preparation->items[i], &made, JOURNAL_MERGED);
	}
	for (size_t i = 0; i < apply->count && r == 0; i++) {
		const struct stage_change *change = apply->items[i].change;
		struct identity host = { 0 };

		if (apply->items[i].verdict != APPLY_KEPT)
			continue;
		if (change->host_exists)
			identity_of_stat(&change->host, &host);
		r = add_decision(preparation, (uint32_t)i, &host, 0);
	}
	return r;
}

static int prepare_all(struct preparation *preparation)
{
	struct apply *apply = preparation->apply;
	struct transaction_place *place = preparation->transaction->place;
	int r = 0;

	for (size_t i = 0; i < apply->count; i++) {
		struct apply_item *item = &apply->items[i];

		if (place->progress && i % 256 == 0)
			place->progress(place->context, "preparing", i, apply->count);
		if (item->verdict != APPLY_TAKEN || action_of(item->change) == JOURNAL_SET)
			continue;
		r = prepare_item(preparation, (uint32_t)i);
		if (transaction_is_fatal(r))
			return r;
		if (r < 0) {
			item->verdict = r == -ESTALE || r == -ENOENT ? APPLY_RACED : APPLY_FAILED;
			item->errnum = -r;
		}
	}
	for (size_t i = apply->count; i-- > 0;) {
		if (apply->items[i].verdict != APPLY_TAKEN || !S_ISDIR(apply->items[i].change->staged.st_mode) ||
		    !apply->items[i].change->staged_exists)
			continue;
		r = prepare_set(preparation, (uint32_t)i);
		if (transaction_is_fatal(r))
			return r;
		if (r < 0) {
			preparation->transaction->journal.op_count--;
			apply->items[i].verdict = r == -ESTALE || r == -ENOENT ? APPLY_RACED : APPLY_FAILED;
			apply->items[i].errnum = -r;
		}
	}
	return prepare_decisions(preparation);
}

/* Results. */

static void report_outcomes(const struct preparation *preparation)
{
	static const enum apply_verdict verdicts[JOURNAL_OUTCOME_COUNT] = {
		[JOURNAL_PENDING] = APPLY_FAILED, [JOURNAL_APPLIED] = APPLY_TAKEN,
		[JOURNAL_SKIPPED] = APPLY_CONFLICT, [JOURNAL_FAILED] = APPLY_FAILED,
	};
	const struct journal *journal = &preparation->transaction->journal;
	struct apply *apply = preparation->apply;

	for (size_t i = 0; i < journal->op_count; i++) {
		struct apply_item *item = &apply->items[preparation->items[i]];
		bool is_decision = journal->ops[i].action == JOURNAL_KEEP;

		if (item->verdict == (is_decision ? APPLY_KEPT : APPLY_TAKEN) &&
		    journal->ops[i].outcome != JOURNAL_APPLIED) {
			item->verdict = verdicts[journal->ops[i].outcome];
			item->errnum = journal->ops[i].errnum;
		}
	}
	for (size_t i = 0; i < apply->count; i++) {
		apply->applied += apply->items[i].verdict == APPLY_TAKEN;
		apply->kept += apply->items[i].verdict == APPLY_KEPT;
	}
}

static bool choose_trees(const struct apply *apply, bool uses[STAGE_TREES_MAX])
{
	bool any = false;

	memset(uses, 0, STAGE_TREES_MAX * sizeof *uses);
	for (size_t i = 0; i < apply->count; i++) {
		if (apply->items[i].verdict != APPLY_TAKEN && apply->items[i].verdict != APPLY_KEPT)
			continue;
		uses[apply->items[i].change->tree] = true;
		any = true;
	}
	return any;
}

static int prepare(struct preparation *preparation, struct err *err)
{
	int r = prepare_all(preparation);

	return r < 0 ? err_set(err, ERR_STATE, -r, "apply", "the changes cannot be prepared: %s",
			       strerror(-r)) : 0;
}

int apply_run(struct transaction_place *place, struct apply *apply, struct err *err)
{
	cleanup_transaction struct transaction transaction = { 0 };
	struct preparation preparation = { .transaction = &transaction, .apply = apply, .layer_fd = FD_NONE };
	bool uses[STAGE_TREES_MAX];
	int r;

	apply->number = 0;
	apply->applied = apply->kept = 0;
	if (!choose_trees(apply, uses))
		return 0;
	r = transaction_begin(place, JOURNAL_APPLY, 0, uses, &transaction, err);
	if (r == 0)
		r = prepare(&preparation, err);
	r = transaction_execute(&transaction, r, err);
	if (transaction.journal.is_committed) {
		apply->number = transaction.journal.number;
		report_outcomes(&preparation);
	}
	preparation_done(&preparation);
	return r;
}
