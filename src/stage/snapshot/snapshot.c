/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/snapshot/snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/remove.h"
#include "stage/snapshot/flatten.h"
#include "stage/snapshot/merge.h"

/*
 * A file that holds a chain is replaced and never written to, so one file may have two names: the session's chain, and
 * the snapshot that it was or becomes. That spares syncs, each of which costs milliseconds.
 *
 * The order of writes makes a crash harmless at each point: a layer comes before the chain that names it, what was the
 * state is named before it stops being that, and a chain is replaced whole.
 */

static int open_snapshots(const struct stage_lock *lock, bool make)
{
	if (make && mkdirat(lock->stage_fd, STAGE_DIRECTORY_SNAPSHOTS, 0700) < 0 && errno != EEXIST)
		return -errno;
	return fd_open_at(lock->stage_fd, STAGE_DIRECTORY_SNAPSHOTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static int fail(const struct stage_lock *lock, int r, const char *what, struct err *err)
{
	return err_set(err, ERR_STATE, -r, "snapshot", "%s of session %s: %s", what, lock->session, err_errno_name(-r));
}

/* n of PREFIXn; 0 for any other name. */
static uint64_t number_of(const char *name, const char *prefix)
{
	uint64_t number;

	if (!str_has_prefix(name, prefix) || num_parse_u64(name + strlen(prefix), &number) < 0)
		return 0;
	return number;
}

/* Calls each for every name that can be a snapshot's. */
static int each_name(const struct stage_lock *lock, int (*each)(void *context, const char *name), void *context)
{
	DIR *dir = path_list(open_snapshots(lock, false));
	struct dirent *entry;
	size_t count = 0;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (entry = readdir(dir))) {
		/* ".tmp." is a snapshot that was never finished. */
		if (!stage_snapshot_name_is_valid(entry->d_name) || strstr(entry->d_name, ".tmp."))
			continue;
		r = ++count > STAGE_SNAPSHOTS_MAX ? -E2BIG : each(context, entry->d_name);
	}
	closedir(dir);
	return r;
}

struct greatest {
	const char *prefix;
	uint64_t number;
};

static int note_greatest(void *context, const char *name)
{
	struct greatest *greatest = context;
	uint64_t number = number_of(name, greatest->prefix);

	if (number > greatest->number)
		greatest->number = number;
	return 0;
}

int stage_snapshot_next_name(const struct stage_lock *lock, const char *prefix, char out[STAGE_SNAPSHOT_NAME_SIZE],
			     struct err *err)
{
	struct greatest greatest = { .prefix = prefix };
	int r = each_name(lock, note_greatest, &greatest);

	if (r == 0)
		r = str_format(out, STAGE_SNAPSHOT_NAME_SIZE, "%s%llu", prefix,
			       (unsigned long long)greatest.number + 1);
	return r < 0 ? fail(lock, r, "the snapshots cannot be read", err) : 0;
}

int stage_snapshot_check_name(const struct stage_lock *lock, const char *name, struct err *err)
{
	cleanup_fd int fd = FD_NONE;
	struct stat st;

	if (!stage_snapshot_name_is_valid(name) || strstr(name, ".tmp.")) {
		err_set(err, ERR_USAGE, EINVAL, "snapshot", "a snapshot cannot have this name");
		err_hint(err, "1 to %d letters, digits, '.', '_' and '-', beginning with none of '.' and '-'",
			 STAGE_SNAPSHOT_NAME_MAX);
		return -EINVAL;
	}
	fd = open_snapshots(lock, false);
	if (fd < 0 || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	err_set(err, ERR_USAGE, EEXIST, "snapshot", "session %s has a snapshot %s already", lock->session, name);
	err_hint(err, "choose another name; atoll snapshot --list shows them");
	return -EEXIST;
}

static int count_name(void *context, const char *name)
{
	++*(size_t *)context;
	return 0;
}

/* One more than can be listed would hide all of them. */
static int check_room(const struct stage_lock *lock, struct err *err)
{
	size_t count = 0;
	int r = each_name(lock, count_name, &count);

	if (r == 0 && count < STAGE_SNAPSHOTS_MAX)
		return 0;
	if (r < 0 && r != -E2BIG)
		return fail(lock, r, "the snapshots cannot be read", err);
	err_set(err, ERR_STATE, E2BIG, "snapshot", "session %s has %d snapshots, and cannot have more", lock->session,
		STAGE_SNAPSHOTS_MAX);
	err_hint(err, "atoll snapshot --remove %s NAME", lock->session);
	return -E2BIG;
}

static int store(const struct stage_lock *lock, const struct stage_chain *chain, const char *name, const char *message,
		 struct err *err)
{
	struct stage_chain named = *chain;
	cleanup_fd int fd = open_snapshots(lock, true);
	int r = check_room(lock, err);

	if (r < 0)
		return r;
	r = fd < 0 ? fd : str_copy(named.message, sizeof named.message, message ? message : "");
	if (r == -ENAMETOOLONG)
		return err_set(err, ERR_USAGE, E2BIG, "snapshot", "a message has at most %d bytes",
			       STAGE_MESSAGE_MAX);
	named.taken_ns = clock_realtime_ns();
	if (r == 0)
		r = stage_chain_store(fd, name, &named);
	return r < 0 ? fail(lock, r, "the snapshot cannot be written", err) : 0;
}

/* The session's chain gets a second name among its snapshots. 1: it has none yet, which is an empty chain. */
static int name_chain(const struct stage_lock *lock, const char *name, struct err *err)
{
	cleanup_fd int fd = open_snapshots(lock, true);
	int r = check_room(lock, err);

	if (r < 0)
		return r;
	if (fd >= 0 && linkat(lock->stage_fd, STAGE_FILE_CHAIN, fd, name, 0) == 0)
		return 0;
	return fd >= 0 && errno == ENOENT ? 1 : fail(lock, fd < 0 ? fd : -errno, "the snapshot cannot be written", err);
}

/* A snapshot's file becomes the session's chain. */
static int take_chain(const struct stage_lock *lock, const char *name)
{
	static const char temporary[] = STAGE_FILE_CHAIN ".tmp.restored";
	cleanup_fd int fd = open_snapshots(lock, false);
	int r;

	if (fd < 0)
		return fd;
	unlinkat(lock->stage_fd, temporary, 0); /* of one that was killed */
	if (linkat(fd, name, lock->stage_fd, temporary, 0) < 0)
		return -errno;
	r = renameat(lock->stage_fd, temporary, lock->stage_fd, STAGE_FILE_CHAIN) < 0 ? -errno : 0;
	/* Of two names of one file rename(2) leaves both. */
	unlinkat(lock->stage_fd, temporary, 0);
	return r;
}

/* Puts what was written on top of the chain: the number of the layer; 0 where nothing was written. */
static int seal(struct stage_lock *lock, struct err *err)
{
	int r = stage_live_is_used(lock->stage_fd, &lock->record);

	if (r < 0)
		return fail(lock, r, "what was written cannot be looked at", err);
	if (r == 0)
		return 0;
	/* There was no moment to join them in the background. */
	if (lock->chain.count >= STAGE_CHAIN_MAX - 1 && stage_flatten(lock, err) < 0)
		return -E2BIG;
	return stage_seal(lock->stage_fd, &lock->record, &lock->chain, err);
}

int stage_snapshot_seal(struct stage_lock *lock, const char *name, const char *message, struct err *err)
{
	int r = stage_lock_need_idle(lock, "sealing", err);

	if (r == 0)
		r = stage_snapshot_check_name(lock, name, err);
	if (r == 0)
		r = seal(lock, err);
	/* A chain that was written a moment ago says all that there is to say without a message. */
	if (r > 0 && !message)
		return name_chain(lock, name, err);
	return r < 0 ? r : store(lock, &lock->chain, name, message, err);
}

static int open_sealed(const struct stage_lock *lock, uint32_t layer, size_t tree)
{
	struct stage_layer named = { .number = layer };
	int r = str_copy(named.session, sizeof named.session, lock->session);

	return r < 0 ? r : stage_layer_open(lock->sessions_fd, &named, tree);
}

static int copy_tree(const struct stage_lock *lock, uint32_t layer, size_t tree)
{
	cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;
	cleanup_fd int to_fd = open_sealed(lock, layer, tree);
	struct stage_merge merge = { .stack = &stack, .to_fd = to_fd, .how = STAGE_MERGE_COPY };
	struct stage_chain none = { 0 };
	int r = to_fd < 0 ? to_fd : stage_stack_open(lock->sessions_fd, lock->stage_fd, &none, tree, true, &stack);

	close_fd(&stack.mask_fd);
	return r < 0 ? r : stage_merge(&merge);
}

int stage_snapshot_copy(const struct stage_lock *lock, uint32_t *ret_layer, struct err *err)
{
	int layer = stage_layer_new(lock->stage_fd, &lock->record, err), r = 0;

	if (layer < 0)
		return layer;
	for (size_t i = 0; r == 0 && i < lock->record.tree_count; i++)
		r = copy_tree(lock, (uint32_t)layer, i);
	if (r < 0) {
		(void)!stage_snapshot_drop_copy(lock, (uint32_t)layer); /* nothing names it: gc takes it, too */
		return fail(lock, r, "what was written cannot be copied", err);
	}
	*ret_layer = (uint32_t)layer;
	return 0;
}

int stage_snapshot_drop_copy(const struct stage_lock *lock, uint32_t layer)
{
	cleanup_fd int fd = fd_open_at(lock->stage_fd, STAGE_DIRECTORY_LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	char name[16];
	int r = str_format(name, sizeof name, "%u", layer);

	if (fd < 0 || r < 0)
		return fd < 0 ? fd : r;
	return stage_remove_tree(fd, name, NULL);
}

int stage_snapshot_name_copy(const struct stage_lock *lock, uint32_t layer, const char *name, const char *message,
			     struct err *err)
{
	struct stage_chain chain = lock->chain;
	int r = stage_snapshot_check_name(lock, name, err);

	if (r < 0)
		return r;
	r = stage_chain_push(&chain, lock->session, layer);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "snapshot", "session %s has %zu layers already", lock->session,
			       chain.count);
	/* The name must not outlive a power cut that its layer does not. */
	if (syncfs(lock->stage_fd) < 0)
		return fail(lock, -errno, "the snapshot cannot be synced", err);
	return store(lock, &chain, name, message, err);
}

int stage_snapshot_load(const struct stage_lock *lock, const char *name, struct stage_chain *ret_chain, struct err *err)
{
	cleanup_fd int fd = open_snapshots(lock, false);
	int r = stage_snapshot_name_is_valid(name) ? fd : -ENOENT;

	if (r >= 0)
		r = stage_chain_load(fd, name, false, ret_chain);
	if (r == -ENOENT) {
		err_set(err, ERR_USAGE, ENOENT, "snapshot", "session %s has no such snapshot: %s", lock->session,
			stage_snapshot_name_is_valid(name) ? name : "this cannot be the name of one");
		err_hint(err, "atoll snapshot --list %s shows its snapshots", lock->session);
		return -ENOENT;
	}
	return r < 0 ? fail(lock, r, "the snapshot cannot be read", err) : 0;
}

int stage_snapshot_remove(const struct stage_lock *lock, const char *name, struct err *err)
{
	cleanup_fd int fd = open_snapshots(lock, false);
	struct stage_chain chain;
	int r = stage_snapshot_load(lock, name, &chain, err);

	/* One that cannot be read is no loss, and keeps gc from all layers. */
	if (r == -ENOENT)
		return r;
	return unlinkat(fd, name, 0) < 0 ? fail(lock, -errno, "the snapshot cannot be removed", err) : 0;
}

static bool is_same_chain(const struct stage_chain *a, const struct stage_chain *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->layers[i].number != b->layers[i].number ||
		    !str_equal(a->layers[i].session, b->layers[i].session))
			return false;
	return true;
}

/* A layer that is gone would leave the session with a state that nobody can open. */
static int check_layers(const struct stage_lock *lock, const struct stage_chain *chain, struct err *err)
{
	for (size_t i = 0; i < chain->count; i++) {
		cleanup_fd int fd = stage_layer_open(lock->sessions_fd, &chain->layers[i], 0);

		if (fd < 0)
			return err_set(err, ERR_STATE, -fd, "snapshot", "layer %u of session %s is missing: %s",
				       chain->layers[i].number, chain->layers[i].session, err_errno_name(-fd));
	}
	return 0;
}

int stage_snapshot_restore(struct stage_lock *lock, const char *name, char before[STAGE_SNAPSHOT_NAME_SIZE],
			   struct err *err)
{
	struct stage_chain wanted;
	int r = stage_lock_need_idle(lock, "a restore", err);

	before[0] = 0;
	if (r == 0)
		r = stage_snapshot_load(lock, name, &wanted, err);
	if (r == 0)
		r = check_layers(lock, &wanted, err);
	if (r == 0)
		r = seal(lock, err);
	if (r < 0 || is_same_chain(&wanted, &lock->chain))
		return r;
	r = stage_snapshot_next_name(lock, STAGE_BEFORE_RESTORE_PREFIX, before, err);
	if (r == 0)
		r = name_chain(lock, before, err);
	if (r == 1)
		r = store(lock, &lock->chain, before, NULL, err);
	if (r < 0)
		return r;
	r = take_chain(lock, name);
	if (r < 0)
		return fail(lock, r, "the state cannot be replaced", err);
	lock->chain = wanted;
	return 0;
}

struct listing {
	int dir_fd;
	struct stage_snapshot *items;
	size_t count;
};

int stage_snapshot_take_over(const struct stage_lock *lock, const struct stage_chain *chain, const char *name,
			     const char *message, struct err *err)
{
	int r = stage_snapshot_check_name(lock, name, err);

	return r < 0 ? r : store(lock, chain, name, message, err);
}

int stage_snapshot_is_current(const struct stage_lock *lock, const char *name, struct err *err)
{
	struct stage_chain chain;
	int r = stage_snapshot_load(lock, name, &chain, err);

	if (r < 0 || !is_same_chain(&chain, &lock->chain))
		return r < 0 ? r : 0;
	r = stage_live_is_used(lock->stage_fd, &lock->record);
	return r < 0 ? fail(lock, r, "what was written cannot be looked at", err) : !r;
}

static int list_one(void *context, const char *name)
{
	struct listing *listing = context;
	struct stage_snapshot *item;
	struct stat st;

	if (listing->count % 32 == 0) {
		void *grown = realloc(listing->items, (listing->count + 32) * sizeof *item);

		if (!grown)
			return -ENOMEM;
		listing->items = grown;
	}
	item = &listing->items[listing->count];
	/* One that cannot be read is none to go back to. */
	if (str_copy(item->name, sizeof item->name, name) < 0 ||
	    stage_chain_load(listing->dir_fd, name, false, &item->chain) < 0)
		return 0;
	/* It was the session's chain: the state is as old as that file. */
	if (!item->chain.taken_ns && fstatat(listing->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		item->chain.taken_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	listing->count++;
	return 0;
}

static int compare_taken(const void *a, const void *b)
{
	const struct stage_snapshot *x = a, *y = b;

	if (x->chain.taken_ns != y->chain.taken_ns)
		return x->chain.taken_ns < y->chain.taken_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

int stage_snapshot_list(const struct stage_lock *lock, struct stage_snapshot **ret_list, size_t *ret_count,
			struct err *err)
{
	cleanup_fd int fd = open_snapshots(lock, false);
	struct listing listing = { .dir_fd = fd };
	int r = fd < 0 ? fd : each_name(lock, list_one, &listing);

	if (r < 0 && r != -ENOENT) {
		free(listing.items);
		return fail(lock, r, "the snapshots cannot be read", err);
	}
	if (listing.count)
		qsort(listing.items, listing.count, sizeof *listing.items, compare_taken);
	*ret_list = listing.items;
	*ret_count = listing.count;
	return 0;
}

struct numbers {
	const char *prefix;
	uint64_t *items; /* owned */
	size_t count;
};

static int note_number(void *context, const char *name)
{
	struct numbers *numbers = context;
	uint64_t number = number_of(name, numbers->prefix);

	if (number)
		numbers->items[numbers->count++] = number;
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int stage_snapshot_thin(const struct stage_lock *lock, const char *prefix, size_t keep, struct err *err)
{
	struct numbers numbers = { .prefix = prefix,
				   .items = calloc(STAGE_SNAPSHOTS_MAX, sizeof *numbers.items) };
	cleanup_fd int fd = open_snapshots(lock, false);
	char name[STAGE_SNAPSHOT_NAME_SIZE];
	int removed = 0, r = numbers.items ? each_name(lock, note_number, &numbers) : -ENOMEM;

	if (r == 0 && numbers.count)
		qsort(numbers.items, numbers.count, sizeof *numbers.items, compare_numbers);
	for (size_t i = 0; r == 0 && i + keep < numbers.count; i++) {
		r = str_format(name, sizeof name, "%s%llu", prefix, (unsigned long long)numbers.items[i]);
		if (r == 0 && unlinkat(fd, name, 0) < 0)
			r = -errno;
		removed += r == 0;
	}
	free(numbers.items);
	return r < 0 ? fail(lock, r, "old snapshots cannot be removed", err) : removed;
}
