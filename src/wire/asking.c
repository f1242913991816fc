/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/asking.h"

#include "wire/control.h"

static const uint8_t *get_hash(struct frame *frame)
{
	size_t size;
	const uint8_t *hash = frame_get_bytes(frame, &size);

	if (hash && size != ASKING_HASH_SIZE)
		frame->error = -EBADMSG;
	return frame->error ? NULL : hash;
}

static void put_shown(struct buf *out, const struct asking_shown *shown)
{
	frame_put_u32(out, shown->kind);
	frame_put_u32(out, shown->flags);
	frame_put_string(out, shown->subject);
	frame_put_strv(out, (const char *const *)shown->argv);
	frame_put_string(out, shown->method);
	frame_put_string(out, shown->path);
	frame_put_string(out, shown->program);
	frame_put_string(out, shown->cwd);
	frame_put_u32(out, shown->port);
	frame_put_string(out, shown->rule);
	frame_put_string(out, shown->why);
	frame_put_string(out, shown->words);
}

static void get_shown(struct frame *frame, struct asking_shown *shown)
{
	shown->kind = frame_get_u32(frame);
	shown->flags = frame_get_u32(frame);
	shown->subject = frame_get_string(frame);
	shown->argv = frame_get_strv(frame);
	shown->method = frame_get_string(frame);
	shown->path = frame_get_string(frame);
	shown->program = frame_get_string(frame);
	shown->cwd = frame_get_string(frame);
	shown->port = frame_get_u32(frame);
	shown->rule = frame_get_string(frame);
	shown->why = frame_get_string(frame);
	shown->words = frame_get_string(frame);
	if (!shown->subject || !shown->rule || !shown->why || shown->port > UINT16_MAX)
		frame->error = -EBADMSG;
}

/* 1, or -EBADMSG with nothing that is owned. */
static int finish_one(const struct frame *frame, struct asking_shown *shown)
{
	if (!frame->error)
		return 1;
	free(shown->argv);
	shown->argv = NULL;
	return -EBADMSG;
}

static bool is_last(const struct frame *frame)
{
	return !frame->error && frame->at == frame->size;
}

void asking_question_put(struct buf *out, const struct asking_question *question)
{
	frame_put_u32(out, question->number);
	frame_put_bytes(out, question->hash, ASKING_HASH_SIZE);
	frame_put_u32(out, question->state);
	frame_put_u32(out, question->waiting);
	frame_put_u32(out, question->times);
	frame_put_u32(out, question->pid);
	frame_put_u64(out, question->asked_ns);
	frame_put_u64(out, question->left_ms);
	frame_put_u32(out, question->is_allowed);
	put_shown(out, &question->shown);
}

int asking_question_get(struct frame *frame, struct asking_question *ret_question)
{
	struct asking_question question = { 0 };

	if (is_last(frame))
		return 0;
	question.number = frame_get_u32(frame);
	question.hash = get_hash(frame);
	question.state = frame_get_u32(frame);
	question.waiting = frame_get_u32(frame);
	question.times = frame_get_u32(frame);
	question.pid = frame_get_u32(frame);
	question.asked_ns = frame_get_u64(frame);
	question.left_ms = frame_get_u64(frame);
	question.is_allowed = frame_get_u32(frame);
	get_shown(frame, &question.shown);
	if (question.state >= ASKING_STATE_COUNT || question.is_allowed > 1)
		frame->error = -EBADMSG;
	*ret_question = question;
	return finish_one(frame, &ret_question->shown);
}

void asking_grant_put(struct buf *out, const struct asking_grant *grant)
{
	frame_put_u32(out, grant->number);
	frame_put_u32(out, grant->is_refusal);
	frame_put_u32(out, grant->question);
	frame_put_u32(out, grant->scope);
	frame_put_u64(out, grant->used);
	frame_put_u64(out, grant->uses_left);
	frame_put_u64(out, grant->left_ms);
	frame_put_u64(out, grant->given_ns);
	frame_put_string(out, grant->by);
	put_shown(out, &grant->shown);
}

int asking_grant_get(struct frame *frame, struct asking_grant *ret_grant)
{
	struct asking_grant grant = { 0 };

	if (is_last(frame))
		return 0;
	grant.number = frame_get_u32(frame);
	grant.is_refusal = frame_get_u32(frame);
	grant.question = frame_get_u32(frame);
	grant.scope = frame_get_u32(frame);
	grant.used = frame_get_u64(frame);
	grant.uses_left = frame_get_u64(frame);
	grant.left_ms = frame_get_u64(frame);
	grant.given_ns = frame_get_u64(frame);
	grant.by = frame_get_string(frame);
	get_shown(frame, &grant.shown);
	if (grant.scope >= ASKING_SCOPE_COUNT || grant.is_refusal > 1 || !grant.by)
		frame->error = -EBADMSG;
	*ret_grant = grant;
	return finish_one(frame, &ret_grant->shown);
}

void asking_reply_put_fields(struct buf *out, const struct asking_reply *reply)
{
	frame_put_u32(out, reply->number);
	frame_put_bytes(out, reply->hash, ASKING_HASH_SIZE);
	frame_put_u32(out, reply->is_allowed);
	frame_put_u32(out, reply->scope);
	frame_put_u64(out, reply->amount);
}

int asking_reply_put(struct buf *out, const struct asking_reply *reply)
{
	frame_begin(out, CONTROL_ANSWER);
	asking_reply_put_fields(out, reply);
	return frame_end(out);
}

static bool is_sound(const struct asking_reply *reply)
{
	bool has_amount = reply->scope == ASKING_USES || reply->scope == ASKING_TIME;

	return reply->is_allowed <= 1 && reply->scope < ASKING_SCOPE_COUNT && has_amount == (reply->amount > 0);
}

int asking_reply_get(struct frame *frame, struct asking_reply *ret_reply)
{
	struct asking_reply reply = { 0 };

	reply.number = frame_get_u32(frame);
	reply.hash = get_hash(frame);
	reply.is_allowed = frame_get_u32(frame);
	reply.scope = frame_get_u32(frame);
	reply.amount = frame_get_u64(frame);
	if (frame_finish(frame) < 0 || !is_sound(&reply))
		return -EBADMSG;
	*ret_reply = reply;
	return 0;
}
