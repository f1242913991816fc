/* SPDX-License-Identifier: Apache-2.0 */

/* Every decoder of wire/ on arbitrary bytes: it fails, or what it gives is whole and goes through its encoder again. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/asking.h"
#include "wire/gate.h"
#include "wire/init.h"
#include "wire/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* What was encoded again must be the bytes that came, from the first field on. */
static void require_same(const struct buf *out, const struct frame *frame)
{
	enum { HEADER_SIZE = 16 };

	require(out->size == frame->size);
	require(memcmp(out->bytes + HEADER_SIZE, frame->bytes + HEADER_SIZE, out->size - HEADER_SIZE) == 0);
}

static void try_spawn(struct frame *frame, struct buf *out)
{
	struct init_spawn spawn;

	if (init_spawn_get(frame, &spawn) < 0)
		return;
	require(spawn.cwd && spawn.argv[0] && init_spawn_put(out, &spawn) == 0);
	require_same(out, frame);
	free(spawn.argv);
	free(spawn.env);
}

static void try_exit(struct frame *frame, struct buf *out)
{
	struct init_exit event;

	if (init_exit_get(frame, &event) < 0)
		return;
	require(event.code >= -1 && event.code <= 255 && event.signal >= 0 && init_exit_put(out, &event) == 0);
	require_same(out, frame);
}

static void try_secret(struct frame *frame, struct buf *out)
{
	struct secret_value value;

	if (secret_get_value(frame, &value) < 0)
		return;
	require(*value.name && *value.placeholder && value.size && !memchr(value.value, 0, value.size) &&
		secret_put_value(out, &value) == 0);
	require_same(out, frame);
}

/* The messages of the network gate: which of them it is, a reader knows from its table. */
static void try_gate(struct frame *frame, struct buf *out)
{
	struct frame again[5] = { *frame, *frame, *frame, *frame, *frame };
	struct gate_refused refused;
	struct gate_closed closed;
	struct gate_lookup lookup;
	struct gate_route route;
	struct gate_open open;

	if (gate_route_get(&again[0], &route) == 0) {
		require(gate_route_put(out, &route) == 0);
		require_same(out, frame);
	}
	if (gate_lookup_get(&again[1], &lookup) == 0) {
		require(lookup.name && gate_lookup_put(out, &lookup) == 0);
		require_same(out, frame);
	}
	if (gate_open_get(&again[2], &open) == 0) {
		require(open.host && open.port <= UINT16_MAX && gate_open_put(out, &open) == 0);
		require_same(out, frame);
	}
	if (gate_refused_get(&again[3], &refused) == 0) {
		require(refused.refusal < GATE_REFUSAL_COUNT && gate_refused_put(out, &refused) == 0);
		require_same(out, frame);
	}
	if (gate_closed_get(&again[4], &closed) == 0) {
		require(closed.open.host && gate_closed_put(out, &closed) == 0);
		require_same(out, frame);
	}
}

/* Questions and grants have one reader each, which takes all of a frame; so does an answer. */
static void try_asking(struct frame *frame, struct buf *out)
{
	struct frame again[3] = { *frame, *frame, *frame };
	struct asking_question question;
	struct asking_reply reply;
	struct asking_grant grant;
	int r;

	if (asking_reply_get(&again[0], &reply) == 0) {
		frame_begin(out, 1);
		asking_reply_put(out, &reply);
		require(reply.scope < ASKING_SCOPE_COUNT && frame_end(out) == 0);
		require_same(out, frame);
	}
	frame_begin(out, 1);
	while ((r = asking_question_get(&again[1], &question)) > 0) {
		require(question.state < ASKING_STATE_COUNT && question.shown.subject && question.shown.rule);
		asking_question_put(out, &question);
		free(question.shown.argv);
	}
	if (r == 0 && frame_end(out) == 0)
		require_same(out, frame);
	frame_begin(out, 1);
	while ((r = asking_grant_get(&again[2], &grant)) > 0) {
		require(grant.scope < ASKING_SCOPE_COUNT && grant.by && grant.shown.subject);
		asking_grant_put(out, &grant);
		free(grant.shown.argv);
	}
	if (r == 0 && frame_end(out) == 0)
		require_same(out, frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static void (*const decoders[])(struct frame *frame, struct buf *out) = {
		try_spawn, try_exit, try_secret, try_gate, try_asking,
	};
	cleanup_free uint8_t *copy = malloc(size ? size : 1);
	struct buf out;

	if (!copy)
		return 0;
	memcpy(copy, bytes, size);
	buf_init(&out, FRAME_MESSAGE_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(decoders); i++) {
		struct frame frame;

		if (frame_open(&frame, copy, size) == 0)
			decoders[i](&frame, &out);
		else
			require(frame_finish(&frame) == -EBADMSG && !frame_get_strv(&frame) &&
				!frame_get_string(&frame));
	}
	buf_done(&out);
	return 0;
}
