/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/requests.h"

#include "egress/gate.h"
#include "os/clock.h"

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
	};

	gate_send(gate, gate_request_put(&gate->out, &request));
}

struct exchange_hooks requests_hooks(struct requests *requests)
{
	return (struct exchange_hooks){ .over = tell_request, .context = requests };
}
