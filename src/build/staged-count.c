/* SPDX-License-Identifier: Apache-2.0 */
#include "build/staged-count.h"

#include <fcntl.h>

#include "os/clock.h"
#include "os/fd.h"
#include "stage/change/change.h"
#include "stage/layer/layer.h"
#include "stage/change/seen.h"
#include "stage/layer/walk.h"

/* Nothing else of the sandbox is served while we count: so many entries take some 10 ms. */
enum { ENTRIES_MAX = 2000, SHARE = 50, AGAIN_MS = 2000, MS_NS = 1000000, ENOUGH = -ECANCELED };

struct tally {
	uint64_t paths, hidden, bytes;
	size_t entries;
	struct seen *seen;           /* borrowed; NULL: nothing is noted */
	size_t tree;
	uint64_t start_ns;
};

static bool is_replaced(const struct tally *tally, const struct stage_entry *entry)
{
	return entry->kind == STAGE_ENTRY_FILE && !entry->marks.is_copied_up && entry->host_exists &&
	       !stage_is_since(&entry->host.st_ctim, tally->start_ns);
}

static int add_entry(void *context, const struct stage_entry *entry)
{
	struct tally *tally = context;

	/* All names of a file are in the layer, since links do not cross it: each counts for its share. */
	if (entry->kind == STAGE_ENTRY_FILE || entry->kind == STAGE_ENTRY_DIRECTORY)
		tally->bytes += (uint64_t)entry->staged.st_blocks * 512 /
				(S_ISREG(entry->staged.st_mode) && entry->staged.st_nlink ? entry->staged.st_nlink : 1);
	tally->hidden += entry->kind == STAGE_ENTRY_WHITEOUT;
	tally->paths += entry->kind == STAGE_ENTRY_FILE || entry->kind == STAGE_ENTRY_WHITEOUT;
	if (tally->seen && is_replaced(tally, entry))
		seen_note(tally->seen, tally->tree, entry);
	if (++tally->entries >= ENTRIES_MAX)
		return ENOUGH;
	/* What the host has there is not counted. */
	return entry->kind == STAGE_ENTRY_FILE || entry->kind == STAGE_ENTRY_DIRECTORY ? 0 : STAGE_WALK_SKIP;
}

/* The live layers alone: what a fork began with lies below them. */
static int count_layers(struct tally *tally, const struct staging *staging)
{
	static const struct stage_chain none;
	struct stage_visitor visitor = { .enter = add_entry, .context = tally };
	struct err err;

	for (size_t i = 0; i < staging->record.tree_count; i++) {
		cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;
		int r = stage_stack_open(FD_NONE, staging->stage_fd, &none, i, true, &stack);

		stack.form = staging->record.form;
		/* One that is gone has nothing to be noted. */
		if (r == 0)
			(void)!stage_stack_open_host(&stack, &staging->record.trees[i], &err);
		tally->tree = i;
		if (r == 0)
			r = stage_walk(&stack, &visitor);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Below sessions/, by the place of the stage directory. */
static void load_seen(struct staging *staging)
{
	cleanup_fd int sessions_fd = fd_open_at(staging->stage_fd, "../..", O_RDONLY | O_DIRECTORY, 0);

	if (!staging->seen && sessions_fd >= 0)
		(void)!seen_load(sessions_fd, &staging->record, &staging->seen);
}

bool staged_count_look(struct staged_count *count, struct staging *staging, uint64_t now_ns)
{
	struct tally tally = { 0 };
	uint64_t took_ns;
	int r;

	if (staging->stage_fd < 0)
		return false;
	if (now_ns < count->next_ns)
		return true;
	load_seen(staging);
	tally.seen = staging->seen;
	tally.start_ns = stage_record_start_ns(&staging->record);
	r = count_layers(&tally, staging);
	if (r < 0 && r != ENOUGH && r != -E2BIG)
		return false;
	took_ns = clock_monotonic_ns() - now_ns;
	*count = (struct staged_count){
		.paths = tally.paths,
		.hidden = tally.hidden,
		.bytes = tally.bytes,
		.is_cut = r < 0,
		.next_ns = now_ns + (took_ns * SHARE > AGAIN_MS * (uint64_t)MS_NS ? took_ns * SHARE :
										  AGAIN_MS * (uint64_t)MS_NS),
	};
	return true;
}
