/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A token bucket (RFC 2697 without its colours): so much per time, and so much saved up at most. Pure: the caller
 * brings the clock and keeps the limit.
 */

#include <stdint.h>

struct bucket {
	double tokens;               /* may be a fraction, and below 0 after more was taken than there was */
	uint64_t filled_ns;
};

/* amount per period_ms; capacity: what can be saved up, at least 1 in effect. */
struct bucket_limit {
	uint64_t amount, period_ms;
	double capacity;
};

/* With as many tokens as the limit lets it hold; what comes is counted from now_ns (CLOCK_MONOTONIC) on. */
struct bucket bucket_start(const struct bucket_limit *limit, uint64_t now_ns);

/* Adds what came since the last time; the tokens that are there. */
double bucket_fill(struct bucket *bucket, const struct bucket_limit *limit, uint64_t now_ns);

/* When there will be one token, counted from the last fill; 0: there is one. */
uint64_t bucket_wait_ms(const struct bucket *bucket, const struct bucket_limit *limit);
