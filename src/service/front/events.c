/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/events.h"

#include "service/front/extension.h"
#include "service/front/process.h"
#include "service/front/state.h"
#include "service/front/watch.h"

void front_event(struct front *front, const struct service_message *event)
{
	switch (event->event) {
	case SERVICE_EXIT:
		process_on_exit(front, event);
		if (front->extension)
			front->extension->exit(front, event);
		break;
	case SERVICE_CHANGED:
		watch_on_change(front, event);
		break;
	case SERVICE_LOST:
		watch_on_lost(front, event);
		break;
	case SERVICE_GONE:
		watch_on_gone(front, service_string(event, "sandbox"));
		process_on_gone(front, service_string(event, "sandbox"));
		if (front->extension)
			front->extension->gone(front, service_string(event, "sandbox"));
		break;
	default:
		/* What stands still keeps its streams. */
		break;
	}
}

void front_tick(struct front *front)
{
	process_tick(front);
	watch_tick(front);
	if (front->extension)
		front->extension->tick(front);
}

struct loop *front_loop(struct front *front)
{
	return &front->loop;
}

struct launcher *front_launcher(struct front *front)
{
	return front->launcher;
}

uint64_t front_now_ms(const struct front *front)
{
	return front->now_ms;
}

void **front_extension_state(struct front *front)
{
	return &front->extension_state;
}
