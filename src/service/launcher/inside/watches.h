/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Directories that are watched inside: changes go to the front as they come, and what was lost is said. Which watches
 * there are, libatoll knows. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* Handlers of SERVICE_WATCH and _UNWATCH. */
void watches_add(struct call *call);
void watches_remove(struct call *call);

/* An event of the sandbox: something below a watched directory changed. */
void watches_changed(struct sandbox *sandbox, const atoll_record *event);
