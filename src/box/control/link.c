/* SPDX-License-Identifier: Apache-2.0 */
#include "box/control/link.h"

#include <signal.h>
#include <sys/socket.h>

#include "box/control/link-state.h"

/* One buffer for all of them, and none of those that others write: events come up while a frame is being made. */
struct buf *link_message(struct box *box)
{
	if (!box->control.link_out.max)
		buf_init(&box->control.link_out, FRAME_MESSAGE_MAX);
	return &box->control.link_out;
}

void link_reply_send(struct client *client, const int *fds, size_t fd_count)
{
	struct buf *out = link_message(client->box);
	int r = frame_end(out);

	if (r == 0)
		r = frame_send(client->fd, out, fds, fd_count);
	if (r < 0)
		shutdown(client->fd, SHUT_RDWR);
}

struct buf *link_reply_begin(struct client *client, uint64_t ticket, enum err_code code)
{
	struct buf *out = link_message(client->box);

	frame_begin(out, LINK_REPLY);
	frame_put_u64(out, ticket);
	frame_put_u32(out, code);
	return out;
}

void link_reply_done(struct client *client, uint64_t ticket)
{
	link_reply_begin(client, ticket, ERR_NONE);
	link_reply_send(client, NULL, 0);
}

void link_reply_u64(struct client *client, uint64_t ticket, const char *key, uint64_t number)
{
	field_put_u64(link_reply_begin(client, ticket, ERR_NONE), key, number);
	link_reply_send(client, NULL, 0);
}

int link_reply_error(struct client *client, uint64_t ticket, const struct err *err)
{
	link_put_error(link_reply_begin(client, ticket, err->code ? err->code : ERR_INTERNAL), err);
	link_reply_send(client, NULL, 0);
	return 0;
}

int link_reply_errno(struct client *client, uint64_t ticket, const char *stage, int errnum, const char *what)
{
	struct err err = { 0 };

	err_set(&err, ERR_STATE, errnum, stage, "%s: %s", what, err_errno_name(errnum));
	return link_reply_error(client, ticket, &err);
}

int link_reply_failure(struct client *client, uint64_t ticket, int r, struct err *err)
{
	if (err->code == ERR_NONE) {
		err_set(err, ERR_STATE, -r, "audit", "the log of the session cannot be written: %s",
			err_errno_name(-r));
		run_end(&client->box->run, ENDED_POLICY);
	}
	return link_reply_error(client, ticket, err);
}

bool link_is_ending(struct client *client, uint64_t ticket)
{
	if (client->box->run.ended == ENDED_NOT)
		return false;
	(void)link_reply_errno(client, ticket, "session", ESHUTDOWN, "the session is ending");
	return true;
}

static void send_welcome(struct client *client, uint32_t protocol)
{
	struct buf *out = link_message(client->box);

	frame_begin(out, LINK_WELCOME);
	frame_put_u32(out, protocol);
	field_put_string(out, "id", client->box->run.request->session);
	field_put_string(out, "atoll", ATOLL_VERSION);
	link_reply_send(client, NULL, 0);
}

int link_greet(struct client *client, uint32_t lowest, uint32_t highest)
{
	uint32_t spoken = highest < LINK_PROTOCOL ? highest : LINK_PROTOCOL;

	/* Which one would do is said before it is cut off. */
	if (lowest > LINK_PROTOCOL || highest < LINK_PROTOCOL_LOWEST || lowest > highest) {
		send_welcome(client, LINK_PROTOCOL);
		return -EPROTO;
	}
	client->link = calloc(1, sizeof *client->link);
	if (!client->link)
		return -ENOMEM;
	client->state = CLIENT_LINK;
	client->link->next = 1;
	client->link->credit = LINK_CREDIT_MAX;
	link_prepare(client->box);
	send_welcome(client, spoken);
	return 0;
}

int link_on_hello(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t lowest = frame_get_u32(frame), highest = frame_get_u32(frame);
	int r = frame_finish(frame);

	return r < 0 ? r : link_greet(context, lowest, highest);
}

bool link_must_wait(const struct client *client, uint16_t type, bool is_spawning)
{
	/* While all stands still it is refused instead: behind it may be what ends that. */
	return client->link && type == LINK_RUN && is_spawning && !freeze_is_on(client->box->run.freeze);
}

void link_free(struct client *client)
{
	struct box *box = client->box;

	for (size_t i = 0; client->link && i < BOX_COMMANDS_MAX; i++) {
		struct command *command = box->commands[i];

		if (!command || command->client != client)
			continue;
		command->client = NULL;
		if (!command->outlives_client && !command->has_exited && command_signal(command, SIGHUP) < 0)
			run_end(&box->run, ENDED_POLICY);
	}
	owner_forget(&box->owner, client);
	free(client->link);
	client->link = NULL;
}
