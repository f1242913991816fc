/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "box/control/link-state.h"

/* Half of the socket is for replies. */
static bool has_room(const struct client *client)
{
	int queued = 0, room = 0;
	socklen_t size = sizeof room;

	return ioctl(client->fd, SIOCOUTQ, &queued) == 0 &&
	       getsockopt(client->fd, SOL_SOCKET, SO_SNDBUF, &room, &size) == 0 && queued < room / 2;
}

static struct buf *begin_event(struct client *client, enum link_event type)
{
	struct buf *out = link_message(client->box);

	frame_begin(out, LINK_EVENT);
	frame_put_u64(out, client->link->next);
	frame_put_u32(out, type);
	return out;
}

/* 1: sent; 0: it has to wait, or is too large. */
static int send_event(struct client *client, const int *fds, size_t fd_count)
{
	struct buf *out = link_message(client->box);

	if (frame_end(out) < 0 || frame_send(client->fd, out, fds, fd_count) < 0)
		return 0;
	client->link->next++;
	if (client->link->credit)
		client->link->credit--;
	return 1;
}

static void count_lost(struct link *link, enum link_event type)
{
	struct link_lost *lost = &link->lost[type];

	lost->from = lost->count++ ? lost->from : link->next;
	lost->to = link->next++;
}

static void note_lost(struct link *link, enum link_event type)
{
	count_lost(link, type);
	link->has_lost = true;
}

static bool can_hear(const struct client *client)
{
	return client->link->credit && has_room(client);
}

void link_send_lost(struct client *client)
{
	struct link *link = client->link;

	for (int type = 0; link->has_lost && type < LINK_EVENT_COUNT; type++) {
		struct link_lost *lost = &link->lost[type];
		struct buf *out;

		if (!lost->count)
			continue;
		if (!can_hear(client))
			return;
		out = begin_event(client, LINK_EVENT_LOST);
		field_put_u64(out, "event", (uint64_t)type);
		field_put_u64(out, "from", lost->from);
		field_put_u64(out, "to", lost->to);
		field_put_u64(out, "count", lost->count);
		if (!send_event(client, NULL, 0))
			return;
		*lost = (struct link_lost){ 0 };
	}
	link->has_lost = false;
}

static bool wants(const struct client *client, enum link_event type)
{
	return client && client->link && client->link->mask & 1u << type;
}

/* What is to be told, by fields that are written once for each who hears it. */
struct happening {
	enum link_event type;
	void (*put)(struct buf *out, const void *context);
	const void *context;
	const struct client *owner; /* who alone gets the descriptor */
	const struct command *command; /* that it is about; NULL: none */
	int fd;
};

static void notify_client(struct client *client, const struct happening *happening)
{
	bool has_fd = happening->fd >= 0 && happening->owner == client;

	link_send_lost(client);
	if (client->link->has_lost || !can_hear(client)) {
		note_lost(client->link, happening->type);
		return;
	}
	happening->put(begin_event(client, happening->type), happening->context);
	if (!send_event(client, &happening->fd, has_fd))
		note_lost(client->link, happening->type);
}

static bool concerns(const struct client *client, const struct happening *happening)
{
	return !client->link->own_commands || !happening->command || happening->command->client == client;
}

static void tell_all(struct box *box, const struct happening *happening)
{
	for (size_t i = 0; i < BOX_CLIENTS_MAX; i++)
		if (wants(box->control.clients[i], happening->type) && concerns(box->control.clients[i], happening))
			notify_client(box->control.clients[i], happening);
}

static void put_nothing(struct buf *out, const void *context)
{
}

void link_announce_to(struct client *client)
{
	const struct happening ready = { .type = LINK_EVENT_READY, .put = put_nothing, .fd = FD_NONE };

	if (client->link->was_announced || !wants(client, LINK_EVENT_READY))
		return;
	client->link->was_announced = true;
	notify_client(client, &ready);
}

void link_announce(struct box *box)
{
	box->is_announced = true;
	for (size_t i = 0; i < BOX_CLIENTS_MAX; i++)
		if (box->control.clients[i] && box->control.clients[i]->link)
			link_announce_to(box->control.clients[i]);
}

static void put_command(struct buf *out, const void *context)
{
	const struct command *command = context;

	field_put_u64(out, "command", command->id);
	field_put_u64(out, "main", command->is_main);
}

static void put_started(struct buf *out, const void *context)
{
	const struct command *command = context;

	put_command(out, command);
	field_put_u64(out, "pid", command->name.pid);
}

void link_command_started(struct box *box, const struct command *command, int master_fd)
{
	const struct happening started = {
		.type = LINK_EVENT_STARTED, .put = put_started, .context = command, .owner = command->client,
		.command = command, .fd = master_fd,
	};

	tell_all(box, &started);
}

bool link_has_room_for_changes(struct client *client)
{
	struct link *link = client->link;

	if (link->credit <= LINK_CREDIT_MAX / 2)
		return false;
	link->has_lost = link->has_lost || link->lost[LINK_EVENT_WATCH].count;
	link_send_lost(client);
	return !link->has_lost;
}

struct stopped {
	const struct command *command;
	uint32_t signal_number;
};

static void put_stopped(struct buf *out, const void *context)
{
	const struct stopped *stopped = context;

	put_command(out, stopped->command);
	field_put_u64(out, "signal", stopped->signal_number);
}

void link_command_stopped(struct box *box, const struct command *command, uint32_t signal_number)
{
	const struct stopped context = { command, signal_number };
	const struct happening stopped = {
		.type = LINK_EVENT_STOPPED, .put = put_stopped, .context = &context, .command = command,
		.fd = FD_NONE,
	};

	tell_all(box, &stopped);
}

struct command_end {
	const struct command *command;
	const char *ended;
	int lost_errno;
};

static void put_command_end(struct buf *out, const void *context)
{
	const struct command_end *end = context;
	const struct command *command = end->command;
	int errnum = end->lost_errno ? end->lost_errno : command->failed_errno;

	put_command(out, command);
	field_put_string(out, "ended", end->ended);
	field_put_u64(out, "status", (uint64_t)(command->has_exited ? command_status(command) : 128 + SIGKILL));
	if (command->has_exited && command->result.signal)
		field_put_u64(out, "signal", (uint64_t)command->result.signal);
	else if (command->has_exited)
		field_put_u64(out, "exit", (uint64_t)command->result.code);
	if (errnum)
		field_put_u64(out, "errno", (uint64_t)errnum);
	field_put_u64(out, "user_us", command->result.user_us);
	field_put_u64(out, "system_us", command->result.system_us);
	field_put_u64(out, "max_rss_bytes", command->result.max_rss_bytes);
}

void link_command_ended(struct box *box, const struct command *command, const char *ended, int lost_errno)
{
	const struct command_end context = { command, ended, lost_errno };
	const struct happening exited = {
		.type = LINK_EVENT_EXIT, .put = put_command_end, .context = &context, .command = command,
		.fd = FD_NONE,
	};

	tell_all(box, &exited);
}

static void put_change(struct buf *out, const void *context)
{
	link_put_change(out, context);
}

void link_watch_changed(struct client *client, const struct link_change *change)
{
	const struct happening changed = {
		.type = LINK_EVENT_WATCH, .put = put_change, .context = change, .fd = FD_NONE
	};

	/* What files say is as much as somebody inside likes: half of the credit is for all the rest. */
	if (!link_has_room_for_changes(client)) {
		count_lost(client->link, LINK_EVENT_WATCH);
		return;
	}
	notify_client(client, &changed);
}

/* ---- records and refusals ---- */

struct record {
	const struct audit_event *event;
	uint64_t seq;
	const void *line;
	size_t size;
};

static void put_record(struct buf *out, const void *context)
{
	const struct record *record = context;

	field_put_u64(out, "seq", record->seq);
	field_put_string(out, "type", audit_type_names[record->event->type]);
	field_put_bytes(out, "record", record->line, record->size);
}

static void put_event(struct buf *out, const void *context)
{
	const struct record *record = context;
	const struct audit_event *event = record->event;

	put_record(out, context);
	field_put_string(out, "verdict", event->verdict);
	field_put_string(out, "rule", event->rule);
	if (event->subject)
		field_put_bytes(out, "subject", event->subject, event->subject_size);
}

static void on_record(void *context, const struct audit_event *event, uint64_t seq, const void *line, size_t size)
{
	static const uint8_t types[AUDIT_TYPE_COUNT] = {
		[AUDIT_ASK_OPEN] = LINK_EVENT_QUESTION, [AUDIT_ASK_ANSWER] = LINK_EVENT_ANSWERED,
		[AUDIT_ALERT] = LINK_EVENT_ALERT, [AUDIT_LIMIT_HIT] = LINK_EVENT_LIMIT,
		[AUDIT_POLICY_CHANGE] = LINK_EVENT_POLICY,
	};
	const struct record record = { event, seq, line, size };
	struct happening happening = {
		.type = LINK_EVENT_LOG, .put = put_record, .context = &record, .fd = FD_NONE
	};

	tell_all(context, &happening);
	if (!types[event->type])
		return;
	happening.type = types[event->type];
	happening.put = put_event;
	tell_all(context, &happening);
}

static void put_refusal(struct buf *out, const void *context)
{
	const struct denial *denial = context;

	field_put_string(out, "kind", action_kind_names[denial->kind]);
	field_put_string(out, "subject", denial->subject);
	field_put_string(out, "rule", denial->rule);
	field_put_string(out, "reason", denial->reason);
	field_put_string(out, "hint", denial->hint);
}

static void on_refusal(void *context, const struct denial *denial)
{
	const struct happening happening = {
		.type = LINK_EVENT_DENIAL, .put = put_refusal, .context = denial, .fd = FD_NONE
	};

	tell_all(context, &happening);
}

void link_prepare(struct box *box)
{
	box->supervision.audit.observer = (struct audit_observer){ on_record, box };
	box->supervision.refusals.denials.observer = (struct denial_observer){ on_refusal, box };
}

static void put_frozen(struct buf *out, const void *context)
{
	const struct box *box = context;

	field_put_u64(out, "frozen", freeze_is_on(box->run.freeze));
	field_put_string(out, "reason", freeze_is_on(box->run.freeze) ? box->run.freeze->name : NULL);
}

void link_check(struct box *box)
{
	const struct happening frozen = {
		.type = LINK_EVENT_FROZEN, .put = put_frozen, .context = box, .fd = FD_NONE
	};
	bool is_frozen = freeze_is_on(box->run.freeze);

	for (size_t i = 0; i < BOX_CLIENTS_MAX; i++) {
		struct client *client = box->control.clients[i];

		if (!client || !client->link || client->link->was_frozen == is_frozen)
			continue;
		client->link->was_frozen = is_frozen;
		if (wants(client, LINK_EVENT_FROZEN))
			notify_client(client, &frozen);
	}
}

static void put_end(struct buf *out, const void *context)
{
	const struct box *box = context;

	field_put_string(out, "ended", ended_names[box->run.ended]);
	field_put_u64(out, "status", (uint64_t)box->outcome.status);
	if (box->run.err->code != ERR_NONE)
		link_put_error(out, box->run.err);
}

void link_conclude(struct client *client)
{
	struct link *link = client->link;

	if (link->stop_ticket)
		link_reply_done(client, link->stop_ticket);
	/* Who never heard that it lives is told by the starter why it does not. */
	if (!wants(client, LINK_EVENT_END) || !client->box->is_announced)
		return;
	link_send_lost(client);
	put_end(begin_event(client, LINK_EVENT_END), client->box);
	(void)send_event(client, NULL, 0); /* it finds the end of the socket */
}
