/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/link.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/str.h"
#include "gate-net/gate.h"
#include "os/clock.h"
#include "os/fd.h"
#include "policy/decide.h"
#include "supervise/cooldown.h"
#include "supervise/rate.h"
#include "supervise/run.h"
#include "wire/gate.h"

enum { OUTBOX_MAX = 8 << 20 };

void gate_name_failure(struct net_gate *gate, const char *why)
{
	if (!gate->failure[0] && str_copy(gate->failure, sizeof gate->failure, why) < 0)
		gate->failure[0] = 0;
}

void gate_mark_lost(struct net_gate *gate, const char *why)
{
	if (!gate_is_there(gate))
		return;
	peer_break(&gate->peer, PEER_DEAF);
	gate_name_failure(gate, why);
}

/* A frame that the socket had no room for. */
struct gate_unsent {
	struct gate_unsent *next; /* owned */
	int fd;                   /* owned, FD_NONE: none */
	struct buf frame;         /* owned */
};

static void drop_first(struct net_gate *gate)
{
	struct gate_unsent *first = gate->outbox.first;

	gate->outbox.first = first->next;
	gate->outbox.bytes -= sizeof *first + first->frame.size;
	close_fd(&first->fd);
	buf_done(&first->frame);
	free(first);
}

void gate_forget_unsent(struct net_gate *gate)
{
	while (gate->outbox.first)
		drop_first(gate);
}

static int queue_frame(struct net_gate *gate, const struct buf *frame, const int *fds, size_t fd_count)
{
	struct gate_unsent *unsent;

	if (fd_count > 1 || gate->outbox.bytes + sizeof *unsent + frame->size > OUTBOX_MAX)
		return -ENOBUFS;
	unsent = malloc(sizeof *unsent);
	if (!unsent)
		return -ENOMEM;
	*unsent = (struct gate_unsent){ .fd = fd_count ? fd_duplicate(fds[0]) : FD_NONE };
	buf_init(&unsent->frame, frame->size);
	buf_put(&unsent->frame, frame->bytes, frame->size);
	if (buf_error(&unsent->frame) || (fd_count && unsent->fd < 0)) {
		buf_done(&unsent->frame);
		close_fd(&unsent->fd);
		free(unsent);
		return -ENOMEM;
	}
	if (gate->outbox.first)
		gate->outbox.last->next = unsent;
	else
		gate->outbox.first = unsent;
	gate->outbox.last = unsent;
	gate->outbox.bytes += sizeof *unsent + frame->size;
	return 0;
}

/* What came first goes first. 0; -EAGAIN: some are left. */
static int send_kept(struct net_gate *gate)
{
	int r = 0;

	while (r == 0 && gate->outbox.first) {
		const struct gate_unsent *first = gate->outbox.first;

		r = frame_send(gate->peer.fd, &first->frame, &first->fd, first->fd >= 0);
		if (r == 0)
			drop_first(gate);
	}
	return r;
}

int gate_has_room(void *context)
{
	struct net_gate *gate = context;
	int r = gate_is_there(gate) ? send_kept(gate) : 0;

	if (r == -EAGAIN)
		r = peer_wait_for_room(&gate->peer);
	if (r < 0)
		gate_mark_lost(gate, "it does not listen");
	return 0;
}

void gate_send(struct net_gate *gate, int r, const int *fds, size_t fd_count)
{
	bool is_first = !gate->outbox.first;

	if (r >= 0)
		r = is_first ? frame_send(gate->peer.fd, &gate->run->out, fds, fd_count) : -EAGAIN;
	/* It has not come to read: on a busy machine, when thousands of connections were begun together. */
	if (r == -EAGAIN && gate_is_there(gate)) {
		r = queue_frame(gate, &gate->run->out, fds, fd_count);
		if (r == 0 && is_first)
			r = peer_wait_for_room(&gate->peer);
	}
	if (r < 0)
		gate_mark_lost(gate, "it does not listen");
}

bool gate_is_there(const struct net_gate *gate)
{
	return peer_is_there(&gate->peer);
}

bool gate_can_hear(const struct net_gate *gate)
{
	return gate->peer.state == PEER_IDLE || gate_is_there(gate);
}

void gate_answer(struct net_gate *gate, uint32_t id, bool is_granted)
{
	if (gate->peer.state != PEER_SERVING)
		return;
	frame_begin(&gate->run->out, GATE_GO);
	frame_put_u32(&gate->run->out, id);
	frame_put_u32(&gate->run->out, is_granted);
	gate_send(gate, frame_end(&gate->run->out), NULL, 0);
}

void gate_answer_request(struct net_gate *gate, uint32_t id, const struct decision *decision)
{
	struct gate_answer answer = { .id = id, .is_granted = decision->verdict >= VERDICT_SIMULATE,
				      .rule = decision->rule.id, .reason = decision->reason, .hint = decision->hint };

	if (gate->peer.state == PEER_SERVING)
		gate_send(gate, gate_answer_put(&gate->run->out, &answer), NULL, 0);
}

uint64_t gate_pause_left_ms(const struct net_gate *gate)
{
	uint64_t own_ms = cooldown_left_ms(&gate->cooldown, clock_monotonic_ns());
	uint64_t all_ms = rate_pause_left_ms(gate->run);

	return own_ms > all_ms ? own_ms : all_ms;
}

void gate_pause(struct net_gate *gate)
{
	if (!gate_is_there(gate))
		return;
	frame_begin(&gate->run->out, GATE_PAUSE);
	frame_put_u64(&gate->run->out, gate_pause_left_ms(gate));
	gate_send(gate, frame_end(&gate->run->out), NULL, 0);
}

void gate_measure(struct net_gate *gate)
{
	/* One question at a time: who asks us a thousand times fills no socket with it. */
	if (gate->peer.state != PEER_SERVING || gate->counts.is_measuring)
		return;
	frame_begin(&gate->run->out, GATE_MEASURE);
	gate->counts.is_measuring = frame_end(&gate->run->out) == 0 && frame_send(gate->peer.fd, &gate->run->out, NULL,
										  0) == 0;
}

void gate_say_asking(struct net_gate *gate, bool is_on)
{
	if (is_on == gate->asking.is_on)
		return;
	gate->asking.is_on = is_on;
	frame_begin(&gate->run->out, GATE_ASKING);
	frame_put_u32(&gate->run->out, is_on);
	gate_send(gate, frame_end(&gate->run->out), NULL, 0);
}

void gate_say_policy(struct net_gate *gate, const void *bytes, size_t size)
{
	cleanup_fd int fd = FD_NONE;

	if (!gate_is_there(gate))
		return;
	fd = fd_memfd_sealed("snapshot", bytes, size);
	frame_begin(&gate->run->out, GATE_POLICY);
	gate_send(gate, fd < 0 ? fd : frame_end(&gate->run->out), &fd, 1);
}

void gate_say_headers(struct net_gate *gate, const char *const *triples)
{
	struct buf *out = &gate->run->out;

	frame_begin(out, GATE_HEADERS);
	frame_put_strv(out, triples);
	gate_send(gate, frame_end(out), NULL, 0);
	/* They may be credentials, and the next frame begins over them, or not. */
	if (out->bytes)
		explicit_bzero(out->bytes, out->capacity);
}
