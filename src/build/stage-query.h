/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has atoll-stage, which is confined, look at what a session staged and tell numbers about it: the box itself reads
 * none of these bytes. Run by atoll-box when nothing runs any more.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "session/run-request.h"

/* The size bytes that `atoll-stage VERB` writes. Waits two seconds at most. -errno: nobody can tell. */
int stage_query(const struct run_request *request, const char *verb, void *ret, size_t size) MUST_USE;
