/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The secrets of clients: what is known of each is in the database, its value is sealed (sealed.h). Nobody is ever
 * shown one. It gets into headers of requests at the network gate, where network.rules say ${e2b.secrets.NAME}, and so
 * only to hosts whose requests the policy of the key has read. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* Answer SERVICE_SECRET_CREATE, SERVICE_SECRETS, SERVICE_SECRET_GET, _UPDATE and _DELETE. */
void secrets_create(struct call *call);
void secrets_list(struct call *call);
void secrets_get(struct call *call);
void secrets_update(struct call *call);
void secrets_delete(struct call *call);

/*
 * The values of headers with the owner's secrets in the place of their names. triples: host, name, value …; those
 * values are replaced, old ones freed; the caller wipes them. is_check: nothing is replaced, it is only looked whether
 * each is there. 0; -ENOENT, -EINVAL with *err: it names what is none of the owner's, or too many; others: -errno.
 */
int secrets_fill(struct daemon *daemon, const char *owner, char **triples, bool is_check, struct err *err) MUST_USE;
