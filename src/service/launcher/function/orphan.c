/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/function/orphan.h"

#include <poll.h>
#include <sys/epoll.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

enum { PATIENCE_MS = 5000, NS_PER_MS = 1000000 };

struct orphan {
	struct orphan *next;
	struct daemon *daemon;
	char id[CREDENTIAL_ID_SIZE];
	atoll_sandbox *handle;           /* owned; NULL: an earlier daemon's, not found yet */
	struct loop_source source;
};

void orphan_forget(struct daemon *daemon, const char *id)
{
	if (database_remove_instance(daemon->store, id) < 0)
		(void)!call_note(daemon, "function.end", id, database_problem(daemon->store));
}

/* A row that stays is looked for at the next start. */
static void release(struct orphan *orphan, bool has_ended)
{
	struct daemon *daemon = orphan->daemon;
	struct orphan **at = &daemon->registry.functions->orphans;

	while (*at != orphan)
		at = &(*at)->next;
	*at = orphan->next;
	loop_remove(&daemon->loop, &orphan->source);
	if (has_ended)
		orphan_forget(daemon, orphan->id);
	if (orphan->handle) {
		atoll_sandbox_free(orphan->handle);
		daemon->registry.functions->session_ended(daemon);
	}
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
		release(context, true);
	return 0;
}

/* NULL: out of memory. */
static struct orphan *add(struct daemon *daemon, const char *id)
{
	struct orphan *orphan = calloc(1, sizeof *orphan);

	if (!orphan)
		return NULL;
	orphan->daemon = daemon;
	(void)!str_copy(orphan->id, sizeof orphan->id, id);
	orphan->source.fd = FD_NONE;
	orphan->next = daemon->registry.functions->orphans;
	daemon->registry.functions->orphans = orphan;
	return orphan;
}

/* Hears of it from now on. One that cannot be heard of is left to its deadline, and to the next start. */
static void adopt(struct orphan *orphan, atoll_sandbox *handle, bool has_begun)
{
	orphan->handle = handle;
	orphan->source = (struct loop_source){ .fd = atoll_fd(handle), .events = EPOLLIN, .ready = on_event,
					       .context = orphan };
	if (has_begun)
		stop(orphan);
	if (loop_add(&orphan->daemon->loop, &orphan->source) < 0) {
		orphan->source.fd = FD_NONE;
		release(orphan, false);
	}
}

void orphan_add(struct daemon *daemon, atoll_sandbox *handle, const char *id, bool has_begun)
{
	struct orphan *orphan = add(daemon, id);

	/* Its deadline ends it then. */
	if (orphan)
		adopt(orphan, handle, has_begun);
	else
		atoll_sandbox_free(handle);
}

/* ---- what an earlier daemon has left ---- */

static int load_row(void *context, const char *id)
{
	return add(context, id) ? 0 : -ENOMEM;
}

int orphans_load(struct daemon *daemon)
{
	int r = database_each_instance(daemon->store, load_row, daemon);

	if (r == 0 && daemon->registry.functions->orphans)
		daemon_wake_at(daemon, clock_monotonic_ns());
	return r;
}

bool orphans_look(struct daemon *daemon, bool is_over)
{
	bool is_waiting = false;

	for (struct orphan *orphan = daemon->registry.functions->orphans, *next; orphan; orphan = next) {
		atoll_sandbox *handle = NULL;

		next = orphan->next;
		if (orphan->handle)
			continue;
		if (atoll_find(daemon->context, orphan->id, &handle, NULL) == 0)
			adopt(orphan, handle, true);
		else if (is_over)
			release(orphan, true);
		else
			is_waiting = true;
	}
	return is_waiting;
}

/* ---- the end ---- */

void orphans_done(struct daemon *daemon)
{
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)PATIENCE_MS * NS_PER_MS;

	while (daemon->registry.functions->orphans) {
		struct orphan *orphan = daemon->registry.functions->orphans;
		uint64_t now_ns = clock_monotonic_ns();
		struct pollfd waited = { .fd = orphan->handle ? atoll_fd(orphan->handle) : FD_NONE, .events = POLLIN };

		if (!orphan->handle)
			release(orphan, false);
		else if (hear(orphan))
			release(orphan, true);
		else if (now_ns >= until_ns)
			release(orphan, false);
		else
			(void)!poll(&waited, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
	}
}
