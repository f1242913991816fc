/* SPDX-License-Identifier: Apache-2.0 */
#include "box/status.h"

#include "approve/queue.h"
#include "base/num.h"
#include "box/gate-link.h"
#include "box/report.h"
#include "box/state.h"
#include "os/clock.h"

enum { NS_PER_MS = 1000000 };

static size_t count_commands(const struct box *box)
{
	size_t count = 0;

	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		count += box->commands[i] != NULL;
	return count;
}

static void put_changes(struct box *box, struct json *json)
{
	if (!staged_count_look(&box->staged_count, &box->staging, clock_monotonic_ns())) {
		json_null(json, "changes");
		return;
	}
	json_object_begin(json, "changes");
	json_u64(json, "paths", box->staged_count.paths);
	json_bool(json, "at_least", box->staged_count.is_cut);
	json_object_end(json);
}

static void put_network(struct box *box, struct json *json)
{
	const struct net_gate *gate = &box->gate;

	/* What connections have moved that are still open is the gate's to know; it answers for the next time. */
	gate_measure(&box->gate);
	json_u64(json, "net_in", gate->counts.in_bytes > gate->counts.moved_in ? gate->counts.in_bytes
		 : gate->counts.moved_in);
	json_u64(json, "net_out", gate->counts.out_bytes > gate->counts.moved_out ? gate->counts.out_bytes
		 : gate->counts.moved_out);
	json_u64(json, "connections", gate->counts.connections);
}

/* Only those that there are. */
static void put_limits(const struct policy *policy, struct json *json)
{
	json_object_begin(json, "limits");
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		uint64_t value = policy->limits[i].value;

		if (value == NUM_UNLIMITED)
			continue;
		if (i == RESOURCE_CPUS)
			json_fixed(json, resource_name(i), value);
		else
			json_u64(json, resource_name(i), value);
	}
	json_object_end(json);
}

void status_put(struct box *box, struct json *json)
{
	box_read_usage(box);
	json_object_begin(json, NULL);
	json_string(json, "session", box->run.request->session);
	json_string(json, "policy", box->run.network_policy->name);
	json_u64(json, "uptime_ms", (clock_monotonic_ns() - box->run.request->started_ns) / NS_PER_MS);
	json_u64(json, "commands", count_commands(box));
	json_u64(json, "processes", box->run.usage.processes);
	json_u64(json, "memory_bytes", box->run.usage.memory_bytes);
	json_u64(json, "memory_peak", box->run.usage.memory_peak_bytes);
	json_u64(json, "cpu_ms", box->run.usage.cpu_ns / NS_PER_MS);
	json_u64(json, "output_bytes", box->run.output_bytes);
	json_u64(json, "denials", box->run.refusals->denials.total);
	json_u64(json, "alerts", box->alerts.total);
	json_u64(json, "questions", queue_count_open(&box->queue));
	json_bool(json, "is_followed", control_is_followed(box));
	put_changes(box, json);
	put_network(box, json);
	put_limits(box->run.policy->policy, json);
	report_enforcement(box, json);
	json_object_end(json);
}
