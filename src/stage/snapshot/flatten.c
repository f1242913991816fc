/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/snapshot/flatten.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "stage/layer/linked.h"
#include "stage/layer/remove.h"
#include "stage/snapshot/merge.h"

static int fail(const struct stage_lock *lock, int r, const char *what, struct err *err)
{
	return err_set(err, ERR_STATE, -r, "stage", "%s of session %s: %s", what, lock->session, err_errno_name(-r));
}

/* Which paths of the tree at hand are left out. */
struct filter {
	const struct stage_drop *drops;
	size_t count, tree;
};

static bool is_dropped(void *context, const char *path)
{
	const struct filter *filter = context;

	for (size_t i = 0; i < filter->count; i++) {
		const struct stage_drop *drop = &filter->drops[i];
		size_t length = strlen(drop->path);

		if (drop->tree == filter->tree &&
		    (!length || (strncmp(path, drop->path, length) == 0 && (!path[length] || path[length] == '/'))))
			return true;
	}
	return false;
}

static int merge_tree(const struct stage_lock *lock, int layer_fd, struct filter *filter, uint64_t *dropped)
{
	cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;
	cleanup_fd int to_fd = FD_NONE;
	struct stage_merge merge = { .stack = &stack, .how = STAGE_MERGE_LINK };
	char name[24];
	int r = str_format(name, sizeof name, "%zu", filter->tree);

	if (r == 0)
		r = to_fd = fd_open_at(layer_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = stage_stack_open(lock->sessions_fd, lock->stage_fd, &lock->chain, filter->tree, false, &stack);
	if (r < 0)
		return r;
	close_fd(&stack.mask_fd);
	merge.to_fd = to_fd;
	if (filter->count) {
		merge.is_dropped = is_dropped;
		merge.context = filter;
	}
	r = stage_merge(&merge);
	*dropped += merge.dropped;
	return r;
}

static int open_layers(const struct stage_lock *lock)
{
	return fd_open_at(lock->stage_fd, STAGE_DIRECTORY_LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* A new layer with all that the chain shows; its number. Nothing names it yet. */
static int merge_chain(const struct stage_lock *lock, struct filter *filter, uint64_t *dropped, struct err *err)
{
	int number = stage_layer_new(lock->stage_fd, &lock->record, err), r = 0;
	cleanup_fd int layers_fd = FD_NONE, layer_fd = FD_NONE;
	char name[16];

	if (number < 0)
		return number;
	layers_fd = open_layers(lock);
	r = layers_fd < 0 ? layers_fd : str_format(name, sizeof name, "%d", number);
	if (r == 0)
		layer_fd = r = fd_open_at(layers_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	for (size_t i = 0; r >= 0 && i < lock->record.tree_count; i++) {
		filter->tree = i;
		r = merge_tree(lock, layer_fd, filter, dropped);
	}
	/* A chain that is on the disk must not name a layer that is not. */
	if (r >= 0 && syncfs(layer_fd) < 0)
		r = -errno;
	if (r < 0) {
		(void)!stage_remove_tree(layers_fd, name, NULL); /* gc takes what is left */
		return fail(lock, r, "the layers cannot be joined", err);
	}
	return number;
}

static int replace_chain(struct stage_lock *lock, int number, struct err *err)
{
	struct stage_chain chain = { 0 };
	int r = stage_chain_push(&chain, lock->session, (uint32_t)number);

	/* Of the sessions whose layers went into the new one. */
	if (r == 0 && stage_linked_is_noted(lock->sessions_fd, &lock->chain))
		r = stage_linked_note(lock->stage_fd);

	if (r == 0)
		r = stage_chain_store(lock->stage_fd, STAGE_FILE_CHAIN, &chain);
	if (r < 0)
		return fail(lock, r, "the chain cannot be replaced", err);
	lock->chain = chain;
	return 0;
}

int stage_flatten(struct stage_lock *lock, struct err *err)
{
	struct filter filter = { 0 };
	uint64_t dropped = 0;
	int number, r = stage_lock_need_idle(lock, "joining its layers", err);

	if (r < 0)
		return r;
	if (lock->chain.count < 2)
		return 1;
	number = merge_chain(lock, &filter, &dropped, err);
	return number < 0 ? number : replace_chain(lock, number, err);
}

/* Names of whoever decided about the directory above: a part of that decision cannot be taken back. */
static int refuse_part(const struct stage_lock *lock, const struct stage_drop *drop, const char *above, struct err *err)
{
	const char *tree = lock->record.trees[drop->tree].path;

	err_set(err, ERR_USAGE, EINVAL, "discard", "%s/%s was deleted or replaced as a whole, so no part of it can "
						   "be dropped",
		tree, above);
	err_hint(err, "atoll discard %s/%s", tree, above);
	return -EINVAL;
}

/* Whether the topmost layer that has the directory `path` hides what is below it: 1, 0, or -errno. */
static int hides_below(const struct stage_stack *stack, const char *path)
{
	for (size_t i = 0; i < stack->count; i++) {
		cleanup_fd int fd = stage_open_beneath(stack->layers[i], path, O_PATH | O_NOFOLLOW, 0);
		cleanup_fd int dir_fd = FD_NONE;
		struct stage_marks marks;
		struct stat st;
		int r;

		if (fd == -ENOENT || fd == -ENOTDIR)
			continue;
		if (fd < 0 || fstat(fd, &st) < 0)
			return fd < 0 ? fd : -errno;
		if (!S_ISDIR(st.st_mode))
			return 1;
		dir_fd = stage_open_beneath(stack->layers[i], path, O_RDONLY | O_DIRECTORY, 0);
		r = dir_fd < 0 ? dir_fd : stage_marks_of_fd(dir_fd, STAGE_FORM_OVERLAY, &marks);
		if (r < 0 || marks.is_opaque)
			return r < 0 ? r : 1;
	}
	return 0;
}

/*
 * Below a directory that hides what the host has, to drop a path would have to bring the host's back, which a layer
 * cannot say without the directory itself. Where the host has nothing at that path there is nothing to bring back.
 */
static int check_above(const struct stage_lock *lock, const struct stage_drop *drop, const struct stage_stack *stack,
		       struct err *err)
{
	cleanup_fd int host_fd = stage_tree_open(&lock->record.trees[drop->tree], err), fd = FD_NONE;
	cleanup_free char *above = str_dup(drop->path);
	int r = 0;

	if (host_fd < 0)
		return host_fd;
	if (!above)
		return fail(lock, -ENOMEM, "the paths cannot be looked at", err);
	fd = stage_open_beneath(host_fd, drop->path, O_PATH | O_NOFOLLOW, 0);
	if (fd < 0)
		return 0;
	for (char *slash = strrchr(above, '/'); r == 0 && slash; slash = strrchr(above, '/')) {
		*slash = 0;
		r = hides_below(stack, above);
	}
	if (r == 1)
		return refuse_part(lock, drop, above, err);
	return r < 0 ? fail(lock, r, "the layers cannot be read", err) : 0;
}

static int check_drops(const struct stage_lock *lock, const struct stage_drop *drops, size_t count, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;

		r = stage_stack_open(lock->sessions_fd, lock->stage_fd, &lock->chain, drops[i].tree, true, &stack);
		if (r < 0)
			return fail(lock, r, "the layers cannot be opened", err);
		r = check_above(lock, &drops[i], &stack, err);
	}
	return r;
}

/* What was written since the last seal, if anything. Positive: the number of its layer. */
static int seal_live(struct stage_lock *lock, struct err *err)
{
	int r = stage_live_is_used(lock->stage_fd, &lock->record);

	if (r < 0)
		fail(lock, r, "what was written cannot be looked at", err);
	return r > 0 ? stage_seal(lock->stage_fd, &lock->record, &lock->chain, err) : r;
}

int stage_discard_paths(struct stage_lock *lock, const struct stage_drop *drops, size_t count, uint64_t *ret_dropped,
			struct err *err)
{
	struct filter filter = { .drops = drops, .count = count };
	uint64_t dropped = 0;
	int number, r = stage_lock_need_idle(lock, "dropping changes", err);

	if (r == 0)
		r = check_drops(lock, drops, count, err);
	if (r < 0)
		return r;
	r = seal_live(lock, err);
	if (r < 0)
		return r;
	number = merge_chain(lock, &filter, &dropped, err);
	if (number < 0)
		return number;
	*ret_dropped = dropped;
	return replace_chain(lock, number, err);
}

int stage_discard_all(struct stage_lock *lock, struct err *err)
{
	struct stage_chain none = { 0 };
	int r = stage_lock_need_idle(lock, "dropping changes", err);

	/* Sealed first: what was written leaves the live uppers at once, whatever happens next. */
	if (r == 0)
		r = seal_live(lock, err);
	if (r < 0)
		return r;
	r = stage_chain_store(lock->stage_fd, STAGE_FILE_CHAIN, &none);
	if (r < 0)
		return fail(lock, r, "the chain cannot be emptied", err);
	lock->chain = none;
	return 0;
}
