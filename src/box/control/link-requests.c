/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "base/json.h"
#include "base/str.h"
#include "box/control/control.h"
#include "box/control/link-state.h"
#include "box/report/status.h"
#include "session/labels.h"
#include "session/record.h"
#include "wire/asking.h"

/* What a linked client asks for, each with its ticket. */

enum { MS_NS = 1000000, REQUEST_MAX = 256, QUESTIONS_MAX = 100 << 10, STATUS_MAX = 64 << 10 };

static int on_credit(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint32_t more = frame_get_u32(frame);

	if (frame_finish(frame) < 0 || more > LINK_CREDIT_MAX || client->link->credit + more > LINK_CREDIT_MAX)
		return -EBADMSG;
	client->link->credit += more;
	link_send_lost(client);
	(void)link_has_room_for_changes(client);
	return 0;
}

int link_subscribe(struct client *client, uint64_t events)
{
	uint64_t mask = events & ~LINK_OWN_COMMANDS;

	if (mask >> LINK_EVENT_COUNT)
		return -EBADMSG;
	client->link->own_commands = events & LINK_OWN_COMMANDS;
	client->link->mask = mask;
	/* Somebody hears of questions: they are asked, and wait. */
	client->is_follower = mask & 1u << LINK_EVENT_QUESTION;
	client->box->approval.queue.listeners_until_ns = 0;
	return 0;
}

static int on_subscribe(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), events = frame_get_u64(frame);
	int r = frame_finish(frame);

	if (r == 0)
		r = link_subscribe(client, events);
	if (r < 0)
		return r;
	if (ticket)
		link_reply_done(client, ticket);
	if (client->box->is_announced)
		link_announce_to(client);
	return 0;
}

static int on_stop(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), grace_ms = frame_get_u64(frame);

	if (frame_finish(frame) < 0 || grace_ms > UINT32_MAX)
		return -EBADMSG;
	if (client->link->stop_ticket)
		return link_reply_errno(client, ticket, "stop", EBUSY, "it is being stopped already");
	client->link->stop_ticket = ticket;
	control_stop(client->box, (uint32_t)grace_ms);
	return 0;
}

static int on_freeze(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame);
	struct err err = { 0 };
	int r = frame_finish(frame);

	if (r < 0)
		return r;
	client->freeze = (struct freeze_holder){ .thawed = freeze_log };
	r = freeze_begin(client->box->run.freeze, &client->freeze, "frozen by its owner");
	if (r < 0) {
		control_freeze_error(client->box, r, &err);
		return link_reply_error(client, ticket, &err);
	}
	link_reply_done(client, ticket);
	return 0;
}

struct hold_fields {
	uint64_t keep, timeout_ms;
	const char *reason;
};

static int get_hold(struct frame *frame, struct hold_fields *hold)
{
	struct field field = { 0 };
	int r;

	while ((r = field_get(frame, &field)) == 1) {
		if (field.kind == FIELD_U64 && str_equal(field.key, "keep"))
			hold->keep = field.number;
		else if (field.kind == FIELD_U64 && str_equal(field.key, "timeout_ms"))
			hold->timeout_ms = field.number;
		else if (field.kind == FIELD_STRING && str_equal(field.key, "reason"))
			hold->reason = field.bytes;
		else
			r = -EBADMSG;
		field_done(&field);
		if (r < 0)
			return r;
	}
	return r;
}

/* Of nobody who is connected: whoever may speak to this sandbox may end it. */
static const struct freeze_holder kept_freeze = { .thawed = freeze_log };

static int on_hold(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), until_ns = UINT64_MAX;
	struct hold_fields hold = { .timeout_ms = UINT64_MAX };
	struct err err = { 0 };
	int r = get_hold(frame, &hold);

	if (r < 0)
		return r;
	if (hold.timeout_ms < UINT64_MAX / MS_NS / 2)
		until_ns = clock_monotonic_ns() + hold.timeout_ms * MS_NS;
	/* The one that holds it may say so again. */
	if (!freeze_is_held_by(client->box->run.freeze, &client->freeze))
		client->freeze = (struct freeze_holder){ .thawed = freeze_log };
	r = freeze_begin_lasting(client->box->run.freeze, hold.keep ? &kept_freeze : &client->freeze,
				 hold.reason ? hold.reason : "frozen by its owner", until_ns);
	if (r < 0) {
		control_freeze_error(client->box, r, &err);
		return link_reply_error(client, ticket, &err);
	}
	link_reply_done(client, ticket);
	return 0;
}

static int on_thaw(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame);
	bool was_held = freeze_is_held_by(client->box->run.freeze, &client->freeze) ||
			freeze_is_held_by(client->box->run.freeze, &kept_freeze);

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	if (was_held && freeze_end(client->box->run.freeze) < 0)
		run_end(&client->box->run, ENDED_POLICY);
	link_reply_u64(client, ticket, "frozen", was_held);
	return 0;
}

static void policy_changed(void *asker, const struct err *err, uint32_t ended)
{
	struct client *client = asker;
	uint64_t ticket = client->link->change_ticket;

	client->link->change_ticket = 0;
	if (err)
		(void)link_reply_error(client, ticket, err);
	else
		link_reply_u64(client, ticket, "connections", ended);
}

static int on_policy(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	struct policy_change_asker asker = { policy_changed, client, client->uid, client->pid };
	uint64_t ticket = frame_get_u64(frame);
	struct err err = { 0 };
	int r;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	if (link_is_ending(client, ticket))
		return 0;
	if (client->link->change_ticket)
		return link_reply_errno(client, ticket, "policy", EBUSY, "another change is not finished yet");
	client->link->change_ticket = ticket;
	r = policy_change_begin(&client->box->gates.net, fds[0], &asker, &err);
	if (r >= 0)
		return 0;
	client->link->change_ticket = 0;
	return link_reply_failure(client, ticket, r, &err);
}

static int on_headers(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	const struct owner_headers_asker by = { client->uid, client->pid };
	uint64_t ticket = frame_get_u64(frame);
	cleanup_free char **triples = frame_get_strv(frame);
	struct err err = { 0 };
	int r;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	if (link_is_ending(client, ticket))
		return 0;
	r = owner_headers_change(&client->box->gates.net, (const char *const *)triples, &by, &err);
	if (r < 0)
		return link_reply_error(client, ticket, &err);
	link_reply_done(client, ticket);
	return 0;
}

static int on_deadline(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	struct box *box = client->box;
	uint64_t ticket = frame_get_u64(frame), ms = frame_get_u64(frame);

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	clocks_set_deadline(&box->supervision.clocks, box->run.policy->policy, clock_monotonic_ns(), ms);
	link_reply_done(client, ticket);
	return 0;
}

/* Stored at once: whoever set them may be gone when they are looked for. */
static int set_labels(struct box *box, const char *const *labels)
{
	struct session_record *record = &box->store.record;
	char *text, *old = record->labels;
	int r = labels_join(labels, &text);

	if (r < 0)
		return r;
	record->labels = text;
	r = session_store(box->store.dir_fd, record);
	if (r < 0)
		record->labels = old;
	free(r < 0 ? text : old);
	return r;
}

static int on_labels(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame);
	struct field field = { 0 };
	struct err err = { 0 };
	int r = field_get(frame, &field);

	if (r == 1 && field.kind == FIELD_STRINGS && str_equal(field.key, "labels"))
		r = frame_finish(frame);
	else
		r = -EBADMSG;
	if (r < 0) {
		free(field.strings);
		return r;
	}
	r = set_labels(client->box, (const char *const *)field.strings);
	free(field.strings);
	if (r == 0) {
		link_reply_done(client, ticket);
		return 0;
	}
	err_set(&err, r == -EINVAL ? ERR_USAGE : ERR_STATE, -r, "labels", "the labels cannot be set: %s",
		err_errno_name(-r));
	err_hint(&err, "%d of NAME=value at most, %d bytes together, names of letters, digits and ._/-", LABELS_MAX,
		 LABELS_SIZE_MAX);
	return link_reply_error(client, ticket, &err);
}

static int on_sample(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame);

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	status_put_fields(client->box, link_reply_begin(client, ticket, ERR_NONE));
	link_reply_send(client, NULL, 0);
	return 0;
}

/* Lists stand in one field, in the form that the other clients get. */
static int reply_list(struct client *client, uint64_t ticket, const char *key, struct buf *list)
{
	int r = frame_end(list);

	if (r == 0)
		field_put_bytes(link_reply_begin(client, ticket, ERR_NONE), key, list->bytes, list->size);
	if (r == 0)
		link_reply_send(client, NULL, 0);
	buf_done(list);
	return r;
}

static int on_questions(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame);
	struct err err = { 0 };
	struct buf list;
	int r;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	r = queue_split_late(&client->box->approval.queue);
	if (r < 0)
		return link_reply_failure(client, ticket, r, &err);
	buf_init(&list, QUESTIONS_MAX);
	frame_begin(&list, ASKING_QUESTIONS);
	(void)queue_put_questions(&client->box->approval.queue, 0, true, &list);
	return reply_list(client, ticket, "questions", &list);
}

static int reply_asks(struct client *client, uint64_t ticket, bool is_shown)
{
	struct buf list, *out;
	int r;

	buf_init(&list, QUESTIONS_MAX);
	frame_begin(&list, ASKING_QUESTIONS);
	client->told = queue_put_questions(&client->box->approval.queue, client->told, is_shown, &list);
	r = frame_end(&list);
	if (r == 0) {
		out = link_reply_begin(client, ticket, ERR_NONE);
		field_put_u64(out, "after", client->told);
		field_put_bytes(out, "questions", list.bytes, list.size);
		link_reply_send(client, NULL, 0);
	}
	buf_done(&list);
	return r;
}

void link_tell_questions(struct client *client)
{
	uint64_t ticket = client->link->asks_ticket;

	if (!ticket || queue_generation(&client->box->approval.queue) <= client->told)
		return;
	client->link->asks_ticket = 0;
	if (reply_asks(client, ticket, true) < 0)
		shutdown(client->fd, SHUT_RDWR);
}

static int on_asks(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), after = frame_get_u64(frame);
	uint32_t look = frame_get_u32(frame);
	struct err err = { 0 };
	int r;

	if (frame_finish(frame) < 0 || look >= ASKING_LOOK_COUNT)
		return -EBADMSG;
	if (client->link->asks_ticket)
		return link_reply_errno(client, ticket, "ask", EBUSY, "this handle follows the questions already");
	client->told = after;
	if (look == ASKING_FOLLOW) {
		client->is_follower = true;
		client->box->approval.queue.listeners_until_ns = 0;
		client->link->asks_ticket = ticket;
		link_tell_questions(client);
		return 0;
	}
	r = look == ASKING_LIST ? queue_split_late(&client->box->approval.queue) : 0;
	return r < 0 ? link_reply_failure(client, ticket, r, &err) : reply_asks(client, ticket, look != ASKING_FIND);
}

static int on_status(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame);
	cleanup_buf struct buf text = { 0 };
	struct json json;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	buf_init(&text, STATUS_MAX);
	json_init(&json, &text);
	status_put(client->box, control_is_followed(client->box), &json);
	if (buf_error(&text))
		return link_reply_errno(client, ticket, "status", -buf_error(&text), "the answer is too long");
	field_put_bytes(link_reply_begin(client, ticket, ERR_NONE), "status", text.bytes, text.size);
	link_reply_send(client, NULL, 0);
	return 0;
}

static int on_grants(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), after = frame_get_u64(frame);
	struct buf list;

	if (frame_finish(frame) < 0 || after > UINT32_MAX)
		return -EBADMSG;
	buf_init(&list, QUESTIONS_MAX);
	frame_begin(&list, ASKING_GRANTS);
	queue_put_grants(&client->box->approval.queue, (uint32_t)after, &list);
	return reply_list(client, ticket, "grants", &list);
}

static int on_answer(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	struct queue_answerer by = { "control", client->uid, client->pid };
	uint64_t ticket = frame_get_u64(frame);
	struct asking_reply reply;
	struct err err = { 0 };
	uint32_t grant = 0;
	int r = asking_reply_get(frame, &reply);

	if (r < 0)
		return r;
	if (link_is_ending(client, ticket))
		return 0;
	r = queue_answer(&client->box->approval.queue, &reply, &by, &grant, &err);
	if (r)
		return link_reply_failure(client, ticket, r, &err);
	link_reply_u64(client, ticket, "grant", grant);
	return 0;
}

static int on_revoke(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	struct queue_answerer by = { "control", client->uid, client->pid };
	uint64_t ticket = frame_get_u64(frame), number = frame_get_u64(frame);
	struct err err = { 0 };
	int r;

	if (frame_finish(frame) < 0 || number > UINT32_MAX)
		return -EBADMSG;
	if (link_is_ending(client, ticket))
		return 0;
	r = queue_revoke(&client->box->approval.queue, (uint32_t)number, &by, &err);
	if (r)
		return link_reply_failure(client, ticket, r, &err);
	link_reply_done(client, ticket);
	return 0;
}

static const struct frame_rule rules[] = {
#define LINKED (1u << CLIENT_LINK)
	{ LINK_CREDIT, LINKED, REQUEST_MAX, 0, 0, on_credit },
	{ LINK_SUBSCRIBE, LINKED, REQUEST_MAX, 0, 0, on_subscribe },
	{ LINK_RUN, LINKED, FRAME_MESSAGE_MAX, 0, 3, link_on_run },
	{ LINK_KILL, LINKED, REQUEST_MAX, 0, 0, link_on_kill },
	{ LINK_STOP, LINKED, REQUEST_MAX, 0, 0, on_stop },
	{ LINK_FREEZE, LINKED, REQUEST_MAX, 0, 0, on_freeze },
	{ LINK_THAW, LINKED, REQUEST_MAX, 0, 0, on_thaw },
	{ LINK_POLICY, LINKED, REQUEST_MAX, 1, 1, on_policy },
	{ LINK_HEADERS, LINKED, FRAME_MESSAGE_MAX, 0, 0, on_headers },
	{ LINK_DEADLINE, LINKED, REQUEST_MAX, 0, 0, on_deadline },
	{ LINK_SAMPLE, LINKED, REQUEST_MAX, 0, 0, on_sample },
	{ LINK_QUESTIONS, LINKED, REQUEST_MAX, 0, 0, on_questions },
	{ LINK_ANSWER, LINKED, REQUEST_MAX, 0, 0, on_answer },
	{ LINK_GRANTS, LINKED, REQUEST_MAX, 0, 0, on_grants },
	{ LINK_REVOKE, LINKED, REQUEST_MAX, 0, 0, on_revoke },
	{ LINK_ASKS, LINKED, REQUEST_MAX, 0, 0, on_asks },
	{ LINK_HOLD, LINKED, FRAME_MESSAGE_MAX, 0, 0, on_hold },
	{ LINK_STATUS, LINKED, REQUEST_MAX, 0, 0, on_status },
	{ LINK_COMMANDS, LINKED, REQUEST_MAX, 0, 0, link_on_commands },
	{ LINK_ATTACH, LINKED, REQUEST_MAX, 0, 0, link_on_attach },
	{ LINK_RESIZE, LINKED, REQUEST_MAX, 0, 0, link_on_resize },
	{ LINK_CLOSE_INPUT, LINKED, REQUEST_MAX, 0, 0, link_on_close_input },
	{ LINK_LABELS, LINKED, 2 * LABELS_SIZE_MAX, 0, 0, on_labels },
	{ LINK_FILE, LINKED, FRAME_MESSAGE_MAX, 0, 0, link_on_file },
#undef LINKED
};

int link_dispatch(struct client *client)
{
	return frame_dispatch(client->fd, &client->box->run.scratch, client->state, rules, ARRAY_SIZE(rules), client);
}
