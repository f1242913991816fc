/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int trial_begin_put(struct buf *out, const struct trial_begin *begin)
{
	frame_begin(out, TRIAL_BEGIN);
	frame_put_string(out, begin->session);
	frame_put_string(out, begin->cwd);
	frame_put_u32(out, begin->has_no_input);
	frame_put_strv(out, (const char *const *)begin->argv);
	frame_put_strv(out, (const char *const *)begin->env);
	return frame_end(out);
}

int trial_begin_get(struct frame *frame, struct trial_begin *ret_begin)
{
	struct trial_begin begin = { .session = frame_get_string(frame) };

	begin.cwd = frame_get_string(frame);
	begin.has_no_input = frame_get_u32(frame);
	begin.argv = frame_get_strv(frame);
	begin.env = frame_get_strv(frame);
	if (frame_finish(frame) == 0 && begin.session && begin.cwd && begin.argv && begin.argv[0] && begin.env) {
		*ret_begin = begin;
		return 0;
	}
	free(begin.argv);
	free(begin.env);
	return -EBADMSG;
}

int trial_shown_put(struct buf *out, const struct trial_shown *shown)
{
	frame_begin(out, TRIAL_SHOWN);
	frame_put_u32(out, shown->result);
	frame_put_string(out, shown->trial);
	frame_put_string(out, shown->text);
	return frame_end(out);
}

int trial_shown_get(struct frame *frame, struct trial_shown *ret_shown)
{
	struct trial_shown shown = { .result = frame_get_u32(frame) };

	shown.trial = frame_get_string(frame);
	shown.text = frame_get_string(frame);
	if (frame_finish(frame) < 0 || !shown.trial || !shown.text || shown.result >= TRIAL_RESULT_COUNT ||
	    strlen(shown.text) >= TRIAL_TEXT_SIZE)
		return -EBADMSG;
	*ret_shown = shown;
	return 0;
}

int trial_compared_put(struct buf *out, bool differs, const char *text)
{
	frame_begin(out, TRIAL_COMPARED);
	frame_put_u32(out, differs);
	frame_put_string(out, text);
	return frame_end(out);
}

int trial_compared_get(struct frame *frame, bool *ret_differs, const char **ret_text)
{
	uint32_t differs = frame_get_u32(frame);
	const char *text = frame_get_string(frame);

	if (frame_finish(frame) < 0 || differs > 1 || !text || strlen(text) >= TRIAL_TEXT_SIZE)
		return -EBADMSG;
	*ret_differs = differs;
	*ret_text = text;
	return 0;
}
