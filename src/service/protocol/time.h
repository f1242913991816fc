/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Times as JSON has them: RFC 3339, in UTC, with milliseconds. Calendar arithmetic alone: no time zone of the machine
 * and no clock is looked at. Pure. Run by atoll-front.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { TIME_SIZE = 40 };

/* "2026-11-23T10:00:00.123Z", from 1970 to 9999; later is the end of 9999. */
void time_format(uint64_t ms, char out[TIME_SIZE]);

/* Any RFC 3339 time since 1970, with "Z" or an offset. -EINVAL. */
int time_parse(const char *text, uint64_t *ret_ms) MUST_USE;
