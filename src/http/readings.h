/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The paths that one path can become on its way through servers, proxies and frameworks. Each of them takes some steps
 * (base/url-path.h) in some order, some more than once; the readings are all that any order of any of these steps leads
 * to. Where that is too many to tell, what all of them begin with is told in their place. Pure, bounded.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { READINGS_MAX = 32 };

struct readings {
	char *texts[READINGS_MAX];   /* owned; the first is the path as it was sent, free escapes undone */
	size_t count;
	/* Owned: the others are this directory ("/" or "/a/b") or anything below it. NULL: there are no others. */
	char *certain;
};

/*
 * path: NUL-terminated, begins with a slash, has no blank and no control character, each % begins an escape; without
 * its query, of which query_climbs tells. -ENOMEM. readings_done() frees; of all zero as well.
 */
int readings_make(const char *path, uint32_t query_climbs, struct readings *ret_readings) MUST_USE;
void readings_done(struct readings *readings);

/*
 * How many segments of a query, read as a path, lead one up: for who normalises the target before he takes the query
 * off.
 */
uint32_t readings_climbs_of(const char *query);
