/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Commands in sandboxes: their start, their list, and what is done to them. Streams are handed to the front as they
 * came from libatoll; which commands there are is asked of the box each time. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* Handlers of SERVICE_EXEC, _COMMANDS, _ATTACH, _SIGNAL, _RESIZE, _CLOSE_INPUT. */
void commands_exec(struct call *call);
void commands_list(struct call *call);
void commands_attach(struct call *call);
void commands_signal(struct call *call);
void commands_resize(struct call *call);
void commands_close_input(struct call *call);

/* Handler of SERVICE_INTERPRET: 204, or 401 without the access token of the sandbox or that of its ports. */
void commands_interpret(struct call *call);

/* Events of the sandbox: one began (its pid), one ended; the sandbox has. */
void commands_started(struct sandbox *sandbox, const atoll_record *event);
void commands_ended(struct sandbox *sandbox, const atoll_record *event);
void commands_gone(struct sandbox *sandbox);

/*
 * Events were lost, for there were too many at once: the box is asked which commands there are, and the front is told.
 */
void commands_lost(struct sandbox *sandbox);
