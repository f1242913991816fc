/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has atoll-stage, which is confined, look at what a session staged and tell numbers about it: the box itself reads
 * none of these bytes. Run by atoll-box while nothing runs inside.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "session/run-request.h"

enum { STAGE_QUERY_MS = 2000 };  /* for what only looks */

/* The size bytes that `atoll-stage VERB` writes; it is killed after patience_ms. -errno: nobody can tell. */
int stage_query(const struct run_request *request, const char *verb, unsigned patience_ms, void *ret,
		size_t size) MUST_USE;
