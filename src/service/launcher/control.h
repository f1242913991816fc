/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Handlers of the control plane about one sandbox: they take a call that passed access_check() and answer it, now or
 * later. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* SERVICE_WHOAMI: the name and the role of the key. */
void control_whoami(struct call *call);
/* SERVICE_CREATE, within the quotas of the key. */
void control_create(struct call *call);
/* SERVICE_GET: all that is known of a sandbox, with its tokens. */
void control_get(struct call *call);
/* SERVICE_KILL: answered when nothing of it is left. */
void control_kill(struct call *call);
/* SERVICE_TIMEOUT: how long it has from now on. */
void control_timeout(struct call *call);
/* SERVICE_NETWORK: another narrowing of the key's policy, at once. */
void control_network(struct call *call);
/* SERVICE_HEALTH: whether it runs. */
void control_health(struct call *call);
