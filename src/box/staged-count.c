/* SPDX-License-Identifier: Apache-2.0 */
#include "box/staged-count.h"

#include "os/clock.h"
#include "stage/layer.h"
#include "stage/walk.h"

/* Nothing else of the sandbox is served while we count: so many entries take some 10 ms. */
enum { ENTRIES_MAX = 2000, SHARE = 50, AGAIN_MS = 2000, MS_NS = 1000000, ENOUGH = -ECANCELED };

struct tally {
	uint64_t paths, hidden;
	size_t entries;
};

static int add_entry(void *context, const struct stage_entry *entry)
{
	struct tally *tally = context;

	tally->hidden += entry->kind == STAGE_ENTRY_WHITEOUT;
	tally->paths += entry->kind == STAGE_ENTRY_FILE || entry->kind == STAGE_ENTRY_WHITEOUT;
	return ++tally->entries < ENTRIES_MAX ? 0 : ENOUGH;
}

/* The live layers alone: what a fork began with lies below them. */
static int count_layers(struct tally *tally, const struct staging *staging)
{
	static const struct stage_chain none;
	struct stage_visitor visitor = { .enter = add_entry, .context = tally };

	for (size_t i = 0; i < staging->record.tree_count; i++) {
		cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;
		int r = stage_stack_open(FD_NONE, staging->stage_fd, &none, i, true, &stack);

		stack.form = staging->record.form;
		if (r == 0)
			r = stage_walk(&stack, &visitor);
		if (r < 0)
			return r;
	}
	return 0;
}

bool staged_count_look(struct staged_count *count, const struct staging *staging, uint64_t now_ns)
{
	struct tally tally = { 0 };
	uint64_t took_ns;
	int r;

	if (staging->stage_fd < 0)
		return false;
	if (now_ns < count->next_ns)
		return true;
	r = count_layers(&tally, staging);
	if (r < 0 && r != ENOUGH && r != -E2BIG)
		return false;
	took_ns = clock_monotonic_ns() - now_ns;
	*count = (struct staged_count){
		.paths = tally.paths,
		.hidden = tally.hidden,
		.is_cut = r < 0,
		.next_ns = now_ns + (took_ns * SHARE > AGAIN_MS * (uint64_t)MS_NS ? took_ns * SHARE :
										  AGAIN_MS * (uint64_t)MS_NS),
	};
	return true;
}
