/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/requests.h"

#include "egress/gate.h"
#include "os/clock.h"
#include "policy/decide.h"

static const char too_many[] = "there are too many requests for the limits of the policy";

/* Of all rules that any reading of the path is about, as the decision is the strictest of them. */
static uint64_t limited_rules(const struct requests *requests, const struct exchange_record *record,
			      const struct target *target)
{
	struct action action = { .kind = ACTION_HTTP_REQUEST, .subject = requests->connection.host,
				 .port = (uint16_t)requests->connection.port, .method = record->method };
	uint64_t rules = 0;

	for (size_t i = 0; i < target->form_count; i++) {
		action.path = target->forms[i];
		rules |= policy_limited_rules(requests->gate->policy, &action);
	}
	return rules;
}

static bool count_request(void *context, struct exchange_record *record, struct http1_head *head,
			  const struct target *target, char **ret_owned, const char **ret_problem)
{
	const struct requests *requests = context;
	struct quota_share share = { requests->gate->quota, limited_rules(requests, record, target) };
	struct quota_hit hit;
	uint64_t wait_ms;

	(void)head;
	(void)ret_owned;
	if (quota_request(&share, clock_monotonic_ns(), &hit, &wait_ms) == 0)
		return true;
	record->wait_s = (uint32_t)(wait_ms / 1000 + 1);
	*ret_problem = too_many;
	return false;
}

static void tell_request(void *context, const struct exchange_record *record)
{
	const struct requests *requests = context;
	struct gate *gate = requests->gate;
	struct gate_request request = {
		.open = requests->connection,
		.method = record->method,
		.path = record->path,
		.status = record->status,
		.in_bytes = record->bytes_in,
		.out_bytes = record->bytes_out,
		.us = record->started_ns ? (clock_monotonic_ns() - record->started_ns) / 1000 : 0,
		.problem = record->problem,
		.is_limited = record->wait_s > 0,
	};

	gate_send(gate, gate_request_put(&gate->out, &request));
}

struct exchange_hooks requests_hooks(struct requests *requests)
{
	return (struct exchange_hooks){ .outgoing = count_request, .over = tell_request, .context = requests };
}
