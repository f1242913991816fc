/* SPDX-License-Identifier: Apache-2.0 */
#include "box/modules.h"

#include <stddef.h>

#include "base/str.h"
#include "box/control/control.h"
#include "box/state/sandbox.h"
#include "os/clock.h"
#include "supervise/peer.h"

static int check_control(void *state, uint64_t now_ns)
{
	return control_check(state);
}

static const struct module control_module = { .name = "control", .checks_when_ended = true, .check = check_control };

/*
 * In the order of their checks. What detection finds comes behind what people are asked and before what it
 * leads to; who waits at a gate hears of an answer in the turn in which it came.
 */
static const struct {
	const struct module *module;
	size_t state;
} modules[] = {
	{ &peers_module, offsetof(struct box, run) },
	{ &queue_module, offsetof(struct box, approval.queue) },
	{ &prompt_module, offsetof(struct box, approval.prompt) },
	{ &notifier_module, offsetof(struct box, approval.notifier) },
	{ &anomaly_module, offsetof(struct box, detection.anomaly) },
	{ &alerts_module, offsetof(struct box, detection.alerts) },
	{ &reviewer_module, offsetof(struct box, approval.reviewer) },
	{ &runtime_mounts_module, offsetof(struct box, approval.mounts) },
	{ &agent_trust_module, offsetof(struct box, detection.agent_trust) },
	{ &moves_module, offsetof(struct box, gates.moves) },
	{ &file_gate_module, offsetof(struct box, gates.file) },
	{ &net_gate_module, offsetof(struct box, gates.net) },
	{ &control_module, 0 },
	{ &canaries_module, offsetof(struct box, detection.canaries) },
};

int modules_check(struct box *box)
{
	uint64_t now_ns = clock_monotonic_ns();

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		const struct module *module = modules[i].module;
		int r;

		if (!module->check || (box->run.ended != ENDED_NOT && !module->checks_when_ended))
			continue;
		r = module->check((char *)box + modules[i].state, now_ns);
		if (r < 0)
			return r;
	}
	return 0;
}

int modules_timeout_ms(const struct box *box, uint64_t now_ns)
{
	int least = -1;

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		const struct module *module = modules[i].module;
		int ms = module->timeout_ms ? module->timeout_ms((const char *)box + modules[i].state, now_ns) : -1;

		if (ms >= 0 && (least < 0 || ms < least))
			least = ms;
	}
	return least;
}

void modules_done(struct box *box)
{
	for (size_t i = ARRAY_SIZE(modules); i-- > 0;)
		if (modules[i].module->done)
			modules[i].module->done((char *)box + modules[i].state);
}
