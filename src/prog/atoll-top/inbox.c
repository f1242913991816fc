/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-top/inbox.h"

#include <string.h>

#include "base/names.h"
#include "os/fd.h"
#include "policy/grants.h"
#include "wire/asking.h"

int inbox_init(struct inbox *inbox)
{
	*inbox = (struct inbox){ .events_fd = FD_NONE };
	buf_init(&inbox->out, 512);
	buf_init(&inbox->scratch, FRAME_MESSAGE_MAX);
	return fd_set_nonblocking(TOP_FD, true);
}

void inbox_done(struct inbox *inbox)
{
	rows_done(&inbox->rows);
	buf_done(&inbox->out);
	buf_done(&inbox->scratch);
	close_fd(&inbox->events_fd);
}

static int on_session(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inbox *inbox = context;
	const char *id = frame_get_string(frame);
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);

	return frame_finish(frame) < 0 ? -EBADMSG : rows_add(&inbox->rows, id, bytes, size);
}

/* What a box says is no reason to end, whatever it is: it is as if it had not answered. */
static int on_status(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inbox *inbox = context;
	const char *id = frame_get_string(frame);
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);
	struct row *row;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	row = rows_find(&inbox->rows, id);
	if (row && rows_update(&inbox->rows, id, bytes, size, clock_monotonic_ns()) < 0)
		row->is_silent = true;
	return 0;
}

static int on_silent(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inbox *inbox = context;
	struct row *row = rows_find(&inbox->rows, frame_get_string(frame));

	if (row)
		row->is_silent = true;
	return frame_finish(frame);
}

static int on_gone(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inbox *inbox = context;

	rows_remove(&inbox->rows, frame_get_string(frame));
	return frame_finish(frame);
}

static int on_round(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inbox *inbox = context;

	inbox->rows.left_out = frame_get_u32(frame);
	inbox->rounds++;
	return frame_finish(frame);
}

static int on_events(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inbox *inbox = context;
	const char *id = frame_get_string(frame);

	if (frame_finish(frame) < 0 || !id || strlen(id) != SESSION_ID_SIZE - 1)
		return -EBADMSG;
	memcpy(inbox->events_id, id, SESSION_ID_SIZE);
	close_fd(&inbox->events_fd);
	inbox->events_fd = take_fd(&fds[0]);
	return fd_set_nonblocking(inbox->events_fd, true);
}

static int on_notice(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inbox *inbox = context;
	const char *text = frame_get_string(frame);
	struct buf shown;

	if (frame_finish(frame) < 0 || !text)
		return -EBADMSG;
	buf_init_fixed(&shown, inbox->notice, sizeof inbox->notice);
	buf_put_escaped(&shown, text, strlen(text), TOP_NOTICE_MAX);
	(void)buf_text(&shown);
	return 0;
}

static void put_part(struct buf *out, const char *before, const char *text)
{
	if (!text)
		return;
	buf_put_text(out, before);
	buf_put_escaped(out, text, strlen(text), 0);
}

/* All that the answer will count for; the agent's own words, which anybody could have written, last. */
static void describe(const struct asking_shown *shown, struct buf *out)
{
	buf_put_text(out, names_get(action_kind_names, ACTION_KIND_COUNT, shown->kind));
	put_part(out, " ", shown->method);
	put_part(out, " ", shown->subject);
	if (shown->port)
		buf_printf(out, ":%u", shown->port);
	put_part(out, "", shown->path);
	if (shown->flags & GRANT_BELOW)
		buf_put_text(out, " and all below it");
	for (size_t i = 0; shown->argv && shown->argv[i]; i++)
		put_part(out, i ? " " : " as ", shown->argv[i]);
	put_part(out, ", by ", shown->program);
	put_part(out, " in ", shown->cwd);
	put_part(out, "; it says: ", shown->words);
}

static void take_question(struct inbox_question *kept, const struct asking_question *question)
{
	bool is_same = kept->number == question->number && memcmp(kept->hash, question->hash, sizeof kept->hash) == 0;
	struct buf text;

	if (!is_same)
		kept->since_ns = clock_monotonic_ns();
	kept->number = question->number;
	memcpy(kept->hash, question->hash, sizeof kept->hash);
	buf_init_fixed(&text, kept->text, sizeof kept->text);
	describe(&question->shown, &text);
	kept->is_whole = buf_error(&text) == 0;
	if (!kept->is_whole)
		memcpy(kept->text, "too long for here: `atoll ask`", sizeof "too long for here: `atoll ask`");
	else
		(void)buf_text(&text);
}

/* Of those that are open the first one. */
static int read_questions(struct frame *frame, struct inbox_question *kept, bool *ret_has_one)
{
	struct asking_question question;
	int r;

	*ret_has_one = false;
	(void)frame_get_u64(frame);
	while ((r = asking_question_get(frame, &question)) > 0) {
		if (question.state != ASKING_ANSWERED && !*ret_has_one) {
			take_question(kept, &question);
			*ret_has_one = true;
		}
		free(question.shown.argv);
	}
	return r;
}

static int on_questions(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inbox *inbox = context;
	struct inbox_question *kept = &inbox->question;
	const char *id = frame_get_string(frame);
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);
	struct frame inner;
	bool has_one = false;
	int r;

	if (frame_finish(frame) < 0 || !id || strlen(id) != SESSION_ID_SIZE - 1 || !bytes)
		return -EBADMSG;
	if (strcmp(kept->id, id) != 0)
		*kept = (struct inbox_question){ 0 };
	/* What a box says is no reason to end. */
	r = frame_open(&inner, (void *)bytes, size);
	if (r == 0 && inner.type == ASKING_QUESTIONS)
		r = read_questions(&inner, kept, &has_one);
	if (r < 0 || !has_one)
		*kept = (struct inbox_question){ 0 };
	else
		memcpy(kept->id, id, SESSION_ID_SIZE);
	return 0;
}

static const struct frame_rule rules[] = {
	{ TOP_SESSION, 1, FRAME_MESSAGE_MAX, 0, 0, on_session },
	{ TOP_STATUS, 1, FRAME_MESSAGE_MAX, 0, 0, on_status },
	{ TOP_SILENT, 1, 64, 0, 0, on_silent },
	{ TOP_GONE, 1, 64, 0, 0, on_gone },
	{ TOP_ROUND, 1, 64, 0, 0, on_round },
	{ TOP_EVENTS, 1, 64, 1, 1, on_events },
	{ TOP_NOTICE, 1, TOP_NOTICE_MAX + 64, 0, 0, on_notice },
	{ TOP_QUESTIONS, 1, FRAME_MESSAGE_MAX, 0, 0, on_questions },
};

int inbox_read(struct inbox *inbox)
{
	for (;;) {
		int r = frame_dispatch(TOP_FD, &inbox->scratch, 0, rules, ARRAY_SIZE(rules), inbox);

		if (r == -EAGAIN)
			return 1;
		if (r <= 0)
			return r == -ECONNRESET ? 0 : r;
	}
}

static int send_out(struct inbox *inbox)
{
	int r = frame_end(&inbox->out);

	if (r == 0)
		r = frame_send(TOP_FD, &inbox->out, NULL, 0);
	return r < 0 ? r : 0;
}

int inbox_ask(struct inbox *inbox, enum top_message what, const char *id)
{
	frame_begin(&inbox->out, what);
	if (id || what == TOP_WATCH)
		frame_put_string(&inbox->out, id);
	return send_out(inbox);
}

int inbox_answer(struct inbox *inbox, bool is_allowed)
{
	struct inbox_question *question = &inbox->question;

	frame_begin(&inbox->out, TOP_ANSWER);
	frame_put_string(&inbox->out, question->id);
	frame_put_u32(&inbox->out, question->number);
	frame_put_bytes(&inbox->out, question->hash, sizeof question->hash);
	frame_put_u32(&inbox->out, is_allowed);
	frame_put_u32(&inbox->out, ASKING_ONCE);
	frame_put_u64(&inbox->out, 0);
	return send_out(inbox);
}

int inbox_set_pace(struct inbox *inbox, uint32_t ms)
{
	frame_begin(&inbox->out, TOP_PACE);
	frame_put_u32(&inbox->out, ms);
	return send_out(inbox);
}
