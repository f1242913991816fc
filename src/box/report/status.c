/* SPDX-License-Identifier: Apache-2.0 */
#include "box/report/status.h"

#include <string.h>

#include "approve/queue.h"
#include "base/num.h"
#include "box/report/report.h"
#include "box/state/sandbox.h"
#include "gate-net/link.h"
#include "os/clock.h"
#include "wire/field.h"

enum { NS_PER_MS = 1000000 };

static size_t count_commands(const struct box *box)
{
	size_t count = 0;

	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		count += box->commands[i] != NULL;
	return count;
}

/* Of more than are counted for this the watch of the disk limit knows, which counts all, but seldom. */
static uint64_t staged_bytes(const struct box *box)
{
	uint64_t counted = box->build.disk.watch.counted_bytes, bytes = box->build.staged_count.bytes;

	return box->build.staged_count.is_cut && counted > bytes ? counted : bytes;
}

static void put_changes(struct box *box, struct json *json)
{
	if (!staged_count_look(&box->build.staged_count, &box->build.staging, clock_monotonic_ns())) {
		json_null(json, "changes");
		return;
	}
	json_object_begin(json, "changes");
	json_u64(json, "paths", box->build.staged_count.paths);
	json_u64(json, "bytes", staged_bytes(box));
	json_bool(json, "at_least", box->build.staged_count.is_cut);
	json_object_end(json);
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

struct figure {
	const char *name;
	uint64_t value;
};

enum { FIGURES = 13, FIGURES_FIRST = 10 };

/* What the gate knows stands behind the first ones. */
static void read_figures(struct box *box, struct figure out[FIGURES])
{
	const struct limit_usage *usage = &box->run.usage;
	const struct gate_counts *counts = &box->gates.net.counts;

	box_read_usage(box);
	/* What connections have moved that are still open is the gate's to know; it answers for the next time. */
	gate_measure(&box->gates.net);
	const struct figure figures[] = {
		{ "uptime_ms", (clock_monotonic_ns() - box->run.request->started_ns) / NS_PER_MS },
		{ "commands", count_commands(box) },
		{ "processes", usage->processes },
		{ "memory_bytes", usage->memory_bytes },
		{ "memory_peak", usage->memory_peak_bytes },
		{ "cpu_ms", usage->cpu_ns / NS_PER_MS },
		{ "output_bytes", box->run.output_bytes },
		{ "denials", box->run.refusals->denials.total },
		{ "alerts", box->detection.alerts.total },
		{ "questions", queue_count_open(&box->approval.queue) },
		{ "net_in", counts->in_bytes > counts->moved_in ? counts->in_bytes : counts->moved_in },
		{ "net_out", counts->out_bytes > counts->moved_out ? counts->out_bytes : counts->moved_out },
		{ "connections", counts->connections },
	};
	_Static_assert(sizeof figures == FIGURES * sizeof *figures, "all of them");
	memcpy(out, figures, sizeof figures);
}

void status_put(struct box *box, bool is_followed, struct json *json)
{
	struct figure figures[FIGURES];

	read_figures(box, figures);
	json_object_begin(json, NULL);
	json_string(json, "session", box->run.request->session);
	json_string(json, "policy", box->run.network_policy->name);
	for (size_t i = 0; i < FIGURES_FIRST; i++)
		json_u64(json, figures[i].name, figures[i].value);
	json_bool(json, "is_followed", is_followed);
	put_changes(box, json);
	for (size_t i = FIGURES_FIRST; i < FIGURES; i++)
		json_u64(json, figures[i].name, figures[i].value);
	put_limits(box->run.policy->policy, json);
	report_enforcement(box, json);
	json_object_end(json);
}

void status_put_fields(struct box *box, struct buf *out)
{
	struct figure figures[FIGURES];

	read_figures(box, figures);
	field_put_string(out, "policy", box->run.network_policy->name);
	for (size_t i = 0; i < FIGURES; i++)
		field_put_u64(out, figures[i].name, figures[i].value);
	if (staged_count_look(&box->build.staged_count, &box->build.staging, clock_monotonic_ns()))
		field_put_u64(out, "changes", box->build.staged_count.paths);
}
