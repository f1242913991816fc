/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a sandbox uses, as its box counts it, and what its policy lets it have. Looked at when somebody asks and at no
 * other time: a sandbox that nobody looks at costs nothing. The last looks are kept. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* SERVICE_METRICS: of one sandbox a look now and those before, or of several the last look at each. */
void metrics_show(struct call *call);

/* Asks for the limits once, so that the sandbox can be described with them. */
void metrics_begin(struct sandbox *sandbox);

/*
 * What the sandboxes of an owner may use together, in MiB, as far as it is known; those that wait on disk count
 * nothing.
 */
uint64_t metrics_memory_of(const struct registry *registry, const char *owner);

/* Appends cpu_count, memory_mb and disk_mb where they are known and bounded. */
void metrics_put_limits(const struct sandbox *sandbox, struct buf *out);
