/* SPDX-License-Identifier: Apache-2.0 */
#include "approve/token-grants.h"
#include "box/control/client.h"
#include "box/state/sandbox.h"
#include "wire/control.h"


/*
 * `atoll ask`, `approve`, `deny` and `grants`, and tokens. Who follows asks for one message after the other, so that
 * one that is stopped, or slow, has one answer in its socket and no more: the sandbox never waits for it.
 */

/* Without a reason of its own it was the log that failed. */
static int fail(struct client *client, int r, struct err *err)
{
	if (r < 0) {
		err_set(err, ERR_STATE, -r, "audit", "the log of the session cannot be written: %s",
			err_errno_name(-r));
		run_end(&client->box->run, ENDED_POLICY);
	}
	client_reply_error(client, err);
	return 0;
}

static void send_questions(struct client *client, bool is_shown)
{
	struct box *box = client->box;

	frame_begin(&box->run.out, CONTROL_QUESTIONS);
	client->told = queue_put_questions(&box->approval.queue, client->told, is_shown, &box->run.out);
	client->is_owed = false;
	client_reply(client, frame_end(&box->run.out), NULL, 0);
}

void client_tell_questions(struct client *client)
{
	if (client->is_owed && queue_generation(&client->box->approval.queue) > client->told)
		send_questions(client, true);
}

int client_on_asks(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t after = frame_get_u64(frame);
	uint32_t how = frame_get_u32(frame);
	struct err err = { 0 };
	int r = 0;

	if (frame_finish(frame) < 0 || how >= ASKING_LOOK_COUNT)
		return -EBADMSG;
	client->state = CLIENT_ASKING;
	client->told = after;
	client->is_follower = client->is_owed = how == ASKING_FOLLOW;
	if (how == ASKING_LIST)
		r = queue_split_late(&client->box->approval.queue);
	if (r < 0)
		return fail(client, r, &err);
	if (how == ASKING_FOLLOW)
		client_tell_questions(client);
	else
		send_questions(client, how != ASKING_FIND);
	return 0;
}

static bool is_over(struct client *client, struct err *err)
{
	if (client->box->run.ended == ENDED_NOT)
		return false;
	err_set(err, ERR_STATE, ESHUTDOWN, "ask", "the session is ending");
	return true;
}

int client_on_answer(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	struct queue_answerer by = { "control", client->uid, client->pid };
	struct asking_reply reply;
	struct err err = { 0 };
	uint32_t grant = 0;
	int r = asking_reply_get(frame, &reply);

	if (r < 0)
		return r;
	client->state = CLIENT_ASKING;
	r = is_over(client, &err) ? 1 : queue_answer(&client->box->approval.queue, &reply, &by, &grant, &err);
	if (r)
		return fail(client, r, &err);
	client_reply_u32(client, CONTROL_ANSWERED, grant);
	return 0;
}

int client_on_grants(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	struct box *box = client->box;
	uint32_t after = frame_get_u32(frame);

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	client->state = CLIENT_ASKING;
	frame_begin(&box->run.out, CONTROL_GRANTED);
	queue_put_grants(&box->approval.queue, after, &box->run.out);
	client_reply(client, frame_end(&box->run.out), NULL, 0);
	return 0;
}

int client_on_revoke(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	struct queue_answerer by = { "control", client->uid, client->pid };
	uint32_t number = frame_get_u32(frame);
	struct err err = { 0 };
	int r;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	client->state = CLIENT_ASKING;
	r = is_over(client, &err) ? 1 : queue_revoke(&client->box->approval.queue, number, &by, &err);
	if (r)
		return fail(client, r, &err);
	client_reply_u32(client, CONTROL_DONE, 0);
	return 0;
}

/* What follows on this connection may be the command that it is for. */
int client_on_token(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	struct err err = { 0 };
	int r = is_over(client, &err) ? 1 : token_grants_add(&client->box->approval.queue, frame, &err);

	if (r)
		return fail(client, r, &err);
	client_reply_u32(client, CONTROL_DONE, 0);
	return 0;
}
