/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/function/orphan.h"

#include <poll.h>
#include <sys/epoll.h>

#include "os/clock.h"
#include "os/fd.h"

enum { PATIENCE_MS = 5000, NS_PER_MS = 1000000 };

struct orphan {
	struct orphan *next;
	struct daemon *daemon;
	atoll_sandbox *handle;           /* owned */
	struct loop_source source;
};

static void end(struct orphan *orphan)
{
	struct orphan **at = &orphan->daemon->registry.functions->orphans;

	while (*at != orphan)
		at = &(*at)->next;
	*at = orphan->next;
	loop_remove(&orphan->daemon->loop, &orphan->source);
	atoll_sandbox_free(orphan->handle);
	orphan->daemon->registry.functions->session_ended(orphan->daemon);
	free(orphan);
}

static void stop(const struct orphan *orphan)
{
	uint64_t ticket;

	(void)!atoll_stop(orphan->handle, 0, &ticket, NULL, NULL);
}

/* True: it has ended. */
static bool hear(struct orphan *orphan)
{
	uint64_t type = 0;
	atoll_record *event;

	while (type != ATOLL_EVENT_END && atoll_next(orphan->handle, &event, NULL) == 1) {
		atoll_get_u64(event, "event", &type);
		atoll_record_free(event);
		if (type == ATOLL_EVENT_READY)
			stop(orphan);
	}
	return type == ATOLL_EVENT_END;
}

static int on_event(void *context, uint32_t events)
{
	if (hear(context))
		end(context);
	return 0;
}

void orphan_add(struct daemon *daemon, atoll_sandbox *handle, bool has_begun)
{
	struct orphan *orphan = calloc(1, sizeof *orphan);

	/* Its deadline ends it then. */
	if (!orphan) {
		atoll_sandbox_free(handle);
		return;
	}
	orphan->daemon = daemon;
	orphan->handle = handle;
	orphan->source = (struct loop_source){ .fd = atoll_fd(handle), .events = EPOLLIN, .ready = on_event,
					       .context = orphan };
	orphan->next = daemon->registry.functions->orphans;
	daemon->registry.functions->orphans = orphan;
	if (has_begun)
		stop(orphan);
	if (loop_add(&daemon->loop, &orphan->source) < 0)
		end(orphan);
}

void orphans_done(struct daemon *daemon)
{
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)PATIENCE_MS * NS_PER_MS;

	while (daemon->registry.functions->orphans) {
		struct orphan *orphan = daemon->registry.functions->orphans;
		struct pollfd waited = { .fd = atoll_fd(orphan->handle), .events = POLLIN };
		uint64_t now_ns = clock_monotonic_ns();

		if (now_ns < until_ns && !hear(orphan)) {
			(void)!poll(&waited, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
			continue;
		}
		end(orphan);
	}
}
