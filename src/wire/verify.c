/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/verify.h"


#include "wire/layout.h"

/* As in verify/model/finding.h, which the box does not know. */
enum { SEVERITIES = 4, CONFIDENCES = 3 };

static const struct layout question_rows[] = {
	LAYOUT(verify_question, U32, id),
	LAYOUT(verify_question, STRV, argv),
	LAYOUT(verify_question, U32, is_cut),
	LAYOUT_MAX(verify_question, U32, file, VERIFY_SCRIPT),
	LAYOUT(verify_question, TEXT_OR_EMPTY, path),
};

int verify_question_put(struct buf *out, const struct verify_question *from)
{
	return layout_put_frame(out, VERIFY_JUDGE, question_rows, ARRAY_SIZE(question_rows), from);
}

int verify_question_get(struct frame *frame, struct verify_question *to)
{
	return layout_get_frame(frame, question_rows, ARRAY_SIZE(question_rows), to);
}

static const struct layout answer_rows[] = {
	LAYOUT(verify_answer, U32, id),
	LAYOUT(verify_answer, U32, total),
	LAYOUT(verify_answer, U64, time_us),
	LAYOUT_MAX(verify_answer, U32, count, VERIFY_FINDINGS_MAX),
};

static const struct layout told_rows[] = {
	LAYOUT_MAX(verify_told, U32, severity, SEVERITIES - 1),
	LAYOUT_MAX(verify_told, U32, confidence, CONFIDENCES - 1),
	LAYOUT_MAX(verify_told, U32, is_unknown, 1),
	LAYOUT_MAX(verify_told, U32, held, VERIFY_HELD_COUNT - 1),
	LAYOUT(verify_told, U32, line),
	LAYOUT_MAX(verify_told, TEXT, id, VERIFY_TEXT_SIZE - 1),
	LAYOUT_MAX(verify_told, TEXT, reason, VERIFY_TEXT_SIZE - 1),
	LAYOUT_MAX(verify_told, TEXT, instead, VERIFY_TEXT_SIZE - 1),
};

int verify_answer_put(struct buf *out, const struct verify_answer *answer)
{
	frame_begin(out, VERIFY_JUDGED);
	layout_put(out, answer_rows, ARRAY_SIZE(answer_rows), answer);
	for (uint32_t i = 0; i < answer->count; i++)
		layout_put(out, told_rows, ARRAY_SIZE(told_rows), &answer->told[i]);
	return frame_end(out);
}

int verify_answer_get(struct frame *frame, struct verify_answer *ret_answer)
{
	int r = layout_get(frame, answer_rows, ARRAY_SIZE(answer_rows), ret_answer);

	for (uint32_t i = 0; r == 0 && i < ret_answer->count; i++)
		r = layout_get(frame, told_rows, ARRAY_SIZE(told_rows), &ret_answer->told[i]);
	return r == 0 ? frame_finish(frame) : r;
}
