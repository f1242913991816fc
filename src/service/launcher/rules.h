/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Headers that a client has put into the requests of its sandbox (network.rules): from the words of a request to the
 * network gate, which has them where the key's policy reads requests to the host, and nowhere else. Runs in atolld.
 */

#include "service/launcher/call/await.h"

/* The part of a request, or of what was kept of one, that rules_set() takes; NULL or "": it has none. */
bool rules_are_there(const struct service_message *said);

/*
 * 0, or a status (400, 501) with *err: headers that cannot be set, that name a secret which is none of the owner's, or
 * want what is not served.
 */
uint32_t rules_check(struct daemon *daemon, const char *owner, const struct service_message *said,
		     struct err *err) MUST_USE;

/* Has the sandbox set those that are said, instead of those before; done is called with call. */
void rules_set(struct sandbox *sandbox, const struct service_message *said, struct call *call, await_done *done);
