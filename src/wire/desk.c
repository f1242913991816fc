/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/desk.h"

#include <string.h>

#include "base/str.h"

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

int desk_want_put(struct buf *out, uint16_t type, const struct desk_want *want)
{
	frame_begin(out, type);
	frame_put_u32(out, want->id);
	frame_put_u32(out, want->kind);
	frame_put_string(out, want->subject);
	frame_put_u32(out, want->port);
	frame_put_strv(out, (const char *const *)want->argv);
	frame_put_string(out, want->reason);
	frame_put_u64(out, want->wait_ms);
	return frame_end(out);
}

int desk_want_get(struct frame *frame, struct desk_want *ret_want)
{
	struct desk_want want = { .id = frame_get_u32(frame) };

	want.kind = frame_get_u32(frame);
	want.subject = frame_get_string(frame);
	want.port = frame_get_u32(frame);
	want.argv = frame_get_strv(frame);
	want.reason = frame_get_string(frame);
	want.wait_ms = frame_get_u64(frame);
	if (frame_finish(frame) < 0 || !want.argv || !desk_want_is_sound(&want)) {
		free(want.argv);
		return -EBADMSG;
	}
	*ret_want = want;
	return 0;
}

int desk_answer_put(struct buf *out, const struct desk_answer *answer)
{
	frame_begin(out, DESK_ANSWER);
	frame_put_u32(out, answer->id);
	frame_put_u32(out, answer->verdict);
	frame_put_u32(out, answer->question);
	frame_put_string(out, answer->rule ? answer->rule : "");
	frame_put_string(out, answer->reason ? answer->reason : "");
	frame_put_string(out, answer->hint ? answer->hint : "");
	frame_put_strv(out, (const char *const *)answer->near);
	return frame_end(out);
}

int desk_answer_get(struct frame *frame, struct desk_answer *ret_answer)
{
	struct desk_answer answer = { .id = frame_get_u32(frame) };

	answer.verdict = frame_get_u32(frame);
	answer.question = frame_get_u32(frame);
	answer.rule = frame_get_string(frame);
	answer.reason = frame_get_string(frame);
	answer.hint = frame_get_string(frame);
	answer.near = frame_get_strv(frame);
	if (frame_finish(frame) < 0 || answer.verdict >= DESK_VERDICT_COUNT || !answer.rule || !answer.reason ||
	    !answer.hint || !answer.near) {
		free(answer.near);
		return -EBADMSG;
	}
	*ret_answer = answer;
	return 0;
}

int desk_status_put(struct buf *out, const struct desk_status *status)
{
	frame_begin(out, DESK_TOLD);
	frame_put_u32(out, status->id);
	frame_put_string(out, status->session);
	frame_put_string(out, status->policy);
	frame_put_string(out, status->level);
	frame_put_u32(out, status->is_heard);
	frame_put_u64(out, status->denied);
	return frame_end(out);
}

int desk_status_get(struct frame *frame, struct desk_status *ret_status)
{
	struct desk_status status = { .id = frame_get_u32(frame) };

	status.session = frame_get_string(frame);
	status.policy = frame_get_string(frame);
	status.level = frame_get_string(frame);
	status.is_heard = frame_get_u32(frame);
	status.denied = frame_get_u64(frame);
	if (frame_finish(frame) < 0 || !status.session || !status.policy || !status.level || status.is_heard > 1)
		return -EBADMSG;
	*ret_status = status;
	return 0;
}
