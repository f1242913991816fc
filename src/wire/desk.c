/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/desk.h"

#include <string.h>

#include "base/str.h"
#include "wire/layout.h"

const char *const desk_verdict_names[DESK_VERDICT_COUNT] = {
	[DESK_DENIED] = "denied", [DESK_ALLOWED] = "allowed", [DESK_UNANSWERED] = "unanswered",
	[DESK_WAITS] = "waiting", [DESK_ASKS] = "asks", [DESK_INVALID] = "invalid",
};

bool desk_want_is_sound(const struct desk_want *want)
{
	return want->subject && *want->subject && strlen(want->subject) < DESK_SUBJECT_MAX &&
	       want->port <= UINT16_MAX && want->wait_ms <= DESK_WAIT_MAX_MS &&
	       (!want->reason || strlen(want->reason) < DESK_REASON_MAX) &&
	       (!want->argv || strv_count((const char *const *)want->argv) <= DESK_ARGV_MAX);
}

static const struct layout want_rows[] = {
	LAYOUT(desk_want, U32, id),
	LAYOUT(desk_want, U32, kind),
	LAYOUT(desk_want, TEXT, subject),
	LAYOUT_MAX(desk_want, U32, port, UINT16_MAX),
	LAYOUT(desk_want, STRV, argv),
	LAYOUT(desk_want, TEXT_OR_NULL, reason),
	LAYOUT(desk_want, U64, wait_ms),
};

int desk_want_put(struct buf *out, uint16_t type, const struct desk_want *want)
{
	return layout_put_frame(out, type, want_rows, ARRAY_SIZE(want_rows), want);
}

int desk_want_get(struct frame *frame, struct desk_want *ret_want)
{
	int r = layout_get_frame(frame, want_rows, ARRAY_SIZE(want_rows), ret_want);

	return r == 0 && !desk_want_is_sound(ret_want)
		       ? layout_refuse(frame, want_rows, ARRAY_SIZE(want_rows), ret_want)
		       : r;
}

static const struct layout answer_rows[] = {
	LAYOUT(desk_answer, U32, id),
	LAYOUT_MAX(desk_answer, U32, verdict, DESK_VERDICT_COUNT - 1),
	LAYOUT(desk_answer, U32, question),
	LAYOUT(desk_answer, TEXT_OR_EMPTY, rule),
	LAYOUT(desk_answer, TEXT_OR_EMPTY, reason),
	LAYOUT(desk_answer, TEXT_OR_EMPTY, hint),
	LAYOUT(desk_answer, STRV, near),
};

int desk_answer_put(struct buf *out, const struct desk_answer *from)
{
	return layout_put_frame(out, DESK_ANSWER, answer_rows, ARRAY_SIZE(answer_rows), from);
}

int desk_answer_get(struct frame *frame, struct desk_answer *to)
{
	return layout_get_frame(frame, answer_rows, ARRAY_SIZE(answer_rows), to);
}

static const struct layout status_rows[] = {
	LAYOUT(desk_status, U32, id),
	LAYOUT(desk_status, TEXT, session),
	LAYOUT(desk_status, TEXT, policy),
	LAYOUT(desk_status, TEXT, level),
	LAYOUT_MAX(desk_status, U32, is_heard, 1),
	LAYOUT(desk_status, U64, denied),
};

int desk_status_put(struct buf *out, const struct desk_status *from)
{
	return layout_put_frame(out, DESK_TOLD, status_rows, ARRAY_SIZE(status_rows), from);
}

int desk_status_get(struct frame *frame, struct desk_status *to)
{
	return layout_get_frame(frame, status_rows, ARRAY_SIZE(status_rows), to);
}
