/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The table of operations: each call is checked (access.h), and handed to its handler. A handler answers it, now or
 * later. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* Answers a call, whatever it is, in the end. */
void operate(struct call *call);

/* What handlers have begun and nobody will end: templates that are being built go with this process. */
void operate_done(struct daemon *daemon);

/* What folders below may have done with sandboxes (daemon.h). */
extern const struct daemon_verbs *const operate_verbs;
