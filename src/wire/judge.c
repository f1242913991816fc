/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/judge.h"

#include <string.h>

#include "wire/layout.h"

const char *const judge_verdict_names[JUDGE_VERDICT_COUNT] = {
	[JUDGE_ALLOW] = "allow", [JUDGE_DENY] = "deny", [JUDGE_UNCLEAR] = "unclear",
};

static const struct layout start_rows[] = {
	LAYOUT(judge_start, U32, flags),
	LAYOUT(judge_start, U64, timeout_ms),
	LAYOUT(judge_start, STRV, command),
	LAYOUT(judge_start, STRV, environment),
	LAYOUT(judge_start, TEXT_OR_NULL, url),
	LAYOUT(judge_start, TEXT_OR_NULL, model),
};

int judge_start_put(struct buf *out, const struct judge_start *from)
{
	return layout_put_frame(out, JUDGE_START, start_rows, ARRAY_SIZE(start_rows), from);
}

int judge_start_get(struct frame *frame, struct judge_start *to)
{
	int r = layout_get_frame(frame, start_rows, ARRAY_SIZE(start_rows), to);

	if (r == 0 && (to->flags & ~(uint32_t)JUDGE_FLAGS || !to->timeout_ms || !to->command[0] == !to->url ||
		       !to->url != !to->model))
		return layout_refuse(frame, start_rows, ARRAY_SIZE(start_rows), to);
	return r;
}

static int put_case(struct buf *out, enum judge_message type, uint32_t id, const char *json)
{
	frame_begin(out, type);
	frame_put_u32(out, id);
	frame_put_string(out, json);
	return frame_end(out);
}

int judge_case_put(struct buf *out, uint32_t id, const char *json)
{
	return put_case(out, JUDGE_CASE, id, json);
}

int judge_narrow_put(struct buf *out, uint32_t id, const char *json)
{
	return put_case(out, JUDGE_NARROW, id, json);
}

int judge_case_get(struct frame *frame, uint32_t *ret_id, const char **ret_json)
{
	uint32_t id = frame_get_u32(frame);
	const char *json = frame_get_string(frame);

	if (frame_finish(frame) < 0 || !id || !json || strlen(json) > JUDGE_CASE_MAX)
		return -EBADMSG;
	*ret_id = id;
	*ret_json = json;
	return 0;
}

int judge_forget_put(struct buf *out, uint32_t id)
{
	frame_begin(out, JUDGE_FORGET);
	frame_put_u32(out, id);
	return frame_end(out);
}

/* Cut between characters. */
static void put_reason(struct buf *out, const char *reason)
{
	char cut[JUDGE_REASON_MAX];
	size_t size = strnlen(reason, sizeof cut - 1);

	while (size && reason[size] && ((unsigned char)reason[size] & 0xc0) == 0x80)
		size--;
	memcpy(cut, reason, size);
	cut[size] = 0;
	frame_put_string(out, cut);
}

int judge_verdict_put(struct buf *out, uint32_t id, enum judge_verdict verdict, const char *reason)
{
	frame_begin(out, JUDGE_VERDICT);
	frame_put_u32(out, id);
	frame_put_u32(out, verdict);
	put_reason(out, reason);
	return frame_end(out);
}

int judge_verdict_get(struct frame *frame, uint32_t *ret_id, enum judge_verdict *ret_verdict, const char **ret_reason)
{
	uint32_t id = frame_get_u32(frame), verdict = frame_get_u32(frame);
	const char *reason = frame_get_string(frame);

	if (frame_finish(frame) < 0 || !id || verdict >= JUDGE_VERDICT_COUNT || !reason ||
	    strlen(reason) >= JUDGE_REASON_MAX)
		return -EBADMSG;
	*ret_id = id;
	*ret_verdict = (enum judge_verdict)verdict;
	*ret_reason = reason;
	return 0;
}

int judge_proposal_put(struct buf *out, uint32_t id, const char *text, const char *reason)
{
	frame_begin(out, JUDGE_PROPOSAL);
	frame_put_u32(out, id);
	frame_put_string(out, text);
	put_reason(out, reason);
	return frame_end(out);
}

int judge_proposal_get(struct frame *frame, uint32_t *ret_id, const char **ret_text, const char **ret_reason)
{
	uint32_t id = frame_get_u32(frame);
	const char *text = frame_get_string(frame), *reason = frame_get_string(frame);

	if (frame_finish(frame) < 0 || !id || !reason || strlen(reason) >= JUDGE_REASON_MAX ||
	    (text && strlen(text) > JUDGE_PROPOSAL_MAX))
		return -EBADMSG;
	*ret_id = id;
	*ret_text = text;
	*ret_reason = reason;
	return 0;
}
