/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/layers/turns.h"

#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-stage/verb/layer-gc.h"
#include "stage/layer/walk.h"
#include "stage/snapshot/snapshot.h"

/* An empty file costs an inode: counted as a block, so that a million of them is not free. */
enum { ENTRY_COST = 4096 };

static const uint64_t one_max = 256ULL << 20, all_max = 1ULL << 30;

static int add(void *context, const struct stage_entry *entry)
{
	uint64_t *cost = context;

	*cost += (uint64_t)entry->staged.st_blocks * 512 + ENTRY_COST;
	return 0;
}

/* Adds what a directory and all below it cost to copy; a tree beyond what a walk takes is too much by itself. */
static int add_cost(int dir_fd, const char *path, uint64_t *cost)
{
	struct stage_visitor visitor = { .enter = add, .context = cost };
	struct stage_stack stack = STAGE_STACK_NONE;
	int r;

	stack.layers[0] = stage_open_beneath(dir_fd, path, O_RDONLY | O_DIRECTORY, 0);
	if (stack.layers[0] < 0)
		return stack.layers[0] == -ENOENT ? 0 : stack.layers[0];
	stack.count = 1;
	r = stage_walk(&stack, &visitor);
	stage_stack_done(&stack);
	if (r == -E2BIG)
		*cost = UINT64_MAX / 2;
	return r == -E2BIG ? 0 : r;
}

int turns_check(const struct stage_lock *lock, struct err *err)
{
	uint64_t cost = 0;
	struct statvfs disk;
	char path[64];
	int r = 0;

	for (size_t i = 0; r == 0 && i < lock->record.tree_count; i++) {
		r = str_format(path, sizeof path, "live/%zu/upper", i);
		if (r == 0)
			r = add_cost(lock->stage_fd, path, &cost);
	}
	if (r == 0 && fstatvfs(lock->stage_fd, &disk) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "snapshot", "the size of the written files cannot be found out: "
							       "%s", strerror(-r));
	if (cost > one_max) {
		err_set(err, ERR_STATE, EFBIG, "snapshot",
			"more than %llu MiB were written in this session: too much for a checkpoint at each turn",
			(unsigned long long)(one_max >> 20));
		err_hint(err, "atoll snapshot has no such limit");
		return -EFBIG;
	}
	if ((uint64_t)disk.f_bavail * disk.f_frsize < 2 * cost + one_max)
		return err_set(err, ERR_STATE, ENOSPC, "snapshot", "the disk has too little room for checkpoints");
	return 0;
}

/* The cost of what each checkpoint alone has: the layer on top of its chain. */
static int cost_of(const struct stage_lock *lock, const struct stage_snapshot *turn, uint64_t *cost)
{
	const struct stage_chain *chain = &turn->chain;
	char path[64];
	int r;

	if (!chain->count || !str_equal(chain->layers[chain->count - 1].session, lock->session))
		return 0;
	r = str_format(path, sizeof path, STAGE_DIRECTORY_LAYERS "/%u", chain->layers[chain->count - 1].number);
	return r == 0 ? add_cost(lock->stage_fd, path, cost) : r;
}

/* How many of the newest ones stay within the bytes. The list is oldest first. */
static int count_kept(const struct stage_lock *lock, size_t *ret_kept, struct err *err)
{
	cleanup_free struct stage_snapshot *list = NULL;
	uint64_t cost = 0;
	size_t count;
	int r = stage_snapshot_list(lock, &list, &count, err);

	*ret_kept = 0;
	for (size_t i = count; r == 0 && i-- > 0 && *ret_kept < STAGE_TURNS_KEPT;) {
		if (!str_has_prefix(list[i].name, STAGE_TURN_PREFIX))
			continue;
		r = cost_of(lock, &list[i], &cost);
		if (r == 0 && *ret_kept && cost > all_max)
			break;
		++*ret_kept;
	}
	return r;
}

int turns_thin(const struct stage_lock *lock, struct err *err)
{
	size_t kept;
	int r = count_kept(lock, &kept, err);

	if (r == 0)
		r = stage_snapshot_thin(lock, STAGE_TURN_PREFIX, kept ? kept : 1, err);
	return r > 0 ? layer_gc_layers(lock, err) : r;
}
