/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/asking.h"

#include "wire/layout.h"

#define SHOWN_ROWS(type)                                                                                     \
	LAYOUT(type, U32, shown.kind), LAYOUT(type, U32, shown.flags), LAYOUT(type, TEXT, shown.subject), \
		LAYOUT(type, STRV, shown.argv), LAYOUT(type, TEXT_OR_NULL, shown.method), \
		LAYOUT(type, TEXT_OR_NULL, shown.path), LAYOUT(type, TEXT_OR_NULL, shown.program), \
		LAYOUT(type, TEXT_OR_NULL, shown.cwd), LAYOUT_MAX(type, U32, shown.port, UINT16_MAX), \
		LAYOUT(type, TEXT, shown.rule), LAYOUT(type, TEXT, shown.why), LAYOUT(type, TEXT_OR_NULL, shown.words)

/* One more of several in a frame. 1; 0: that was the last; -EBADMSG. */
static int get_next(struct frame *frame, const struct layout *rows, size_t count, void *to)
{
	int r = !frame->error && frame->at == frame->size ? 1 : layout_get(frame, rows, count, to);

	return r < 0 ? r : !r;
}

static const struct layout question_rows[] = {
	LAYOUT(asking_question, U32, number),
	LAYOUT_MAX(asking_question, HASH, hash, ASKING_HASH_SIZE),
	LAYOUT_MAX(asking_question, U32, state, ASKING_STATE_COUNT - 1),
	LAYOUT(asking_question, U32, waiting),
	LAYOUT(asking_question, U32, times),
	LAYOUT(asking_question, U32, pid),
	LAYOUT(asking_question, U64, asked_ns),
	LAYOUT(asking_question, U64, left_ms),
	LAYOUT_MAX(asking_question, U32, is_allowed, 1),
	SHOWN_ROWS(asking_question),
};

void asking_question_put(struct buf *out, const struct asking_question *question)
{
	layout_put(out, question_rows, ARRAY_SIZE(question_rows), question);
}

int asking_question_get(struct frame *frame, struct asking_question *ret_question)
{
	return get_next(frame, question_rows, ARRAY_SIZE(question_rows), ret_question);
}

static const struct layout grant_rows[] = {
	LAYOUT(asking_grant, U32, number),
	LAYOUT_MAX(asking_grant, U32, is_refusal, 1),
	LAYOUT(asking_grant, U32, question),
	LAYOUT_MAX(asking_grant, U32, scope, ASKING_SCOPE_COUNT - 1),
	LAYOUT(asking_grant, U64, used),
	LAYOUT(asking_grant, U64, uses_left),
	LAYOUT(asking_grant, U64, left_ms),
	LAYOUT(asking_grant, U64, given_ns),
	LAYOUT(asking_grant, TEXT, by),
	SHOWN_ROWS(asking_grant),
};

void asking_grant_put(struct buf *out, const struct asking_grant *grant)
{
	layout_put(out, grant_rows, ARRAY_SIZE(grant_rows), grant);
}

int asking_grant_get(struct frame *frame, struct asking_grant *ret_grant)
{
	return get_next(frame, grant_rows, ARRAY_SIZE(grant_rows), ret_grant);
}

static const struct layout reply_rows[] = {
	LAYOUT(asking_reply, U32, number),
	LAYOUT_MAX(asking_reply, HASH, hash, ASKING_HASH_SIZE),
	LAYOUT_MAX(asking_reply, U32, is_allowed, 1),
	LAYOUT_MAX(asking_reply, U32, scope, ASKING_SCOPE_COUNT - 1),
	LAYOUT(asking_reply, U64, amount),
};

void asking_reply_put(struct buf *out, const struct asking_reply *reply)
{
	layout_put(out, reply_rows, ARRAY_SIZE(reply_rows), reply);
}

int asking_reply_get(struct frame *frame, struct asking_reply *ret_reply)
{
	int r = layout_get_frame(frame, reply_rows, ARRAY_SIZE(reply_rows), ret_reply);
	bool has_amount = r == 0 && (ret_reply->scope == ASKING_USES || ret_reply->scope == ASKING_TIME);

	if (r == 0 && has_amount != (ret_reply->amount > 0))
		return layout_refuse(frame, reply_rows, ARRAY_SIZE(reply_rows), ret_reply);
	return r;
}
