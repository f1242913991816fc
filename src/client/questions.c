/* SPDX-License-Identifier: Apache-2.0 */
#include "client/questions.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "client/control-client.h"
#include "session/control-socket.h"
#include "session/directories.h"

void question_boxes_init(struct question_boxes *boxes)
{
	boxes->count = 0;
	buf_init(&boxes->scratch, FRAME_MESSAGE_MAX);
}

void question_boxes_done(struct question_boxes *boxes)
{
	for (size_t i = 0; i < boxes->count; i++)
		close_fd(&boxes->list[i].fd);
	buf_done(&boxes->scratch);
}

const char *question_name(char out[QUESTION_NAME_SIZE], const char *session, uint32_t number)
{
	return str_format(out, QUESTION_NAME_SIZE, "%s:%u", session, number) < 0 ? "" : out;
}

/* ---- connections ---- */

static void add(struct question_boxes *boxes, const char *session, int fd)
{
	struct question_box *box = &boxes->list[boxes->count++];

	memcpy(box->session, session, SESSION_ID_SIZE);
	box->fd = fd;
	box->told = 0;
}

static bool is_known(const struct question_boxes *boxes, const char *session)
{
	for (size_t i = 0; i < boxes->count; i++)
		if (str_equal(boxes->list[i].session, session))
			return true;
	return false;
}

/* Those that ended make room. */
static void forget_ended(struct question_boxes *boxes)
{
	size_t kept = 0;

	for (size_t i = 0; i < boxes->count; i++)
		if (boxes->list[i].fd >= 0)
			boxes->list[kept++] = boxes->list[i];
	boxes->count = kept;
}

static int open_all(struct question_boxes *boxes, struct err *err)
{
	char runtime[PATH_MAX], session[SESSION_ID_SIZE];
	int r = session_runtime_dir(runtime, sizeof runtime, false, err);
	const struct dirent *entry;
	struct err ignored;
	DIR *directory;

	if (r < 0)
		return r;
	forget_ended(boxes);
	/* Nobody ever ran anything: there is no directory, and no question. */
	directory = opendir(runtime);
	while (directory && boxes->count < QUESTION_BOXES_MAX && (entry = readdir(directory))) {
		int fd;

		if (!session_of_socket(entry->d_name, session) || is_known(boxes, session))
			continue;
		fd = control_socket_connect(session, &ignored);
		if (fd >= 0)
			add(boxes, session, fd);
	}
	if (directory)
		closedir(directory);
	return 0;
}

int question_boxes_open(struct question_boxes *boxes, const char *id_or_name, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	int fd, r;

	if (!id_or_name)
		return open_all(boxes, err);
	r = client_open(id_or_name, &record, &fd, err);
	if (r == 0)
		add(boxes, record.id, fd);
	return r;
}

/* ---- messages ---- */

static int send(struct question_box *box, const struct buf *message, struct err *err)
{
	int r = frame_send(box->fd, message, NULL, 0);

	return r < 0 ? err_set(err, ERR_STATE, -r, "session", "session %s cannot be asked: %s", box->session,
			       strerror(-r))
		     : 0;
}

/* A frame of this type in the scratch buffer. */
static int receive(struct question_boxes *boxes, struct question_box *box, uint16_t type, struct frame *ret_frame,
		   struct err *err)
{
	struct client_answer answer;
	int r = client_receive(box->fd, &boxes->scratch, &answer, err);

	if (r < 0)
		return r;
	close_fd(&answer.fd);
	if (answer.frame.type != type)
		return err_set(err, ERR_STATE, EPROTO, "session", "session %s gave no clear answer", box->session);
	*ret_frame = answer.frame;
	return 0;
}

int question_box_ask(struct question_box *box, enum asking_look how, struct err *err)
{
	cleanup_buf struct buf message;
	int r;

	buf_init(&message, 64);
	frame_begin(&message, CONTROL_ASKS);
	frame_put_u64(&message, box->told);
	frame_put_u32(&message, how);
	r = frame_end(&message);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "ask", "out of memory") : send(box, &message, err);
}

static int unreadable(const struct question_box *box, struct err *err)
{
	return err_set(err, ERR_STATE, EBADMSG, "session", "what session %s asks cannot be read", box->session);
}

int question_box_hear(struct question_boxes *boxes, struct question_box *box, question_visit visit, void *context,
		      struct err *err)
{
	struct asking_question question;
	struct frame frame;
	int count = 0, r = receive(boxes, box, CONTROL_QUESTIONS, &frame, err);

	if (r < 0)
		return r;
	box->told = frame_get_u64(&frame);
	while ((r = asking_question_get(&frame, &question)) > 0) {
		count++;
		r = visit(context, box, &question);
		free(question.shown.argv);
		if (r < 0)
			return r;
	}
	return r < 0 ? unreadable(box, err) : count;
}

int question_box_tell(struct question_boxes *boxes, struct question_box *box, struct buf *message, uint16_t type,
		      uint32_t *ret_value, struct err *err)
{
	struct frame frame;
	int r = send(box, message, err);

	if (r == 0)
		r = receive(boxes, box, type, &frame, err);
	if (r < 0)
		return r;
	*ret_value = frame_get_u32(&frame);
	return frame_finish(&frame) < 0 ? unreadable(box, err) : 0;
}

/* ---- all of them ---- */

/* A session that ends while it is asked has nothing to say any more. */
static bool is_gone(const struct err *err)
{
	return err->errnum == ECONNRESET || err->errnum == EPIPE || err->errnum == ESHUTDOWN;
}

int question_boxes_visit(struct question_boxes *boxes, enum asking_look how, question_visit visit, void *context,
			 struct err *err)
{
	for (size_t i = 0; i < boxes->count; i++) {
		struct question_box *box = &boxes->list[i];
		int r;

		do {
			r = question_box_ask(box, how, err);
			if (r == 0)
				r = question_box_hear(boxes, box, visit, context, err);
		} while (r > 0);
		if (r < 0 && !is_gone(err))
			return r;
	}
	return 0;
}

/* Grants after *after; 1: there may be more. */
static int visit_some_grants(struct question_boxes *boxes, struct question_box *box, uint32_t *after,
			     grant_visit visit, void *context, struct err *err)
{
	struct asking_grant grant;
	struct frame frame;
	int count = 0, r = client_send(box->fd, CONTROL_GRANTS, 1, *after, err);

	if (r == 0)
		r = receive(boxes, box, CONTROL_GRANTED, &frame, err);
	if (r < 0)
		return r;
	while ((r = asking_grant_get(&frame, &grant)) > 0) {
		count++;
		*after = grant.number;
		r = visit(context, box, &grant);
		free(grant.shown.argv);
		if (r < 0)
			return r;
	}
	return r < 0 ? unreadable(box, err) : count > 0;
}

int question_boxes_visit_grants(struct question_boxes *boxes, grant_visit visit, void *context, struct err *err)
{
	for (size_t i = 0; i < boxes->count; i++) {
		uint32_t after = 0;
		int r;

		do
			r = visit_some_grants(boxes, &boxes->list[i], &after, visit, context, err);
		while (r > 0);
		if (r < 0 && !is_gone(err))
			return r;
	}
	return 0;
}

int question_open_named(struct question_boxes *boxes, const char *word, const char *what, uint32_t *ret_number,
			struct err *err)
{
	const char *colon = strrchr(word, ':');
	char session[256], shown[ERR_QUOTE_SIZE];
	uint64_t number;

	if (num_parse_u64(colon ? colon + 1 : word, &number) < 0 || !number || number > UINT32_MAX ||
	    str_format(session, sizeof session, "%.*s", colon ? (int)(colon - word) : 0, word) < 0) {
		err_set(err, ERR_USAGE, EINVAL, "ask", "%s is no number of a %s", err_quote(shown, word), what);
		err_hint(err, "write it as 3, or as SESSION:3");
		return -EINVAL;
	}
	*ret_number = (uint32_t)number;
	return question_boxes_open(boxes, colon ? session : NULL, err);
}
