/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Judges connect, bind, listen and sendto from a copy of the socket address; what that is worth stands in
 * network.c. Runs in atoll-box.
 */

#include <linux/seccomp.h>

#include "watch/call/events.h"
#include "watch/call/remote.h"
#include "watch/connect.h"

enum network_verdict {
	NETWORK_SILENT,      /* goes on (a connect is made), is not worth a record */
	NETWORK_REPORT,      /* goes on */
	NETWORK_REFUSE,      /* with errnum; the event is filled */
	NETWORK_GATE_DECIDES, /* a connect beyond loopback, where there is a gate */
	NETWORK_UNEXPECTED,  /* no address of a family that can exist inside: a refused call */
};

/* *ret_address is the one copy of connect's address; ret_event->errnum says why there is none. */
enum network_verdict network_judge(struct remote *remote, const struct seccomp_notif *request,
				   const struct watch_options *options, struct watch_network *ret_event,
				   struct connect_address *ret_address);

/* Makes the event of a connect that the wall around the host's unix sockets refused. */
void network_refuse_unix(const struct connect_address *address, int errnum, struct watch_network *event);
