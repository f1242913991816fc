/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a request may be: by its credentials, the role of its key, and whose the sandbox is. Every operation passes
 * here before its handler sees it. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/*
 * Sets the call's caller, and its sandbox where the operation is about one. True: it may go on. False: it was answered,
 * and freed: 401 without or with a wrong credential, 403 for a role that may not, 404 for a sandbox that is not there
 * or another's, 502 where a sandbox is asked for what is inside and is gone.
 */
bool access_check(struct call *call) MUST_USE;

/* Whether a key may know of a sandbox or template of this owner. */
bool access_sees(const struct caller *caller, const char *owner);

/*
 * Whether a text means this template: by its id where the key may know of it, by its name for keys of its owner alone.
 * Names are anybody's to choose: that of another owner's template must not lead an admin to it.
 */
bool access_means(const struct caller *caller, const struct template_row *row, const char *text);
