/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Templates that clients build (run.h): what they stand on, and which steps need not be done again. What a step
 * led to is kept as a snapshot and found by the hash of all steps up to it. Runs in atolld.
 */

#include "service/launcher/build/build.h"
#include "service/launcher/build/requests.h"
#include "service/launcher/build/run.h"
#include "service/launcher/build/start.h"

/* SERVICE_BUILD_START: 202, and it goes on. */
void builds_start(struct call *call);

/* The sandbox of SERVICE_BUILD_START lives. Takes the call. */
void builds_begun(struct sandbox *sandbox, struct call *call);

/* SERVICE_TEMPLATE_DELETE: a built template with its builds and tags, or a snapshot. */
void builds_delete(struct call *call);

/* The end of the process: those that are built end with it. */
void builds_stop(struct daemon *daemon);
