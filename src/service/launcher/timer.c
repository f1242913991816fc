/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/timer.h"

#include <unistd.h>

#include "os/clock.h"
#include "service/launcher/call/call.h"
#include "service/launcher/function/operations.h"
#include "service/launcher/pause.h"
#include "service/launcher/pool.h"
#include "service/launcher/recover.h"
#include "service/launcher/store/journal.h"
#include "service/launcher/tidy.h"
#include "service/launcher/warm.h"

enum { NS_PER_S = 1000000000 };

/* The front is started again; where it cannot be, later once more. */
static uint64_t tend_front(struct daemon *daemon)
{
	uint64_t next_ns = front_next_start_ns(&daemon->front);
	struct err err = { 0 };

	if (next_ns == UINT64_MAX || next_ns > clock_monotonic_ns())
		return next_ns;
	if (front_start(&daemon->front, &err) < 0) {
		(void)!call_note(daemon, "front.start", NULL, err.message);
		return clock_monotonic_ns() + (uint64_t)NS_PER_S;
	}
	return UINT64_MAX;
}

static void wake_if(struct daemon *daemon, uint64_t ns)
{
	if (ns != UINT64_MAX)
		daemon_wake_at(daemon, ns);
}

int timer_ready(void *context, uint32_t events)
{
	struct daemon *daemon = context;
	uint64_t count, now_ns = clock_monotonic_ns();

	(void)!read(daemon->timer.fd, &count, sizeof count);
	daemon->due.timer_ns = UINT64_MAX;
	if (daemon->due.checkpoint_ns <= now_ns) {
		daemon->due.checkpoint_ns = UINT64_MAX;
		database_checkpoint(daemon->store);
		if (journal_turn(daemon->places.directory, &daemon->audit) < 0)
			(void)!call_note(daemon, "audit", NULL, "no new file could be begun");
	}
	wake_if(daemon, daemon->due.checkpoint_ns);
	wake_if(daemon, recover_late(daemon));
	wake_if(daemon, pause_ended(daemon));
	wake_if(daemon, pool_tend(daemon));
	wake_if(daemon, warm_tend(daemon));
	wake_if(daemon, invoke_tend(daemon));
	wake_if(daemon, tidy_turn(daemon));
	if (!daemon->is_stopping)
		wake_if(daemon, tend_front(daemon));
	return 0;
}
