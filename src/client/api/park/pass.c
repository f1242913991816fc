/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "client/api/fault.h"
#include "client/api/messages.h"
#include "client/api/record.h"
#include "os/fd.h"
#include "session/record.h"

/*
 * A parked sandbox goes to another process of the same user: its socket, by which it is taken, and what is known of it.
 * The box hears nothing of that. Part of libatoll.
 */

enum { MESSAGE_MAX = 8 << 10 };

/* Whoever has it can run what he likes as this user. */
static int check_peer(const struct atoll_context *context, int socket, struct atoll_error *error)
{
	uid_t uid;
	gid_t gid;
	pid_t pid;
	int r = fd_peer_credentials(socket, &uid, &gid, &pid);

	if (r < 0)
		return fault_set(error, ATOLL_E_INVALID, -r, "pass", "it is no connected unix socket");
	return uid == context->uid
		       ? 0 : fault_set(error, ATOLL_E_IDENTITY, EPERM, "pass", "the other end belongs to another user");
}

/* The handle has nothing more to do with it. */
static int let_go(struct atoll_sandbox *sandbox, struct atoll_error *error)
{
	struct atoll_record *event = event_new(LINK_EVENT_END, 0);
	int r = record_put_string(event, "ended", "unreachable");

	sandbox_unwatch(sandbox, sandbox->socket_fd);
	close_fd(&sandbox->socket_fd);
	free(take_ptr(sandbox->parked));
	sandbox->is_over = true;
	if (r == 0)
		r = sandbox_queue(sandbox, event, false);
	else
		atoll_record_free(event);
	sandbox_wake(sandbox);
	return r < 0 ? fault_errno(error, r, "send") : 0;
}

static int set_failure(struct atoll_error *error, int r, const char *where)
{
	switch (r) {
	case -EAGAIN:
		return fault_set(error, ATOLL_E_AGAIN, EAGAIN, where, "the other end is not ready for that");
	case -EPIPE:
	case -ECONNRESET:
		return fault_set(error, ATOLL_E_GONE, -r, where, "the other end has hung up");
	default:
		return fault_errno(error, r, where);
	}
}

int atoll_send(atoll_sandbox *parked, int socket, struct atoll_error *error)
{
	cleanup_buf struct buf out = { 0 };
	int r = sandbox_check(parked, error);

	if (r == 0)
		r = check_peer(parked->context, socket, error);
	if (r < 0)
		return r;
	if (!parked->parked)
		return fault_set(error, ATOLL_E_BUSY, EBUSY, "send", "it is a sandbox already");
	if (parked->socket_fd < 0)
		return sandbox_set_gone(parked, error);
	buf_init(&out, MESSAGE_MAX);
	frame_begin(&out, LINK_PARKED);
	frame_put_string(&out, parked->id);
	frame_put_string(&out, parked->context->state);
	frame_put_bytes(&out, parked->parked->hash, parked->parked->has_hash ? sizeof parked->parked->hash : 0);
	frame_put_u64(&out, parked->parked->device);
	frame_put_u64(&out, parked->parked->inode);
	frame_put_u32(&out, parked->parked->is_ready);
	r = frame_end(&out);
	if (r == 0)
		r = frame_send(socket, &out, &parked->socket_fd, 1);
	return r < 0 ? set_failure(error, r, "send") : let_go(parked, error);
}

/* What was sent. *ret_id and *ret_state are borrowed from bytes. */
static int read_message(void *bytes, size_t size, struct parked *ret, const char **ret_id, const char **ret_state)
{
	struct parked parked = { 0 };
	struct frame frame;
	const void *hash;
	size_t hash_size;
	int r = frame_open(&frame, bytes, size);

	if (r < 0 || frame.type != LINK_PARKED)
		return -EBADMSG;
	*ret_id = frame_get_string(&frame);
	*ret_state = frame_get_string(&frame);
	hash = frame_get_bytes(&frame, &hash_size);
	parked.device = frame_get_u64(&frame);
	parked.inode = frame_get_u64(&frame);
	parked.is_ready = frame_get_u32(&frame);
	if (frame_finish(&frame) < 0 || !*ret_id || !*ret_state || !session_id_is_valid(*ret_id) ||
	    (hash_size && hash_size != sizeof parked.hash))
		return -EBADMSG;
	parked.has_hash = hash_size;
	memcpy(parked.hash, hash, hash_size);
	*ret = parked;
	return 0;
}

/* Takes fd. It has said already that it waits, to somebody else: said once more. */
static int adopt(struct atoll_context *context, const char *id, const struct parked *parked, int fd,
		 atoll_sandbox **ret)
{
	struct atoll_sandbox *sandbox;
	int r, socket_fd = fd_move_above(fd, 3);

	if (socket_fd < 0)
		return socket_fd;
	r = sandbox_new(context, id, socket_fd, &sandbox);
	if (r < 0)
		return r;
	sandbox->parked = malloc(sizeof *sandbox->parked);
	r = sandbox->parked ? 0 : -ENOMEM;
	if (r == 0)
		*sandbox->parked = *parked;
	if (r == 0 && parked->is_ready)
		r = sandbox_queue(sandbox, event_new(LINK_EVENT_PARKED, 0), false);
	if (r < 0) {
		atoll_sandbox_free(sandbox);
		return r;
	}
	sandbox_wake(sandbox);
	*ret = sandbox;
	return 0;
}

int atoll_receive(atoll_context *context, int socket, atoll_sandbox **ret, struct atoll_error *error)
{
	const char *id = NULL, *state = NULL;
	struct parked parked;
	char bytes[MESSAGE_MAX];
	size_t fd_count = 0;
	cleanup_fd int fd = FD_NONE;
	ssize_t size;
	int r = context_check(context, error);

	if (r == 0 && !ret)
		r = fault_set(error, ATOLL_E_INVALID, 0, "receive", "there is no place for a handle");
	if (r == 0)
		r = check_peer(context, socket, error);
	if (r < 0)
		return r;
	size = fd_receive_message(socket, bytes, sizeof bytes, &fd, 1, &fd_count);
	if (size <= 0)
		return set_failure(error, size < 0 ? (int)size : -EPIPE, "receive");
	if (fd_count != 1 || read_message(bytes, (size_t)size, &parked, &id, &state) < 0)
		return fault_set(error, ATOLL_E_PROTOCOL, EBADMSG, "receive", "this is no parked sandbox");
	if (!str_equal(state, context->state))
		return fault_set(error, ATOLL_E_CONFLICT, 0, "receive", "it is parked for other places");
	r = adopt(context, id, &parked, take_fd(&fd), ret);
	return r < 0 ? fault_errno(error, r, "receive") : 0;
}
