/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/hub.h"

#include <assert.h>

/* A note may tell of a limit that it hit, and that of nothing more. */
enum { DEPTH_MAX = 2 };

void hub_subscribe(struct hub *hub, struct subscriber *subscriber)
{
	struct subscriber **at = &hub->first;

	while (*at)
		at = &(*at)->next;
	subscriber->next = NULL;
	*at = subscriber;
	hub->types |= subscriber->types;
}

int hub_publish(struct hub *hub, enum event_type type, const void *detail)
{
	int r = 0;

	if (!(hub->types >> type & 1))
		return 0;
	assert(hub->depth < DEPTH_MAX);
	hub->depth++;
	for (struct subscriber *at = hub->first; at && r == 0; at = at->next)
		if (at->types >> type & 1)
			r = at->note(at->context, type, detail);
	hub->depth--;
	return r;
}
