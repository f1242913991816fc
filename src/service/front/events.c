/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/events.h"

#include "service/front/process.h"
#include "service/front/watch.h"

void front_event(struct front *front, const struct service_message *event)
{
	switch (event->event) {
	case SERVICE_EXIT:
		process_on_exit(front, event);
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
		break;
	default:
		/* What stands still keeps its streams. */
		break;
	}
}
