/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandboxes that nobody wants any more, each known by its row (database_put_instance()) until it has ended. A box
 * takes no word of its end before it has begun, and may not hear one from who goes away at once: each is told when it
 * can be, and its handle stays until it has ended. Those of a daemon that was killed are among them. Runs in atolld.
 */

#include "service/launcher/function/functions.h"

/* The row of one goes, which has ended or was never made. That this fails is in the log. */
void orphan_forget(struct daemon *daemon, const char *id);

/* Takes the handle of one, whose row this is; has_begun: it has said READY. */
void orphan_add(struct daemon *daemon, atoll_sandbox *handle, const char *id, bool has_begun);

/* What an earlier daemon has left is looked for from now on. Negative errno. */
int orphans_load(struct daemon *daemon) MUST_USE;

/*
 * Ends what is found of an earlier daemon. is_over: what is not there by now never will be. True: something may come
 * into being still.
 */
bool orphans_look(struct daemon *daemon, bool is_over);

/* At the end of the daemon: waits for the ends of all, some seconds at most. The next start finds what goes on. */
void orphans_done(struct daemon *daemon);
