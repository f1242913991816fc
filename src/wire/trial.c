/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "wire/layout.h"

static const struct layout begin_rows[] = {
	LAYOUT(trial_begin, TEXT, session),
	LAYOUT(trial_begin, TEXT, cwd),
	LAYOUT(trial_begin, U32, has_no_input),
	LAYOUT(trial_begin, STRV, argv),
	LAYOUT(trial_begin, STRV, env),
};

int trial_begin_put(struct buf *out, const struct trial_begin *from)
{
	return layout_put_frame(out, TRIAL_BEGIN, begin_rows, ARRAY_SIZE(begin_rows), from);
}

int trial_begin_get(struct frame *frame, struct trial_begin *to)
{
	int r = layout_get_frame(frame, begin_rows, ARRAY_SIZE(begin_rows), to);

	return r == 0 && (!to->argv[0]) ? layout_refuse(frame, begin_rows, ARRAY_SIZE(begin_rows), to) : r;
}

static const struct layout shown_rows[] = {
	LAYOUT_MAX(trial_shown, U32, result, TRIAL_RESULT_COUNT - 1),
	LAYOUT(trial_shown, TEXT, trial),
	LAYOUT_MAX(trial_shown, TEXT, text, TRIAL_TEXT_SIZE - 1),
};

int trial_shown_put(struct buf *out, const struct trial_shown *from)
{
	return layout_put_frame(out, TRIAL_SHOWN, shown_rows, ARRAY_SIZE(shown_rows), from);
}

int trial_shown_get(struct frame *frame, struct trial_shown *to)
{
	return layout_get_frame(frame, shown_rows, ARRAY_SIZE(shown_rows), to);
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
