/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * socketpair(AF_UNIX, SOCK_DGRAM) on behalf of a caller. A datagram socket could send to any path that a mount shows,
 * where no filter can look (sendmsg(2)), so none exists inside. What a pair is used for, messages that stay whole
 * between two ends, a pair of SOCK_SEQPACKET does as well, whose ends lead to one another alone. Runs in atoll-box.
 */

#include <linux/seccomp.h>

#include "watch/call/reply.h"

/*
 * Such sockets are made by us, so their memory is not counted as the sandbox's: a session gets so many pairs in all,
 * and ENFILE then.
 */
enum { PAIRS_MAX = 16384 };

struct pairs {
	unsigned made;
};

/*
 * Answers a call that asks for datagrams. uid and gid are whose the ends say that they are (SO_PEERCRED). 0; 1: it asks
 * for something else, and is not answered; or -errno of the listener.
 */
int pair_serve(struct pairs *pairs, const struct reply *reply, const struct seccomp_notif *request, uid_t uid,
	       gid_t gid) MUST_USE;
