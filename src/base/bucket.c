/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bucket.h"

enum { MS_NS = 1000000 };

static double capacity_of(const struct bucket_limit *limit)
{
	return limit->capacity < 1 ? 1 : limit->capacity;
}

struct bucket bucket_start(const struct bucket_limit *limit, uint64_t now_ns)
{
	return (struct bucket){ capacity_of(limit), now_ns };
}

double bucket_fill(struct bucket *bucket, const struct bucket_limit *limit, uint64_t now_ns)
{
	double capacity = capacity_of(limit);

	if (now_ns > bucket->filled_ns) {
		bucket->tokens += (double)limit->amount * (double)(now_ns - bucket->filled_ns) /
				  ((double)limit->period_ms * MS_NS);
		bucket->filled_ns = now_ns;
	}
	if (bucket->tokens > capacity)
		bucket->tokens = capacity;
	return bucket->tokens;
}

uint64_t bucket_wait_ms(const struct bucket *bucket, const struct bucket_limit *limit)
{
	if (bucket->tokens >= 1)
		return 0;
	return 1 + (uint64_t)((1 - bucket->tokens) * (double)limit->period_ms / (double)limit->amount);
}
