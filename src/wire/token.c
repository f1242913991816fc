/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/token.h"

#include "wire/layout.h"

enum { ALLOWANCES_MAX = 64 };

static const struct layout refused_rows[] = {
	LAYOUT(token_refused, TEXT, fault),
	LAYOUT(token_refused, TEXT_OR_NULL, id),
	LAYOUT(token_refused, TEXT, reason),
};

int token_refused_put(struct buf *out, const struct token_refused *from)
{
	return layout_put_frame(out, TOKEN_REFUSED, refused_rows, ARRAY_SIZE(refused_rows), from);
}

int token_refused_get(struct frame *frame, struct token_refused *to)
{
	return layout_get_frame(frame, refused_rows, ARRAY_SIZE(refused_rows), to);
}

static const struct layout allowance_rows[] = {
	LAYOUT(token_allowance, U32, kind),
	LAYOUT(token_allowance, U32, flags),
	LAYOUT_MAX(token_allowance, U32, port, UINT16_MAX),
	LAYOUT(token_allowance, TEXT, subject),
	LAYOUT(token_allowance, TEXT_OR_NULL, method),
	LAYOUT(token_allowance, TEXT_OR_NULL, path),
	LAYOUT(token_allowance, STRV, argv),
};

void token_allowance_put(struct buf *out, const struct token_allowance *allowance)
{
	layout_put(out, allowance_rows, ARRAY_SIZE(allowance_rows), allowance);
}

int token_allowance_get(struct frame *frame, struct token_allowance *ret_allowance)
{
	return layout_get(frame, allowance_rows, ARRAY_SIZE(allowance_rows), ret_allowance);
}

void token_held_put(struct buf *out, const struct token_held *held)
{
	frame_put_string(out, held->id);
	frame_put_u64(out, held->expires_s);
	for (int i = 0; i < TOKEN_HELD_LIMITS; i++)
		frame_put_u64(out, held->limits[i]);
	frame_put_u32(out, held->trust);
	frame_put_u32(out, held->count);
}

int token_held_get(struct frame *frame, struct token_held *ret_held)
{
	struct token_held held = { .id = frame_get_string(frame), .expires_s = frame_get_u64(frame) };

	for (int i = 0; i < TOKEN_HELD_LIMITS; i++)
		held.limits[i] = frame_get_u64(frame);
	held.trust = frame_get_u32(frame);
	held.count = frame_get_u32(frame);
	if (frame->error || !held.id || held.count > ALLOWANCES_MAX)
		return -EBADMSG;
	*ret_held = held;
	return 0;
}
