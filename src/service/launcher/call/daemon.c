/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/daemon.h"

#include <sys/timerfd.h>

#include "os/clock.h"

enum { NS_PER_S = 1000000000, CHECKPOINT_S = 30, QUIET_NS = 3000000, LATEST_NS = 100000000 };

void daemon_wake_at(struct daemon *daemon, uint64_t ns)
{
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ns / NS_PER_S),
	.tv_nsec = (long)(ns % NS_PER_S) } };

	if (ns >= daemon->due.timer_ns)
		return;
	daemon->due.timer_ns = ns;
	if (!when.it_value.tv_sec && !when.it_value.tv_nsec)
		when.it_value.tv_nsec = 1;
	(void)!timerfd_settime(daemon->timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

uint64_t daemon_quiet_at(const struct daemon *daemon, uint64_t since_ns, uint64_t now_ns)
{
	uint64_t quiet_ns = (daemon->due.calls.under_way ? now_ns : daemon->due.calls.last_ns) + QUIET_NS;
	uint64_t latest_ns = since_ns + LATEST_NS;

	if (now_ns >= quiet_ns || now_ns >= latest_ns)
		return 0;
	return quiet_ns < latest_ns ? quiet_ns : latest_ns;
}

void daemon_note_change(struct daemon *daemon)
{
	if (daemon->due.checkpoint_ns != UINT64_MAX)
		return;
	daemon->due.checkpoint_ns = clock_monotonic_ns() + (uint64_t)CHECKPOINT_S * NS_PER_S;
	daemon_wake_at(daemon, daemon->due.checkpoint_ns);
}
