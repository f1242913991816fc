/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/budget.h"

enum { MS_NS = 1000000 };

/* At most this much is saved up while nothing moves: a fifth of a second's worth. */
static uint64_t burst_of(const struct budget *budget)
{
	uint64_t burst = (uint64_t)((double)budget->rate_bytes * (200.0 * MS_NS) / (double)budget->period_ns);

	return burst ? burst : 1;
}

void budget_init(struct budget *budget, uint64_t rate_bytes, uint64_t period_ms, uint64_t total_bytes, uint64_t now_ns)
{
	*budget = (struct budget){
		.rate_bytes = period_ms ? rate_bytes : 0, .period_ns = period_ms * MS_NS, .total_bytes = total_bytes,
		.filled_ns = now_ns,
	};
	if (budget->rate_bytes)
		budget->tokens = burst_of(budget);
}

static void fill(struct budget *budget, uint64_t now_ns)
{
	double gained = (double)budget->rate_bytes * (double)(now_ns - budget->filled_ns) / (double)budget->period_ns;
	uint64_t burst = burst_of(budget), tokens;

	if (gained < 1)
		return;
	budget->filled_ns = now_ns;
	tokens = gained > (double)burst ? burst : budget->tokens + (uint64_t)gained;
	budget->tokens = tokens > burst ? burst : tokens;
}

size_t budget_ask(struct budget *budget, size_t wanted, uint64_t now_ns)
{
	if (budget->total_bytes) {
		uint64_t left = budget_is_used_up(budget) ? 0 : budget->total_bytes - budget->used_bytes;

		wanted = left < wanted ? (size_t)left : wanted;
	}
	if (budget->rate_bytes) {
		fill(budget, now_ns);
		wanted = budget->tokens < wanted ? (size_t)budget->tokens : wanted;
	}
	return wanted;
}

void budget_use(struct budget *budget, size_t bytes)
{
	budget->used_bytes += bytes;
	budget->tokens -= bytes < budget->tokens ? bytes : budget->tokens;
}

bool budget_is_used_up(const struct budget *budget)
{
	return budget->total_bytes && budget->used_bytes >= budget->total_bytes;
}

