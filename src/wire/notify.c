/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/notify.h"

#include <string.h>

#include "wire/layout.h"

const char *const notify_kind_names[NOTIFY_KIND_COUNT] = {
	[NOTIFY_DESKTOP] = "desktop", [NOTIFY_WEBHOOK] = "webhook",
};

const char *const notify_end_names[NOTIFY_END_COUNT] = {
	[NOTIFY_ALLOWED] = "allowed", [NOTIFY_DENIED] = "denied", [NOTIFY_OVER] = "over",
};

static const struct layout start_rows[] = {
	LAYOUT_MAX(notify_start, U32, kind, NOTIFY_KIND_COUNT - 1),
	LAYOUT_MAX(notify_start, U32, flags, NOTIFY_FLAGS),
	LAYOUT(notify_start, U32, uid),
	LAYOUT(notify_start, TEXT, session),
	LAYOUT_MAX(notify_start, TEXT, address, NOTIFY_ADDRESS_MAX),
};

int notify_start_put(struct buf *out, const struct notify_start *from)
{
	return layout_put_frame(out, NOTIFY_START, start_rows, ARRAY_SIZE(start_rows), from);
}

int notify_start_get(struct frame *frame, struct notify_start *to)
{
	return layout_get_frame(frame, start_rows, ARRAY_SIZE(start_rows), to);
}

static const struct layout question_rows[] = {
	LAYOUT(notify_question, U32, number),
	LAYOUT_MAX(notify_question, HASH, hash, ASKING_HASH_SIZE),
	LAYOUT_MAX(notify_question, U32, state, ASKING_LISTED),
	LAYOUT(notify_question, U32, waiting),
	LAYOUT(notify_question, U64, left_ms),
	LAYOUT(notify_question, TEXT, what),
	LAYOUT(notify_question, TEXT_OR_NULL, who),
	LAYOUT(notify_question, TEXT, why),
	LAYOUT(notify_question, TEXT_OR_NULL, words),
	LAYOUT(notify_question, TEXT, json),
};

int notify_question_put(struct buf *out, const struct notify_question *from)
{
	return layout_put_frame(out, NOTIFY_QUESTION, question_rows, ARRAY_SIZE(question_rows), from);
}

int notify_question_get(struct frame *frame, struct notify_question *to)
{
	int r = layout_get_frame(frame, question_rows, ARRAY_SIZE(question_rows), to);

	return r == 0 && (!to->number) ? layout_refuse(frame, question_rows, ARRAY_SIZE(question_rows), to) : r;
}

int notify_close_put(struct buf *out, uint32_t number, enum notify_end end)
{
	frame_begin(out, NOTIFY_CLOSE);
	frame_put_u32(out, number);
	frame_put_u32(out, end);
	return frame_end(out);
}

int notify_close_get(struct frame *frame, uint32_t *ret_number, enum notify_end *ret_end)
{
	uint32_t number = frame_get_u32(frame), end = frame_get_u32(frame);

	if (frame_finish(frame) < 0 || end >= NOTIFY_END_COUNT)
		return -EBADMSG;
	*ret_number = number;
	*ret_end = (enum notify_end)end;
	return 0;
}

int notify_alert_put(struct buf *out, const char *kind, const char *what)
{
	frame_begin(out, NOTIFY_ALERT);
	frame_put_string(out, kind);
	frame_put_string(out, what);
	return frame_end(out);
}

int notify_alert_get(struct frame *frame, const char **ret_kind, const char **ret_what)
{
	const char *kind = frame_get_string(frame), *what = frame_get_string(frame);

	if (frame_finish(frame) < 0 || !kind || !what || strlen(what) > NOTIFY_ALERT_MAX)
		return -EBADMSG;
	*ret_kind = kind;
	*ret_what = what;
	return 0;
}

int notify_state_put(struct buf *out, bool is_heard, const char *trouble)
{
	frame_begin(out, NOTIFY_STATE);
	frame_put_u32(out, is_heard);
	frame_put_string(out, trouble);
	return frame_end(out);
}

int notify_state_get(struct frame *frame, bool *ret_is_heard, const char **ret_trouble)
{
	uint32_t is_heard = frame_get_u32(frame);
	const char *trouble = frame_get_string(frame);

	if (frame_finish(frame) < 0 || is_heard > 1 || (trouble && strlen(trouble) > NOTIFY_TROUBLE_MAX))
		return -EBADMSG;
	*ret_is_heard = is_heard;
	*ret_trouble = trouble;
	return 0;
}

int notify_answer_put(struct buf *out, const struct asking_reply *reply)
{
	frame_begin(out, NOTIFY_ANSWER);
	asking_reply_put(out, reply);
	return frame_end(out);
}

int notify_answer_get(struct frame *frame, struct asking_reply *ret_reply)
{
	struct asking_reply reply;
	int r = asking_reply_get(frame, &reply);

	if (r < 0 || reply.scope == ASKING_FOREVER)
		return -EBADMSG;
	*ret_reply = reply;
	return 0;
}
