/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Handlers of the control plane about sandboxes: they take a call that passed access_check() and answer it, now or
 * later. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* SERVICE_WHOAMI: the name and the role of the key. */
void control_whoami(struct call *call);
/* Whether the key may have count sandboxes more, which are counted then; false: the call was answered. */
bool control_check_quotas(struct call *call, uint64_t count) MUST_USE;
/* The same, without rates, for what was asked before: others may have been made meanwhile. */
bool control_has_room(const struct call *call, uint64_t count);
/*
 * For what makes a sandbox of its own: whether the key may have one more, and its policy is compiled. False: the call
 * was answered, or then is called again when it is.
 */
bool control_check_build(struct call *call, void (*then)(struct call *call)) MUST_USE;
/* SERVICE_CREATE, within the quotas of the key. */
void control_create(struct call *call);
/*
 * SERVICE_LIST: those that match the filters, the newest first where nothing else is said, as one page of rows. A page
 * is known by the last row before it, so that what comes and goes meanwhile moves no other row.
 */
void list_sandboxes(struct call *call);
/* SERVICE_GET: all that is known of a sandbox, with its tokens where the key may do more than look. */
void control_get(struct call *call);
/* SERVICE_KILL: answered when nothing of it is left. */
void control_kill(struct call *call);
/* SERVICE_TIMEOUT: how long it has from now on. */
void control_timeout(struct call *call);
/* SERVICE_NETWORK: another narrowing of the key's policy, at once. */
void control_network(struct call *call);
/* SERVICE_HEALTH: whether it runs. */
void control_health(struct call *call);
