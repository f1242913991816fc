/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/service.h"

#include <sys/socket.h>

/*
 * Without a descriptor to spare nobody is taken from the queue of a listening socket, which stays readable: the loop
 * would turn for nothing until a connection ends, and whoever opens enough of them would decide when. So all of them
 * are left alone for a moment. Who waits there waits, and is served afterwards.
 */

enum { REST_MS = 100 };

static void watch_all(struct gate *gate, bool watches)
{
	for (const struct gate_service *const *service = gate->services; *service; service++)
		if ((*service)->watch)
			(*service)->watch(gate, watches);
}

static void on_rested(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	watch_all(context, true);
}

static bool is_exhausted(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == ENOBUFS;
}

int gate_accept(struct gate *gate, int listening_fd, struct sockaddr_storage *ret_from)
{
	socklen_t size = sizeof *ret_from;
	int accepted = accept4(listening_fd, (struct sockaddr *)ret_from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (accepted >= 0)
		return accepted;
	if (is_exhausted(errno)) {
		watch_all(gate, false);
		event_add(&gate->rest_timer, &(struct timeval){ .tv_usec = REST_MS * 1000 });
	}
	return FD_NONE;
}

int gate_accept_init(struct gate *gate)
{
	return evtimer_assign(&gate->rest_timer, gate->base, on_rested, gate) < 0 ? -EINVAL : 0;
}

bool gate_may_open(const struct gate *gate, enum verdict verdict)
{
	return verdict >= VERDICT_SIMULATE || (verdict == VERDICT_ASK && gate->asks);
}

void gate_check_stopped(struct gate *gate)
{
	if (gate->is_stopping && !gate->flows.count && !gate->publishing.visit_count)
		event_base_loopbreak(gate->base);
}
