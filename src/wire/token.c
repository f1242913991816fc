/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/token.h"

enum { ALLOWANCES_MAX = 64 };

int token_refused_put(struct buf *out, const struct token_refused *refused)
{
	frame_begin(out, TOKEN_REFUSED);
	frame_put_string(out, refused->fault);
	frame_put_string(out, refused->id);
	frame_put_string(out, refused->reason);
	return frame_end(out);
}

int token_refused_get(struct frame *frame, struct token_refused *ret_refused)
{
	struct token_refused refused = { .fault = frame_get_string(frame) };

	refused.id = frame_get_string(frame);
	refused.reason = frame_get_string(frame);
	if (frame_finish(frame) < 0 || !refused.fault || !refused.reason)
		return -EBADMSG;
	*ret_refused = refused;
	return 0;
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

void token_allowance_put(struct buf *out, const struct token_allowance *allowance)
{
	frame_put_u32(out, allowance->kind);
	frame_put_u32(out, allowance->flags);
	frame_put_u32(out, allowance->port);
	frame_put_string(out, allowance->subject);
	frame_put_string(out, allowance->method);
	frame_put_string(out, allowance->path);
	frame_put_strv(out, (const char *const *)allowance->argv);
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

int token_allowance_get(struct frame *frame, struct token_allowance *ret_allowance)
{
	struct token_allowance allowance = { .kind = frame_get_u32(frame), .flags = frame_get_u32(frame) };

	allowance.port = frame_get_u32(frame);
	allowance.subject = frame_get_string(frame);
	allowance.method = frame_get_string(frame);
	allowance.path = frame_get_string(frame);
	allowance.argv = frame_get_strv(frame);
	if (frame->error || !allowance.subject || allowance.port > UINT16_MAX) {
		free(allowance.argv);
		return -EBADMSG;
	}
	*ret_allowance = allowance;
	return 0;
}
