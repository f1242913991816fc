/* SPDX-License-Identifier: Apache-2.0 */
#include "box/gate-link.h"

#include "base/err.h"
#include "base/str.h"
#include "box/state.h"
#include "os/clock.h"
#include "os/fd.h"
#include "policy/decide.h"
#include "wire/gate.h"

void gate_mark_lost(struct box *box, const char *why)
{
	struct gate_link *gate = &box->gate;

	if (gate->state == LINK_LOST || gate->state == LINK_GONE)
		return;
	gate->state = LINK_LOST;
	if (!gate->failure[0] && str_copy(gate->failure, sizeof gate->failure, why) < 0)
		gate->failure[0] = 0;
}

void gate_send(struct box *box, int r, const int *fds, size_t fd_count)
{
	if (r >= 0)
		r = frame_send(box->gate.near_fd, &box->run.out, fds, fd_count);
	if (r < 0)
		gate_mark_lost(box, "it does not listen");
}

bool gate_is_there(const struct gate_link *gate)
{
	return gate->state == LINK_STARTING || gate->state == LINK_SERVING;
}

bool gate_can_hear(const struct gate_link *gate)
{
	return gate->state == LINK_IDLE || gate_is_there(gate);
}

void gate_answer(struct box *box, uint32_t id, bool is_granted)
{
	if (box->gate.state != LINK_SERVING)
		return;
	frame_begin(&box->run.out, GATE_GO);
	frame_put_u32(&box->run.out, id);
	frame_put_u32(&box->run.out, is_granted);
	gate_send(box, frame_end(&box->run.out), NULL, 0);
}

void gate_answer_request(struct box *box, uint32_t id, const struct decision *decision)
{
	struct gate_answer answer = { .id = id, .is_granted = decision->verdict >= VERDICT_SIMULATE,
				      .rule = decision->rule.id, .reason = decision->reason, .hint = decision->hint };

	if (box->gate.state == LINK_SERVING)
		gate_send(box, gate_answer_put(&box->run.out, &answer), NULL, 0);
}

uint64_t gate_pause_left_ms(const struct box *box)
{
	uint64_t own_ms = cooldown_left_ms(&box->gate.cooldown, clock_monotonic_ns());
	uint64_t all_ms = rate_pause_left_ms(&box->run);

	return own_ms > all_ms ? own_ms : all_ms;
}

void gate_pause(struct box *box)
{
	if (!gate_is_there(&box->gate))
		return;
	frame_begin(&box->run.out, GATE_PAUSE);
	frame_put_u64(&box->run.out, gate_pause_left_ms(box));
	gate_send(box, frame_end(&box->run.out), NULL, 0);
}

void gate_measure(struct box *box)
{
	struct gate_link *gate = &box->gate;

	/* One question at a time: who asks us a thousand times fills no socket with it. */
	if (gate->state != LINK_SERVING || gate->is_measuring)
		return;
	frame_begin(&box->run.out, GATE_MEASURE);
	gate->is_measuring = frame_end(&box->run.out) == 0 && frame_send(gate->near_fd, &box->run.out, NULL, 0) == 0;
}

void gate_say_asking(struct box *box, bool is_on)
{
	struct gate_link *gate = &box->gate;

	if (is_on == gate->asking.is_on)
		return;
	gate->asking.is_on = is_on;
	frame_begin(&box->run.out, GATE_ASKING);
	frame_put_u32(&box->run.out, is_on);
	gate_send(box, frame_end(&box->run.out), NULL, 0);
}

void gate_say_policy(struct box *box, const void *bytes, size_t size)
{
	cleanup_fd int fd = FD_NONE;

	if (!gate_is_there(&box->gate))
		return;
	fd = fd_memfd_sealed("snapshot", bytes, size);
	frame_begin(&box->run.out, GATE_POLICY);
	gate_send(box, fd < 0 ? fd : frame_end(&box->run.out), &fd, 1);
}
