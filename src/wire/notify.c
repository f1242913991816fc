/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/notify.h"

#include <string.h>

const char *const notify_kind_names[NOTIFY_KIND_COUNT] = {
	[NOTIFY_DESKTOP] = "desktop", [NOTIFY_WEBHOOK] = "webhook",
};

const char *const notify_end_names[NOTIFY_END_COUNT] = {
	[NOTIFY_ALLOWED] = "allowed", [NOTIFY_DENIED] = "denied", [NOTIFY_OVER] = "over",
};

int notify_start_put(struct buf *out, const struct notify_start *start)
{
	frame_begin(out, NOTIFY_START);
	frame_put_u32(out, start->kind);
	frame_put_u32(out, start->flags);
	frame_put_u32(out, start->uid);
	frame_put_string(out, start->session);
	frame_put_string(out, start->address);
	return frame_end(out);
}

int notify_start_get(struct frame *frame, struct notify_start *ret_start)
{
	struct notify_start start = { .kind = frame_get_u32(frame) };

	start.flags = frame_get_u32(frame);
	start.uid = frame_get_u32(frame);
	start.session = frame_get_string(frame);
	start.address = frame_get_string(frame);
	if (frame_finish(frame) < 0 || start.kind >= NOTIFY_KIND_COUNT || start.flags & ~(uint32_t)NOTIFY_FLAGS ||
	    !start.session || !start.address || strlen(start.address) > NOTIFY_ADDRESS_MAX)
		return -EBADMSG;
	*ret_start = start;
	return 0;
}

int notify_question_put(struct buf *out, const struct notify_question *question)
{
	frame_begin(out, NOTIFY_QUESTION);
	frame_put_u32(out, question->number);
	frame_put_bytes(out, question->hash, ASKING_HASH_SIZE);
	frame_put_u32(out, question->state);
	frame_put_u32(out, question->waiting);
	frame_put_u64(out, question->left_ms);
	frame_put_string(out, question->what);
	frame_put_string(out, question->who);
	frame_put_string(out, question->why);
	frame_put_string(out, question->words);
	frame_put_string(out, question->json);
	return frame_end(out);
}

int notify_question_get(struct frame *frame, struct notify_question *ret_question)
{
	struct notify_question question = { .number = frame_get_u32(frame) };
	size_t size;

	question.hash = frame_get_bytes(frame, &size);
	question.state = frame_get_u32(frame);
	question.waiting = frame_get_u32(frame);
	question.left_ms = frame_get_u64(frame);
	question.what = frame_get_string(frame);
	question.who = frame_get_string(frame);
	question.why = frame_get_string(frame);
	question.words = frame_get_string(frame);
	question.json = frame_get_string(frame);
	if (frame_finish(frame) < 0 || !question.hash || size != ASKING_HASH_SIZE ||
	    question.state > ASKING_LISTED || !question.number || !question.what || !question.why || !question.json)
		return -EBADMSG;
	*ret_question = question;
	return 0;
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
	asking_reply_put_fields(out, reply);
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
