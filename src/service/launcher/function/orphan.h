/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandboxes that nobody wants any more. A box takes no word of its end before it has begun, and may not hear one from
 * who goes away at once: each is told when it can be, and its handle stays until it has ended. Runs in atolld.
 */

#include "service/launcher/function/functions.h"

/* Takes the handle of one; has_begun: it has said READY. */
void orphan_add(struct daemon *daemon, atoll_sandbox *handle, bool has_begun);

/* At the end of the daemon: waits for the ends of all, some seconds at most. */
void orphans_done(struct daemon *daemon);
