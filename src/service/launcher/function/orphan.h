/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandboxes that nobody wants any more before they have begun: a box takes no word of its end until then. Each is ended
 * as soon as it can be told so. Runs in atolld.
 */

#include "service/launcher/function/functions.h"

/* Takes the handle of one that has not said READY yet. */
void orphan_add(struct daemon *daemon, atoll_sandbox *handle);

/* At the end of the daemon: waits for them, some seconds at most, and ends them. */
void orphans_done(struct daemon *daemon);
