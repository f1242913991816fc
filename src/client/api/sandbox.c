/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/sandbox.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/str.h"
#include "client/api/fault.h"
#include "client/api/job.h"
#include "client/api/record.h"
#include "client/api/rows.h"
#include "os/fd.h"
#include "wire/control.h"

/*
 * Theory of operation. The caller polls one descriptor, an epoll of what is read for a handle: the socket to the box,
 * the outputs that it captures, the jobs that it waits for, and an eventfd while events are queued, which happens only
 * where a request had to wait. Nothing is read ahead: one step takes one message. The box sends an event only where it
 * has credit for it, which is given back when the caller took the event, so that the queue is bounded, too.
 */

enum { READ_SIZE = 32 << 10, CREDIT_STEP = 16, MESSAGE_FDS = 4 };

_Static_assert((int)ATOLL_EVENT_END == (int)LINK_EVENT_END && (int)ATOLL_EVENT_LOG == (int)LINK_EVENT_LOG &&
		       (int)ATOLL_EVENT_DENIAL == (int)LINK_EVENT_DENIAL,
	       "events have the same numbers");

void streams_free(struct streams *streams)
{
	if (!streams)
		return;
	for (int i = 0; i < 3; i++)
		close_fd(&streams->fds[i]);
	close_fd(&streams->terminal_fd);
	free(streams);
}

int sandbox_watch(struct atoll_sandbox *sandbox, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(sandbox->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* It may be shared with a child behind fork(2), in which case closing alone would not take it out. */
static void unwatch(struct atoll_sandbox *sandbox, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(sandbox->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

struct atoll_sandbox *sandbox_new(struct atoll_context *context, const char *id, int socket_fd)
{
	struct atoll_sandbox *sandbox = calloc(1, sizeof *sandbox);

	if (!sandbox) {
		close_fd(&socket_fd);
		return NULL;
	}
	sandbox->context = context_ref(context);
	memcpy(sandbox->id, id, SESSION_ID_SIZE);
	sandbox->socket_fd = socket_fd;
	sandbox->wake_fd = FD_NONE;
	sandbox->last = &sandbox->first;
	sandbox->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (sandbox->epoll_fd >= 0)
		sandbox->epoll_fd = fd_move_above(sandbox->epoll_fd, 3);
	if (sandbox->epoll_fd >= 0 && (socket_fd < 0 || sandbox_watch(sandbox, socket_fd) == 0))
		return sandbox;
	atoll_sandbox_free(sandbox);
	return NULL;
}

static void pending_free(struct pending *pending)
{
	streams_free(pending->streams);
	job_free(pending->job);
	free(pending);
}

static struct atoll_record *take_first(struct atoll_sandbox *sandbox, bool *ret_has_credit)
{
	struct queued *queued = sandbox->first;
	struct atoll_record *event = queued->event;

	*ret_has_credit = queued->has_credit;
	sandbox->first = queued->next;
	if (!sandbox->first)
		sandbox->last = &sandbox->first;
	free(queued);
	return event;
}

void atoll_sandbox_free(atoll_sandbox *sandbox)
{
	bool has_credit;

	if (!sandbox)
		return;
	while (sandbox->first)
		atoll_record_free(take_first(sandbox, &has_credit));
	while (sandbox->pending) {
		struct pending *pending = sandbox->pending;

		sandbox->pending = pending->next;
		pending_free(pending);
	}
	while (sandbox->streams) {
		struct streams *streams = sandbox->streams;

		sandbox->streams = streams->next;
		streams_free(streams);
	}
	close_fd(&sandbox->socket_fd);
	close_fd(&sandbox->wake_fd);
	close_fd(&sandbox->epoll_fd);
	atoll_context_free(sandbox->context);
	free(sandbox);
}

int sandbox_check(const struct atoll_sandbox *sandbox, struct atoll_error *error)
{
	return context_check(sandbox ? sandbox->context : NULL, error);
}

const char *atoll_id(const atoll_sandbox *sandbox)
{
	return sandbox ? sandbox->id : NULL;
}

int atoll_fd(const atoll_sandbox *sandbox)
{
	return sandbox ? sandbox->epoll_fd : ATOLL_E_INVALID;
}

/* ---- the queue ---- */

int sandbox_queue(struct atoll_sandbox *sandbox, struct atoll_record *event, bool has_credit)
{
	struct queued *queued = event ? malloc(sizeof *queued) : NULL;

	if (!queued) {
		atoll_record_free(event);
		return -ENOMEM;
	}
	*queued = (struct queued){ .event = event, .has_credit = has_credit };
	*sandbox->last = queued;
	sandbox->last = &queued->next;
	return 0;
}

int sandbox_wake(struct atoll_sandbox *sandbox)
{
	uint64_t value = 1;

	if (sandbox->first && sandbox->wake_fd < 0) {
		int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		fd = fd < 0 ? -errno : fd_move_above(fd, 3);
		if (fd < 0)
			return fd;
		sandbox->wake_fd = fd;
		return write(fd, &value, sizeof value) < 0 ? -errno : sandbox_watch(sandbox, fd);
	}
	if (!sandbox->first && sandbox->wake_fd >= 0) {
		unwatch(sandbox, sandbox->wake_fd);
		close_fd(&sandbox->wake_fd);
	}
	return 0;
}

static struct atoll_record *new_event(enum link_event type, uint64_t number)
{
	struct atoll_record *event = record_new(ATOLL_EVENT);

	if (record_put_u64(event, "event", type) == 0 && record_put_u64(event, "number", number) == 0)
		return event;
	atoll_record_free(event);
	return NULL;
}

/* ---- the end ---- */

static void forget_socket(struct atoll_sandbox *sandbox)
{
	unwatch(sandbox, sandbox->socket_fd);
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

static int drain_all(struct atoll_sandbox *sandbox);

/* No answer comes any more to what the box was asked. */
static int fail_pending(struct atoll_sandbox *sandbox, struct answer *answer)
{
	struct err err = { 0 };
	int r = 0;

	err_set(&err, ERR_STATE, ECONNRESET, "session", "the sandbox has ended");
	for (struct pending **at = &sandbox->pending; r == 0 && *at;) {
		struct pending *pending = *at;

		if (pending->job) {
			at = &pending->next;
			continue;
		}
		*at = pending->next;
		if (answer && answer->ticket == pending->ticket) {
			answer->is_there = true;
			answer->code = ATOLL_E_GONE;
			answer->err = err;
		} else {
			r = queue_done(sandbox, pending->ticket, ATOLL_E_GONE, &err, NULL);
		}
		pending_free(pending);
	}
	return r;
}

/* event: of the box; NULL: it hung up without a word. */
static int conclude(struct atoll_sandbox *sandbox, struct atoll_record *event, struct answer *answer)
{
	int r = drain_all(sandbox);

	forget_socket(sandbox);
	if (r == 0)
		r = fail_pending(sandbox, answer);
	if (!event) {
		event = new_event(LINK_EVENT_END, 0);
		if (r == 0)
			r = record_put_string(event, "ended", sandbox->has_failed ? "failed" : "lost");
	}
	if (r < 0) {
		atoll_record_free(event);
		return r;
	}
	sandbox->is_over = true;
	return sandbox_queue(sandbox, event, false);
}

/* ---- captured output ---- */

static int queue_output(struct atoll_sandbox *sandbox, const struct streams *streams, int which, const void *bytes,
			size_t size)
{
	struct atoll_record *event = new_event(LINK_EVENT_OUTPUT, 0);
	int r = record_put_u64(event, "command", streams->command);

	if (r == 0)
		r = record_put_u64(event, "stream", (uint64_t)which);
	if (r == 0)
		r = record_put_bytes(event, "bytes", bytes, size);
	if (r == 0)
		return sandbox_queue(sandbox, event, false);
	atoll_record_free(event);
	return r;
}

/* 1: something was there; 0: nothing now, or the end, where it is closed. */
static int read_output(struct atoll_sandbox *sandbox, struct streams *streams, int which)
{
	char *bytes = malloc(READ_SIZE);
	ssize_t n;
	int r;

	if (!bytes)
		return -ENOMEM;
	do
		n = read(streams->fds[which], bytes, READ_SIZE);
	while (n < 0 && errno == EINTR);
	r = n > 0 ? queue_output(sandbox, streams, which, bytes, (size_t)n) : 0;
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		unwatch(sandbox, streams->fds[which]);
		close_fd(&streams->fds[which]);
	}
	free(bytes);
	return r < 0 ? r : n > 0;
}

static int drain(struct atoll_sandbox *sandbox, struct streams *streams)
{
	int r = 0;

	for (int which = 1; streams->is_captured && r >= 0 && which <= 2; which++) {
		r = streams->fds[which] >= 0;
		while (r == 1 && streams->fds[which] >= 0)
			r = read_output(sandbox, streams, which);
	}
	return r < 0 ? r : 0;
}

static int drain_all(struct atoll_sandbox *sandbox)
{
	int r = 0;

	for (struct streams *streams = sandbox->streams; r == 0 && streams; streams = streams->next)
		r = drain(sandbox, streams);
	return r;
}

/* ---- messages ---- */

static struct streams *find_streams(const struct atoll_sandbox *sandbox, uint64_t command)
{
	struct streams *streams = sandbox->streams;

	while (streams && streams->command != command)
		streams = streams->next;
	return streams;
}

/* Our ends of a command's pipes go to the caller. */
static int hand_out(struct streams *streams, struct atoll_record *record)
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	int r = 0;

	for (int i = 0; r == 0 && streams && !streams->is_captured && i < 3; i++)
		if (streams->fds[i] >= 0)
			r = record_put_fd(record, names[i], take_fd(&streams->fds[i]));
	return r;
}

/* A terminal's size may be changed later; the pipes of the sandbox's own command had no reply to come with. */
static int take_started(struct atoll_sandbox *sandbox, struct atoll_record *event)
{
	struct streams *streams;
	uint64_t command = 0, is_main = 0;
	int fd = record_fd(event, "terminal"), r = 0;

	(void)record_u64(event, "command", &command);
	(void)record_u64(event, "main", &is_main);
	streams = find_streams(sandbox, command);
	if (!streams)
		return 0;
	if (fd >= 0)
		streams->terminal_fd = fd_duplicate(fd);
	/* Only from here on: what a command writes comes behind the word that it runs. */
	for (int i = 1; r == 0 && streams->is_captured && i <= 2; i++)
		if (streams->fds[i] >= 0)
			r = sandbox_watch(sandbox, streams->fds[i]);
	return r == 0 && is_main ? hand_out(streams, event) : r;
}

static void forget_streams(struct atoll_sandbox *sandbox, struct streams *gone)
{
	for (struct streams **at = &sandbox->streams; *at; at = &(*at)->next) {
		if (*at != gone)
			continue;
		*at = gone->next;
		for (int i = 0; gone->is_captured && i < 3; i++)
			unwatch(sandbox, gone->fds[i]);
		streams_free(gone);
		return;
	}
}

/* What it wrote comes before its end. */
static int take_exit(struct atoll_sandbox *sandbox, const struct atoll_record *event)
{
	struct streams *streams;
	uint64_t command = 0;
	int r;

	(void)record_u64(event, "command", &command);
	streams = find_streams(sandbox, command);
	if (!streams)
		return 0;
	r = drain(sandbox, streams);
	forget_streams(sandbox, streams);
	return r;
}

static int add_fields(struct frame *frame, struct atoll_record *record)
{
	struct field field = { 0 };
	int r;

	while ((r = field_get(frame, &field)) == 1) {
		/* The numbers of events are atoll.h's own name for this. */
		if (str_equal(field.key, "event"))
			field.key = "of";
		r = record_add_field(record, &field);
		if (field.kind == FIELD_STRINGS)
			free(field.strings);
		if (r < 0)
			return r;
		field = (struct field){ 0 };
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
		"%s", what ? what : "it cannot be started");
	err_hint(&err, "%s", hint ? hint : "");
	return record_put_u64(event, "code", (uint64_t)-fault_from_err(NULL, &err));
}

static int take_event(struct atoll_sandbox *sandbox, struct frame *frame, int *fd, struct answer *answer)
{
	uint64_t number = frame_get_u64(frame);
	uint32_t type = frame_get_u32(frame);
	struct atoll_record *event = new_event((enum link_event)type, number);
	int r = event ? add_fields(frame, event) : -ENOMEM;

	if (r == 0 && *fd >= 0)
		r = record_put_fd(event, "terminal", take_fd(fd));
	if (r == 0 && type == LINK_EVENT_STARTED)
		r = take_started(sandbox, event);
	if (r == 0 && type == LINK_EVENT_EXIT)
		r = take_exit(sandbox, event);
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

static struct pending *take_pending(struct atoll_sandbox *sandbox, uint64_t ticket)
{
	for (struct pending **at = &sandbox->pending; *at; at = &(*at)->next)
		if ((*at)->ticket == ticket) {
			struct pending *pending = *at;

			*at = pending->next;
			return pending;
		}
	return NULL;
}

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
	return hand_out(streams, result);
}

static int take_reply(struct atoll_sandbox *sandbox, struct frame *frame, struct answer *answer)
{
	struct answer made = { .ticket = frame_get_u64(frame) };
	uint32_t code = frame_get_u32(frame);
	struct pending *pending = take_pending(sandbox, made.ticket);
	int r;

	if (!pending) /* it was given up */
		return 0;
	made.result = record_new(ATOLL_RESULT);
	r = made.result ? add_fields(frame, made.result) : -ENOMEM;
	if (r == 0 && code) {
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

/* What a box says to one too many. */
static int take_refusal(struct atoll_sandbox *sandbox, struct frame *frame, struct answer *answer)
{
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);
	struct answer made = { .code = ATOLL_E_LIMIT };

	if (frame_finish(frame) < 0 || size != sizeof made.err)
		return -EPROTO;
	memcpy(&made.err, bytes, size);
	made.err.message[sizeof made.err.message - 1] = made.err.hint[sizeof made.err.hint - 1] =
		made.err.stage[sizeof made.err.stage - 1] = 0;
	if (!answer || !sandbox->pending)
		return 0;
	made.ticket = answer->ticket;
	return deliver(sandbox, answer, &made);
}

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
		return take_reply(sandbox, &frame, answer);
	case CONTROL_ERROR:
		return take_refusal(sandbox, &frame, answer);
	default:
		return 0; /* LINK_WELCOME, and what a newer box may say */
	}
}

static int step_socket(struct atoll_sandbox *sandbox, struct answer *answer)
{
	int fds[MESSAGE_FDS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE }, r;
	ssize_t size = recv(sandbox->socket_fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	cleanup_free void *bytes = NULL;
	size_t length, fd_count;

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
	size = fd_receive_message(sandbox->socket_fd, bytes, length, fds, MESSAGE_FDS, &fd_count);
	if (size == -ECONNRESET)
		size = fd_receive_message(sandbox->socket_fd, bytes, length, fds, MESSAGE_FDS, &fd_count);
	/* -EMSGSIZE: descriptors came for which there was no room here; what they came with went with them. */
	r = size == -EMSGSIZE ? sandbox_queue(sandbox, new_event(LINK_EVENT_LOST, 0), false)
	    : size < 0	      ? conclude(sandbox, NULL, answer)
			      : take_message(sandbox, bytes, (size_t)size, &fds[0], answer);
	for (int i = 0; i < MESSAGE_FDS; i++)
		close_fd(&fds[i]);
	if (r == -EBADMSG || r == -EPROTO)
		r = conclude(sandbox, NULL, answer);
	return r < 0 ? r : 1;
}

/* ---- jobs ---- */

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
	unwatch(sandbox, pending->job->fd);
	(void)take_pending(sandbox, pending->ticket);
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
				return read_output(sandbox, streams, which) < 0 ? -ENOMEM : 1;
	for (struct pending *pending = sandbox->pending; pending; pending = pending->next)
		if (pending->job && pending->job->fd == fd)
			return step_job(sandbox, pending, answer);
	return 0;
}

static int step(struct atoll_sandbox *sandbox, struct answer *answer, int timeout_ms)
{
	struct epoll_event events[8];
	int count = epoll_wait(sandbox->epoll_fd, events, (int)ARRAY_SIZE(events), timeout_ms);

	for (int i = 0; i < count; i++) {
		int r = events[i].data.fd == sandbox->wake_fd ? 0 : step_fd(sandbox, events[i].data.fd, answer);

		if (r != 0)
			return r;
	}
	return count < 0 && errno != EINTR ? -errno : 0;
}

int sandbox_step(struct atoll_sandbox *sandbox, struct answer *answer)
{
	return step(sandbox, answer, 0);
}

/* ---- events for the caller ---- */

static void return_credit(struct atoll_sandbox *sandbox, bool has_credit)
{
	cleanup_buf struct buf out;

	buf_init(&out, 256);
	sandbox->credit += has_credit;
	if (sandbox->credit < CREDIT_STEP || sandbox->socket_fd < 0)
		return;
	frame_begin(&out, LINK_CREDIT);
	frame_put_u32(&out, sandbox->credit);
	/* What the box cannot hear now is said with the next event. */
	if (frame_end(&out) == 0 && frame_send(sandbox->socket_fd, &out, NULL, 0) == 0)
		sandbox->credit = 0;
}

int atoll_next(atoll_sandbox *sandbox, atoll_record **ret, struct atoll_error *error)
{
	bool has_credit;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (!ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "next", "there is no place for an event");
	while (!sandbox->first && (r = sandbox_step(sandbox, NULL)) == 1)
		continue;
	if (r < 0)
		return fault_errno(error, r, "next");
	if (!sandbox->first)
		return 0;
	*ret = take_first(sandbox, &has_credit);
	return_credit(sandbox, has_credit);
	r = sandbox_wake(sandbox);
	return r < 0 ? fault_errno(error, r, "next") : 1;
}

static int left_ms(uint64_t until_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	return until_ns == UINT64_MAX ? -1 : now_ns >= until_ns ? 0 : (int)((until_ns - now_ns) / 1000000 + 1);
}

static uint64_t until(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : clock_monotonic_ns() + (uint64_t)timeout_ms * 1000000;
}

static int wait_for(int fd, short events, uint64_t until_ns)
{
	struct pollfd waited = { .fd = fd, .events = events };
	int r = poll(&waited, 1, left_ms(until_ns));

	return r < 0 && errno == EINTR ? 1 : r < 0 ? -errno : r;
}

int atoll_wait(atoll_sandbox *sandbox, int timeout_ms, atoll_record **ret, struct atoll_error *error)
{
	uint64_t until_ns = until(timeout_ms);
	int r = atoll_next(sandbox, ret, error), waited;

	while (r == 0 && !sandbox->is_over) {
		waited = wait_for(sandbox->epoll_fd, POLLIN, until_ns);
		if (waited < 0)
			return fault_errno(error, waited, "wait");
		r = atoll_next(sandbox, ret, error);
		if (waited == 0)
			return r;
	}
	return r;
}

/* ---- requests ---- */

uint64_t sandbox_begin(struct atoll_sandbox *sandbox, struct buf *out, enum link_message type)
{
	buf_init(out, FRAME_MESSAGE_MAX);
	frame_begin(out, (uint16_t)type);
	frame_put_u64(out, ++sandbox->next_ticket);
	return sandbox->next_ticket;
}

int sandbox_send(struct atoll_sandbox *sandbox, const struct buf *out, const int *fds, size_t fd_count,
		 struct atoll_error *error)
{
	int r = sandbox->socket_fd < 0 ? -EPIPE : frame_send(sandbox->socket_fd, out, fds, fd_count);

	switch (r) {
	case 0:
		return 0;
	case -EPIPE:
	case -ECONNRESET:
		return fault_set(error, ATOLL_E_GONE, -r, "session", "the sandbox has ended");
	case -EAGAIN:
	case -ETOOMANYREFS:
		return fault_set(error, ATOLL_E_AGAIN, -r, "session", "the sandbox has not read what was sent before");
	case -EMSGSIZE:
	case -ENOBUFS:
		return fault_set(error, ATOLL_E_LIMIT, -r, "session", "the request is larger than %d bytes",
				 FRAME_MESSAGE_MAX);
	default:
		return fault_errno(error, r, "session");
	}
}

int sandbox_await(struct atoll_sandbox *sandbox, uint64_t ticket, struct atoll_record **ret,
		  struct atoll_error *error)
{
	uint64_t until_ns = until(sandbox->context->timeout_ms);
	struct answer answer = { .ticket = ticket };
	int r = 0;

	while (r >= 0 && !answer.is_there && left_ms(until_ns)) {
		/* The eventfd is readable as long as events wait: only what brings the answer is waited for. */
		unwatch(sandbox, sandbox->wake_fd);
		close_fd(&sandbox->wake_fd);
		r = step(sandbox, &answer, left_ms(until_ns));
	}
	if (r >= 0)
		r = sandbox_wake(sandbox);
	if (r < 0) {
		atoll_record_free(answer.result);
		return fault_errno(error, r, "session");
	}
	if (!answer.is_there) {
		struct pending *pending = take_pending(sandbox, ticket);

		if (pending)
			pending_free(pending);
		return fault_set(error, ATOLL_E_TIMEOUT, ETIMEDOUT, "session", "the sandbox did not answer in %d ms",
				 sandbox->context->timeout_ms);
	}
	if (answer.code < 0)
		return fault_from_err(error, &answer.err) == answer.code ? answer.code : fault_code(error, answer.code);
	if (ret)
		*ret = answer.result;
	else
		atoll_record_free(answer.result);
	return 0;
}

static int send_waiting(struct atoll_sandbox *sandbox, const struct request *request, bool may_wait,
			struct atoll_error *error)
{
	uint64_t until_ns = until(sandbox->context->timeout_ms);
	int r = sandbox_send(sandbox, request->out, request->fds, request->fd_count, error);

	while (may_wait && r == ATOLL_E_AGAIN && wait_for(sandbox->socket_fd, POLLOUT, until_ns) == 1)
		r = sandbox_send(sandbox, request->out, request->fds, request->fd_count, error);
	return r;
}

int sandbox_request(struct atoll_sandbox *sandbox, struct request *request, uint64_t *ticket,
		    struct atoll_record **result, struct atoll_error *error)
{
	struct pending *pending = calloc(1, sizeof *pending);
	int r = pending ? 0 : -ENOMEM;

	if (r == 0)
		*pending = (struct pending){ .ticket = request->ticket, .job = request->job,
					     .streams = request->streams };
	if (r == 0 && request->out)
		r = frame_end(request->out);
	if (r == 0 && request->job)
		r = sandbox_watch(sandbox, request->job->fd);
	if (r < 0)
		r = fault_errno(error, r, "session");
	else if (request->out)
		r = send_waiting(sandbox, request, !ticket, error);
	if (request->out)
		buf_done(request->out);
	if (r < 0) {
		streams_free(request->streams);
		job_free(request->job);
		free(pending);
		return r;
	}
	pending->next = sandbox->pending;
	sandbox->pending = pending;
	if (!ticket)
		return sandbox_await(sandbox, request->ticket, result, error);
	*ticket = request->ticket;
	return 0;
}

/* ---- the greeting ---- */

int sandbox_greet(struct atoll_sandbox *sandbox, struct atoll_error *error)
{
	uint64_t mask = (UINT64_C(1) << LINK_EVENT_COUNT) - 1;
	cleanup_buf struct buf hello, out;
	int r;

	if (!sandbox->context->wants_log)
		mask &= ~(UINT64_C(1) << LINK_EVENT_LOG);
	buf_init(&hello, 256);
	frame_begin(&hello, LINK_HELLO);
	frame_put_u32(&hello, LINK_PROTOCOL);
	frame_put_u32(&hello, LINK_PROTOCOL);
	(void)sandbox_begin(sandbox, &out, LINK_SUBSCRIBE);
	frame_put_u64(&out, mask);
	r = frame_end(&hello);
	if (r == 0)
		r = frame_end(&out);
	if (r < 0)
		return fault_errno(error, r, "session");
	r = sandbox_send(sandbox, &hello, NULL, 0, error);
	if (r == 0)
		r = sandbox_send(sandbox, &out, NULL, 0, error);
	/* It has ended already, and what it said of that is in the socket. */
	return r == ATOLL_E_GONE ? 0 : r;
}
