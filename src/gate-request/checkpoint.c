/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-request/checkpoint.h"

#include "base/str.h"
#include "gate-request/gate-state.h"
#include "os/clock.h"
#include "supervise/run.h"

/*
 * Everything inside stands still while the copy is made, also who asked. So who asks again and again slows itself; the
 * pause is for the host's disk.
 */
enum { PAUSE_MS = 3000, PAUSE_FACTOR = 10, NS_PER_MS = 1000000, REASON_MAX = 128 };

static int reply(struct access_gate *gate, uint32_t id, enum desk_verdict verdict, const char *reason, const char *hint)
{
	struct desk_answer answer = { .id = id, .verdict = verdict, .rule = "stage.turn", .reason = reason,
				      .hint = hint };

	if (desk_answer_put(&gate->run->out, &answer) == 0)
		access_gate_send(gate);
	return 0;
}

static void pause_after(struct access_checkpoint *checkpoint)
{
	uint64_t now_ns = clock_monotonic_ns(), took_ns = now_ns - checkpoint->started_ns;

	checkpoint->id = 0;
	checkpoint->free_ns = now_ns + PAUSE_MS * (uint64_t)NS_PER_MS + PAUSE_FACTOR * took_ns;
}

/* Why there is none is for people outside: it names places of the host. */
static int on_end(void *context, const char *name, const char *why)
{
	struct access_gate *gate = context;
	uint32_t id = gate->checkpoint.id;
	char reason[REASON_MAX];

	(void)why;
	pause_after(&gate->checkpoint);
	if (!name || str_format(reason, sizeof reason, "checkpoint %s was taken", name) < 0)
		return reply(gate, id, DESK_UNANSWERED, "no checkpoint could be taken",
			     "it is too large, or nothing is staged here; outside, `atoll snapshot --turn` says why");
	return reply(gate, id, DESK_ALLOWED, reason, "");
}

void access_checkpoint_init(struct access_gate *gate)
{
	snapshot_job_init(&gate->checkpoint.job, gate->run, on_end, gate);
}

void access_checkpoint_done(struct access_gate *gate)
{
	snapshot_job_close(&gate->checkpoint.job);
	if (gate->checkpoint.id)
		pause_after(&gate->checkpoint);
}

int access_checkpoint_take(struct access_gate *gate, uint32_t id, const char *text)
{
	struct access_checkpoint *checkpoint = &gate->checkpoint;

	/* What is recent serves as well: a hook is no failure for that. */
	if (checkpoint->id || clock_monotonic_ns() < checkpoint->free_ns)
		return reply(gate, id, DESK_ALLOWED, "skipped: there is a recent checkpoint already", "");
	checkpoint->id = id;
	checkpoint->started_ns = clock_monotonic_ns();
	if (snapshot_job_start(&checkpoint->job, "--turn", *text ? text : "turn") == 0)
		return 0;
	pause_after(checkpoint);
	return reply(gate, id, DESK_UNANSWERED, "no checkpoint could be taken", "try again later");
}
