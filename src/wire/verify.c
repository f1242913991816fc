/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/verify.h"

#include <stdlib.h>
#include <string.h>

/* As in verify/model/finding.h, which the box does not know. */
enum { SEVERITIES = 4, CONFIDENCES = 3 };

int verify_question_put(struct buf *out, const struct verify_question *question)
{
	frame_begin(out, VERIFY_JUDGE);
	frame_put_u32(out, question->id);
	frame_put_strv(out, (const char *const *)question->argv);
	frame_put_u32(out, question->is_cut);
	frame_put_u32(out, question->file);
	frame_put_string(out, question->path ? question->path : "");
	return frame_end(out);
}

int verify_question_get(struct frame *frame, struct verify_question *ret_question)
{
	struct verify_question question = { .id = frame_get_u32(frame) };

	question.argv = frame_get_strv(frame);
	question.is_cut = frame_get_u32(frame);
	question.file = frame_get_u32(frame);
	question.path = frame_get_string(frame);
	if (frame_finish(frame) < 0 || !question.argv || !question.path || question.file > VERIFY_SCRIPT) {
		free(question.argv);
		return -EBADMSG;
	}
	*ret_question = question;
	return 0;
}

int verify_answer_put(struct buf *out, const struct verify_answer *answer)
{
	frame_begin(out, VERIFY_JUDGED);
	frame_put_u32(out, answer->id);
	frame_put_u32(out, answer->total);
	frame_put_u64(out, answer->time_us);
	frame_put_u32(out, answer->count);
	for (uint32_t i = 0; i < answer->count; i++) {
		const struct verify_told *told = &answer->told[i];

		frame_put_u32(out, told->severity);
		frame_put_u32(out, told->confidence);
		frame_put_u32(out, told->is_unknown);
		frame_put_u32(out, told->held);
		frame_put_u32(out, told->line);
		frame_put_string(out, told->id);
		frame_put_string(out, told->reason);
		frame_put_string(out, told->instead);
	}
	return frame_end(out);
}

static bool told_is_sound(const struct verify_told *told)
{
	const char *const texts[] = { told->id, told->reason, told->instead };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!texts[i] || strlen(texts[i]) >= VERIFY_TEXT_SIZE)
			return false;
	return told->severity < SEVERITIES && told->confidence < CONFIDENCES && told->is_unknown <= 1 &&
	       told->held < VERIFY_HELD_COUNT;
}

int verify_answer_get(struct frame *frame, struct verify_answer *ret_answer)
{
	struct verify_answer *answer = ret_answer;

	*answer = (struct verify_answer){ .id = frame_get_u32(frame) };
	answer->total = frame_get_u32(frame);
	answer->time_us = frame_get_u64(frame);
	answer->count = frame_get_u32(frame);
	if (answer->count > VERIFY_FINDINGS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < answer->count; i++) {
		struct verify_told *told = &answer->told[i];

		told->severity = frame_get_u32(frame);
		told->confidence = frame_get_u32(frame);
		told->is_unknown = frame_get_u32(frame);
		told->held = frame_get_u32(frame);
		told->line = frame_get_u32(frame);
		told->id = frame_get_string(frame);
		told->reason = frame_get_string(frame);
		told->instead = frame_get_string(frame);
		if (!told_is_sound(told))
			return -EBADMSG;
	}
	return frame_finish(frame) < 0 ? -EBADMSG : 0;
}
