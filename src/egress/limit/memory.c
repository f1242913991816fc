/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/limit/memory.h"

#include <errno.h>

static struct memory_share *find_most(const struct memory_budget *memory)
{
	struct memory_share *most = memory->first;

	for (struct memory_share *share = memory->first; share; share = share->next)
		if (share->bytes > most->bytes)
			most = share;
	return most;
}

static void on_relief(evutil_socket_t fd, short what, void *context)
{
	struct memory_budget *memory = context;

	(void)fd;
	(void)what;
	while (memory->first && memory->bytes > MEMORY_MAX) {
		struct memory_share *most = find_most(memory);

		most->on_most(most->context);
	}
}

int memory_init(struct memory_budget *memory, struct event_base *base)
{
	*memory = (struct memory_budget){ 0 };
	return evtimer_assign(&memory->relief, base, on_relief, memory) < 0 ? -EINVAL : 0;
}

void memory_open(struct memory_budget *memory, struct memory_share *share, void (*on_most)(void *context),
		 void *context)
{
	*share = (struct memory_share){ .memory = memory, .next = memory->first, .link = &memory->first,
					.on_most = on_most, .context = context };
	if (share->next)
		share->next->link = &share->next;
	memory->first = share;
	memory->count++;
}

void memory_close(struct memory_share *share)
{
	struct memory_budget *memory = share->memory;

	if (!memory)
		return;
	*share->link = share->next;
	if (share->next)
		share->next->link = share->link;
	memory->bytes -= share->bytes;
	memory->count--;
	share->memory = NULL;
}

void memory_set(struct memory_share *share, size_t bytes)
{
	struct memory_budget *memory = share->memory;

	if (!memory)
		return;
	memory->bytes = memory->bytes - share->bytes + bytes;
	share->bytes = bytes;
	if (memory->bytes > MEMORY_MAX && !event_pending(&memory->relief, EV_TIMEOUT, NULL))
		event_add(&memory->relief, &(struct timeval){ 0 });
}

bool memory_is_short(const struct memory_share *share)
{
	const struct memory_budget *memory = share->memory;
	size_t part;

	if (!memory || memory->bytes <= MEMORY_MANY)
		return false;
	part = MEMORY_MANY / memory->count;
	return share->bytes > (part > MEMORY_PART_MIN ? part : MEMORY_PART_MIN);
}
