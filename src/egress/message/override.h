/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fields of a request by which a server does something else than its method and path say, which are what was judged.
 * Pure. Runs in atoll-egress.
 */

#include "egress/message/http1.h"
#include "http/target.h"

/* NULL, or why a request of this method and with these fields does not go to the server. */
const char *override_find(const struct http1_head *head, const char *method, const struct target_server *server,
			  const struct policy *policy);
