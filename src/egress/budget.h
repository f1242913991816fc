/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What network.limits leaves of bytes: a rate (token bucket, RFC 2697 without its colours) and a total, over both
 * directions of all connections together. Pure: the caller brings the clock. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUDGET_WAIT_MS = 20 };

struct budget {
	uint64_t rate_bytes, period_ns;  /* rate 0: none */
	uint64_t total_bytes;            /* 0: none */
	uint64_t used_bytes;
	uint64_t tokens;                 /* bytes that may be moved now */
	uint64_t filled_ns;
};

void budget_init(struct budget *budget, uint64_t rate_bytes, uint64_t period_ms, uint64_t total_bytes, uint64_t now_ns);

/* How many of wanted bytes may be moved now; 0: wait BUDGET_WAIT_MS, or the total is reached (budget_is_used_up). */
size_t budget_ask(struct budget *budget, size_t wanted, uint64_t now_ns);

/* These were moved. */
void budget_use(struct budget *budget, size_t bytes);
bool budget_is_used_up(const struct budget *budget);
