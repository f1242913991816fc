/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/messages.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/str.h"
#include "client/api/fault.h"
#include "client/api/job.h"
#include "client/api/output.h"
#include "client/api/record.h"
#include "client/api/rows.h"
#include "os/fd.h"
#include "session/control-socket.h"
#include "wire/control.h"

enum { MESSAGE_FDS = 4 };

_Static_assert((int)ATOLL_EVENT_END == (int)LINK_EVENT_END && (int)ATOLL_EVENT_LOG == (int)LINK_EVENT_LOG &&
		       (int)ATOLL_EVENT_DENIAL == (int)LINK_EVENT_DENIAL &&
		       (int)ATOLL_EVENT_PARKED == (int)LINK_EVENT_PARKED &&
		       (int)ATOLL_EVENT_WATCH == (int)LINK_EVENT_WATCH,
	       "events have the same numbers");

/* ---- the end ---- */

static void forget_socket(struct atoll_sandbox *sandbox)
{
	sandbox_unwatch(sandbox, sandbox->socket_fd);
	close_fd(&sandbox->socket_fd);
}

static int put_error(struct atoll_record *record, int code, const struct err *err)
{
	int r = record_put_u64(record, "code", (uint64_t)-code);

	if (r == 0)
		r = record_put_string(record, "where", err->stage);
	if (r == 0)
		r = record_put_string(record, "what", err->message);
	if (r == 0)
		r = record_put_string(record, "hint", err->hint);
	return r == 0 && err->errnum > 0 ? record_put_u64(record, "errno", (uint64_t)err->errnum) : r;
}

/* DONE of a request; takes result. */
static int queue_done(struct atoll_sandbox *sandbox, uint64_t ticket, int code, const struct err *err,
		      struct atoll_record *result)
{
	struct atoll_record *event = result ? result : record_new(ATOLL_RESULT);
	int r = record_put_u64(event, "event", ATOLL_EVENT_DONE);

	if (r == 0)
		r = record_put_u64(event, "ticket", ticket);
	if (r == 0)
		r = code ? put_error(event, code, err) : record_put_u64(event, "code", 0);
	if (r == 0)
		return sandbox_queue(sandbox, event, false);
	atoll_record_free(event);
	return r;
}

int sandbox_gone(const struct atoll_sandbox *sandbox, struct err *err)
{
	if (sandbox->refusal) {
		*err = sandbox->refusal->err;
		return sandbox->refusal->code;
	}
	err_set(err, ERR_STATE, ECONNRESET, "session", "the session has ended");
	return ATOLL_E_GONE;
}

/* No answer comes any more to what the box was asked. */
static int fail_pending(struct atoll_sandbox *sandbox, struct answer *answer)
{
	struct err err = { 0 };
	int r = 0, code = sandbox_gone(sandbox, &err);

	for (struct pending **at = &sandbox->pending; r == 0 && *at;) {
		struct pending *pending = *at;

		if (pending->job) {
			at = &pending->next;
			continue;
		}
		*at = pending->next;
		if (answer && answer->ticket == pending->ticket) {
			answer->is_there = true;
			answer->code = code;
			answer->err = err;
		} else {
			r = queue_done(sandbox, pending->ticket, code, &err, NULL);
		}
		pending_free(pending);
	}
	return r;
}

/* Without memory it looks as if the sandbox had ended. */
static void refuse_foreign(struct atoll_sandbox *sandbox)
{
	sandbox->refusal = sandbox->refusal ? sandbox->refusal : calloc(1, sizeof *sandbox->refusal);
	if (!sandbox->refusal)
		return;
	sandbox->refusal->code = ATOLL_E_PROTOCOL;
	err_set(&sandbox->refusal->err, ERR_STATE, EPROTO, "session",
		"session %s runs under another version of atoll, which does not understand this one", sandbox->id);
	err_hint(&sandbox->refusal->err,
		 "use the atoll that started it, or end it by a signal: `atoll ps --json` shows its pid");
}

/* A box that hung up without a greeting, and still takes clients, does not understand us. */
static bool lives_on(const struct atoll_sandbox *sandbox)
{
	cleanup_fd int fd = FD_NONE;

	if (sandbox->is_found && !sandbox->protocol)
		fd = control_socket_connect_in(sandbox->context->runtime, sandbox->id);
	return fd >= 0;
}

/* Whether any terminal is waited for. */
static bool release_places(struct atoll_sandbox *sandbox)
{
	bool had_reserved = false;

	for (struct streams *streams = sandbox->streams; streams; streams = streams->next) {
		had_reserved = had_reserved || streams->reserved[0] >= 0;
		streams_release(streams);
	}
	for (struct pending *pending = sandbox->pending; pending; pending = pending->next)
		if (pending->streams) {
			had_reserved = had_reserved || pending->streams->reserved[0] >= 0;
			streams_release(pending->streams);
		}
	return had_reserved;
}

/* event: of the box; NULL: it hung up without a word. */
static int conclude(struct atoll_sandbox *sandbox, struct atoll_record *event, struct answer *answer)
{
	int r = output_drain(sandbox);

	forget_socket(sandbox);
	(void)release_places(sandbox);
	if (!event && lives_on(sandbox) && !sandbox->refusal)
		refuse_foreign(sandbox);
	if (r == 0)
		r = fail_pending(sandbox, answer);
	if (!event) {
		event = event_new(LINK_EVENT_END, 0);
		if (r == 0)
			r = record_put_string(event, "ended", sandbox->refusal      ? "unreachable"
							      : sandbox->has_failed ? "failed" : "lost");
	}
	if (r < 0) {
		atoll_record_free(event);
		return r;
	}
	sandbox->is_over = true;
	return sandbox_queue(sandbox, event, false);
}

/* ---- events ---- */

static int add_fields(struct frame *frame, struct atoll_record *record)
{
	struct field field = { 0 };
	int r;

	while ((r = field_get(frame, &field)) == 1) {
		/* The numbers of events are atoll.h's own name for this. */
		if (str_equal(field.key, "event"))
			field.key = "of";
		r = record_add_field(record, &field);
		field_done(&field);
		if (r < 0)
			return r;
	}
	return r;
}

static int fail_code(struct atoll_record *event)
{
	const char *what = record_string(event, "what"), *where = record_string(event, "where");
	const char *hint = record_string(event, "hint");
	struct err err = { 0 };
	uint64_t code = 0, errnum = 0;

	(void)record_u64(event, "code", &code);
	(void)record_u64(event, "errno", &errnum);
	err_set(&err, code < ERR_CODE_COUNT ? (enum err_code)code : ERR_INTERNAL, (int)errnum, where ? where : "start",
		"%s", what ? what : "the sandbox cannot be started");
	err_hint(&err, "%s", hint ? hint : "");
	return record_put_u64(event, "code", (uint64_t)-fault_from_err(NULL, &err));
}

/* There was no room here for the descriptor that came with it: its terminal hangs up. */
static int put_no_room(struct atoll_record *event)
{
	int r = record_put_u64(event, "code", (uint64_t)-ATOLL_E_LIMIT);

	return r == 0 ? record_put_u64(event, "errno", EMFILE) : r;
}

/* *fd: -EMFILE: there was one. */
static int take_event(struct atoll_sandbox *sandbox, struct frame *frame, int *fd, struct answer *answer)
{
	uint64_t number = frame_get_u64(frame);
	uint32_t type = frame_get_u32(frame);
	struct atoll_record *event = event_new((enum link_event)type, number);
	int r = event ? add_fields(frame, event) : -ENOMEM;

	if (r == 0 && *fd >= 0)
		r = record_put_fd(event, "terminal", take_fd(fd));
	else if (r == 0 && *fd == -EMFILE)
		r = put_no_room(event);
	if (type == LINK_EVENT_PARKED && sandbox->parked)
		sandbox->parked->is_ready = true;
	if (r == 0 && type == LINK_EVENT_STARTED)
		r = streams_start(sandbox, event);
	if (r == 0 && type == LINK_EVENT_EXIT)
		r = streams_end(sandbox, event);
	if (r == 0 && type == LINK_EVENT_FAILED) {
		r = fail_code(event);
		sandbox->has_failed = true;
	}
	if (r < 0) {
		atoll_record_free(event);
		return r;
	}
	return type == LINK_EVENT_END ? conclude(sandbox, event, answer) : sandbox_queue(sandbox, event, number != 0);
}

/* ---- replies ---- */

static void read_error(const struct atoll_record *record, uint32_t code, struct err *err)
{
	const char *where = record_string(record, "where"), *what = record_string(record, "what");
	const char *hint = record_string(record, "hint");
	uint64_t errnum = 0;

	(void)record_u64(record, "errno", &errnum);
	err_set(err, code < ERR_CODE_COUNT ? (enum err_code)code : ERR_INTERNAL, (int)errnum, where ? where : "session",
		"%s", what ? what : "the request was refused");
	err_hint(err, "%s", hint ? hint : "");
}

/* The result of a request is with whom waits for it, or an event. Takes result. */
static int deliver(struct atoll_sandbox *sandbox, struct answer *answer, const struct answer *made)
{
	if (!answer || answer->ticket != made->ticket)
		return queue_done(sandbox, made->ticket, made->code, &made->err, made->result);
	*answer = *made;
	answer->is_there = true;
	return 0;
}

/* A command runs: its streams are known by its number from now on. */
static int take_streams(struct atoll_sandbox *sandbox, struct pending *pending, struct atoll_record *result)
{
	struct streams *streams = pending->streams;

	if (!streams || !record_u64(result, "command", &streams->command))
		return 0;
	pending->streams = NULL;
	streams->next = sandbox->streams;
	sandbox->streams = streams;
	return streams_hand_out(streams, result);
}

/* Descriptors by name: each that it counts has come, or there was no room for them here. */
static int add_reply_fields(struct frame *frame, int *fds, struct atoll_record *record)
{
	struct field field = { 0 };
	int r;

	while ((r = field_get(frame, &field)) == 1) {
		if (field.kind != FIELD_FD)
			r = record_add_field(record, &field);
		else if (field.number >= MESSAGE_FDS || fds[field.number] < 0)
			r = -EMFILE;
		else
			r = record_put_fd(record, field.key, take_fd(&fds[field.number]));
		field_done(&field);
		if (r < 0)
			return r;
	}
	return r;
}

static int take_reply(struct atoll_sandbox *sandbox, struct frame *frame, int *fds, struct answer *answer)
{
	struct answer made = { .ticket = frame_get_u64(frame) };
	uint32_t code = frame_get_u32(frame);
	struct pending *pending = sandbox_take_pending(sandbox, made.ticket);
	int r;

	if (!pending) /* it was given up */
		return 0;
	made.result = record_new(ATOLL_RESULT);
	r = made.result ? add_reply_fields(frame, fds, made.result) : -ENOMEM;
	if (r == -EMFILE) {
		err_set(&made.err, ERR_STATE, EMFILE, "session", "there is no room for the descriptors of the answer");
		made.code = fault_from_err(NULL, &made.err);
		atoll_record_free(made.result);
		made.result = NULL;
		r = 0;
	} else if (r == 0 && code) {
		read_error(made.result, code, &made.err);
		made.code = fault_from_err(NULL, &made.err);
		atoll_record_free(made.result);
		made.result = NULL;
	} else if (r == 0) {
		r = take_streams(sandbox, pending, made.result);
	}
	pending_free(pending);
	if (r < 0)
		atoll_record_free(made.result);
	return r < 0 ? r : deliver(sandbox, answer, &made);
}

/* What a box says to one too many, which is all that it says. */
static int take_refusal(struct atoll_sandbox *sandbox, struct frame *frame, struct answer *answer)
{
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);
	struct err *err;

	if (frame_finish(frame) < 0 || size != sizeof *err || sandbox->refusal)
		return -EPROTO;
	sandbox->refusal = calloc(1, sizeof *sandbox->refusal);
	if (!sandbox->refusal)
		return -ENOMEM;
	err = &sandbox->refusal->err;
	sandbox->refusal->code = ATOLL_E_LIMIT;
	memcpy(err, bytes, size);
	err->message[sizeof err->message - 1] = err->hint[sizeof err->hint - 1] = err->stage[sizeof err->stage - 1] = 0;
	if ((unsigned)err->code >= ERR_CODE_COUNT)
		err->code = ERR_STATE;
	return conclude(sandbox, NULL, answer);
}

/* Which protocol is spoken; the one to blame is whoever is older. */
static int take_welcome(struct atoll_sandbox *sandbox, struct frame *frame, struct answer *answer)
{
	uint32_t protocol = frame_get_u32(frame);

	if (frame->error)
		return -EBADMSG;
	sandbox->protocol = protocol;
	if (protocol >= LINK_PROTOCOL_LOWEST && protocol <= LINK_PROTOCOL &&
	    (protocol >= OWN_COMMANDS_PROTOCOL || !sandbox->context->own_commands))
		return 0;
	refuse_foreign(sandbox);
	return conclude(sandbox, NULL, answer);
}

/* ---- steps ---- */

static int take_message(struct atoll_sandbox *sandbox, void *bytes, size_t size, int *fd, struct answer *answer)
{
	struct frame frame;
	int r = frame_open(&frame, bytes, size);

	if (r < 0)
		return r;
	switch (frame.type) {
	case LINK_EVENT:
		return sandbox->is_over ? 0 : take_event(sandbox, &frame, fd, answer);
	case LINK_REPLY:
		return take_reply(sandbox, &frame, fd, answer);
	case CONTROL_ERROR:
		return take_refusal(sandbox, &frame, answer);
	case LINK_WELCOME:
		return take_welcome(sandbox, &frame, answer);
	default:
		return 0; /* what a newer box may say */
	}
}

/* Those that have not come yet. Another thread may have been faster: then STARTED says so. */
static void take_places(struct atoll_sandbox *sandbox)
{
	for (struct streams *streams = sandbox->streams; streams; streams = streams->next)
		if (streams->is_pty && streams->terminal_fd < 0)
			(void)!streams_reserve(streams);
	for (struct pending *pending = sandbox->pending; pending; pending = pending->next)
		if (pending->streams && pending->streams->is_pty)
			(void)!streams_reserve(pending->streams);
}

static int step_socket(struct atoll_sandbox *sandbox, struct answer *answer)
{
	int fds[MESSAGE_FDS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE }, r;
	ssize_t size = recv(sandbox->socket_fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	cleanup_free void *bytes = NULL;
	size_t length, fd_count;
	bool had_reserved;

	/* The box ended before it read what we sent: said once, and before its last words, which come all the same. */
	if (size < 0 && errno == ECONNRESET)
		size = recv(sandbox->socket_fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (size <= 0 || size > FRAME_MESSAGE_MAX) {
		r = conclude(sandbox, NULL, answer);
		return r < 0 ? r : 1;
	}
	bytes = malloc((size_t)size);
	if (!bytes)
		return -ENOMEM;
	length = (size_t)size;
	had_reserved = release_places(sandbox);
	size = fd_receive_message(sandbox->socket_fd, bytes, length, fds, MESSAGE_FDS, &fd_count);
	if (size == -ECONNRESET)
		size = fd_receive_message(sandbox->socket_fd, bytes, length, fds, MESSAGE_FDS, &fd_count);
	/* Descriptors came for which there was no room here; what they came with is in bytes all the same. */
	if (size == -EMSGSIZE) {
		fds[0] = -EMFILE;
		size = (ssize_t)length;
	}
	r = size < 0 ? conclude(sandbox, NULL, answer)
		     : take_message(sandbox, bytes, (size_t)size, &fds[0], answer);
	for (int i = 0; i < MESSAGE_FDS; i++)
		close_fd(&fds[i]);
	if (had_reserved)
		take_places(sandbox);
	if (r == -EBADMSG || r == -EPROTO)
		r = conclude(sandbox, NULL, answer);
	return r < 0 ? r : 1;
}

static int step_job(struct atoll_sandbox *sandbox, struct pending *pending, struct answer *answer)
{
	struct job_result result = { 0 };
	struct answer made = { .ticket = pending->ticket };
	struct atoll_error error = { .size = sizeof error };
	int r = job_look(pending->job, &result);

	if (r == 0)
		return 0;
	if (r < 0) {
		err_set(&result.err, ERR_INTERNAL, -r, "job", "atoll gave no answer: %s", err_errno_name(-r));
		result.status = 125;
	}
	made.code = job_status(&result, &error);
	made.err = result.err;
	if (made.code && made.err.code == ERR_NONE)
		err_set(&made.err, ERR_STATE, 0, error.where, "%s", error.what);
	if (made.code == 0)
		made.result = rows_result(&result, pending->job->result_key);
	r = made.code == 0 && !made.result ? -ENOMEM : 0;
	sandbox_unwatch(sandbox, pending->job->fd);
	(void)sandbox_take_pending(sandbox, pending->ticket);
	pending_free(pending);
	job_result_done(&result);
	return r < 0 ? r : deliver(sandbox, answer, &made) < 0 ? -ENOMEM : 1;
}

static int step_fd(struct atoll_sandbox *sandbox, int fd, struct answer *answer)
{
	if (fd == sandbox->socket_fd)
		return step_socket(sandbox, answer);
	for (struct streams *streams = sandbox->streams; streams; streams = streams->next)
		for (int which = 1; streams->is_captured && which <= 2; which++)
			if (streams->fds[which] == fd)
				return output_read(sandbox, streams, which) < 0 ? -ENOMEM : 1;
	for (struct pending *pending = sandbox->pending; pending; pending = pending->next)
		if (pending->job && pending->job->fd == fd)
			return step_job(sandbox, pending, answer);
	return 0;
}

static int wait_and_step(struct atoll_sandbox *sandbox, struct answer *answer, int timeout_ms)
{
	struct epoll_event events[8];
	int count = epoll_wait(sandbox->epoll_fd, events, (int)ARRAY_SIZE(events), timeout_ms);

	for (int i = 0; i < count; i++) {
		int fd = events[i].data.fd, r = fd == sandbox->wake_fd ? 0 : step_fd(sandbox, fd, answer);

		if (r != 0)
			return r;
	}
	return count < 0 && errno != EINTR ? -errno : 0;
}

/* Then whoever does not wait need not be told where something is. */
static bool reads_socket_alone(const struct atoll_sandbox *sandbox)
{
	const struct streams *streams = sandbox->streams;
	const struct pending *pending = sandbox->pending;

	while (streams && !streams->is_captured)
		streams = streams->next;
	while (pending && !pending->job)
		pending = pending->next;
	return !streams && !pending && sandbox->socket_fd >= 0;
}

int sandbox_step(struct atoll_sandbox *sandbox, struct answer *answer, int timeout_ms)
{
	if (timeout_ms == 0 && reads_socket_alone(sandbox))
		return step_socket(sandbox, answer);
	return wait_and_step(sandbox, answer, timeout_ms);
}
