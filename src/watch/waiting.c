/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/waiting.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

/* Quick at first, for what is about to be accepted; then one try costs nothing that anybody would notice. */
enum { DELAY_FIRST_US = 500, DELAY_MAX_US = 50000 };

int waiting_init(struct waiting *waiting)
{
	waiting->count = 0;
	waiting->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return waiting->timer_fd < 0 ? -errno : 0;
}

void waiting_done(struct waiting *waiting)
{
	close_fd(&waiting->timer_fd);
}

static void set_timer(struct waiting *waiting)
{
	uint64_t next = UINT64_MAX, expired;
	struct itimerspec when = { 0 };

	for (size_t i = 0; i < waiting->count; i++)
		if (waiting->calls[i].next_ns < next)
			next = waiting->calls[i].next_ns;
	if (waiting->count) {
		when.it_value.tv_sec = (time_t)(next / 1000000000u);
		when.it_value.tv_nsec = (long)(next % 1000000000u);
	}
	/* Setting it forgets an expiry as well, but not on every kernel. */
	(void)!read(waiting->timer_fd, &expired, sizeof expired);
	timerfd_settime(waiting->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int waiting_add(struct waiting *waiting, const struct connect_call *call, const struct connect_result *result)
{
	uint64_t now = clock_monotonic_ns(), delay = DELAY_FIRST_US * 1000u;

	if (waiting->count == WATCH_WAITING_MAX)
		return -EAGAIN;
	waiting->calls[waiting->count++] = (struct waiting_call){
		.call = *call,
		.next_ns = now + delay,
		.delay_ns = delay,
		.deadline_ns = result->timeout_ns && result->timeout_ns < UINT64_MAX - now ? now + result->timeout_ns
											    : UINT64_MAX,
		.timeout_errnum = result->timeout_errnum,
	};
	set_timer(waiting);
	return 0;
}

struct waiting_call *waiting_next(struct waiting *waiting, size_t *position)
{
	uint64_t now;

	if (!waiting->count)
		return NULL;
	now = clock_monotonic_ns();
	for (; *position < waiting->count; ++*position)
		if (waiting->calls[*position].next_ns <= now)
			return &waiting->calls[*position];
	set_timer(waiting);
	return NULL;
}

void waiting_keep(struct waiting_call *call)
{
	call->delay_ns *= 2;
	if (call->delay_ns > DELAY_MAX_US * 1000u)
		call->delay_ns = DELAY_MAX_US * 1000u;
	call->next_ns = clock_monotonic_ns() + call->delay_ns;
	if (call->next_ns > call->deadline_ns)
		call->next_ns = call->deadline_ns;
}

void waiting_drop(struct waiting *waiting, size_t *position)
{
	waiting->calls[*position] = waiting->calls[--waiting->count];
	if (!waiting->count)
		set_timer(waiting);
}
