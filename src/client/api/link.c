/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>

#include "client/api/fault.h"
#include "client/api/job.h"
#include "client/api/messages.h"
#include "client/api/record.h"

/* How the caller waits, for events and for the answers to requests, and how requests go to the box. */

enum { CREDIT_STEP = 16 };

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

/* ---- events ---- */

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
	int r = context_check_fork(sandbox ? sandbox->context : NULL, error);

	if (r < 0)
		return r;
	if (!ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "next", "there is no place for an event");
	while (!sandbox->first && (r = sandbox_step(sandbox, NULL, 0)) == 1)
		continue;
	if (r < 0)
		return fault_errno(error, r, "next");
	if (!sandbox->first)
		return 0;
	*ret = sandbox_take_event(sandbox, &has_credit);
	return_credit(sandbox, has_credit);
	sandbox_wake(sandbox);
	return 1;
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

int sandbox_need(struct atoll_sandbox *sandbox, uint32_t protocol, struct atoll_error *error)
{
	uint64_t until_ns = until(sandbox->context->timeout_ms);
	int r = 0;

	if (sandbox->parked)
		return fault_set(error, ATOLL_E_BUSY, EBUSY, "session", "it is parked: atoll_take() comes first");
	/* It was greeted with no less. */
	if (sandbox->context->own_commands && protocol <= OWN_COMMANDS_PROTOCOL && sandbox->socket_fd >= 0)
		return 0;
	while (r >= 0 && !sandbox->protocol && sandbox->socket_fd >= 0 && left_ms(until_ns)) {
		r = wait_for(sandbox->socket_fd, POLLIN, until_ns);
		if (r >= 0)
			r = sandbox_step(sandbox, NULL, 0);
	}
	sandbox_wake(sandbox);
	if (r < 0)
		return fault_errno(error, r, "session");
	if (sandbox->protocol >= protocol)
		return 0;
	if (sandbox->protocol)
		return fault_set(error, ATOLL_E_PROTOCOL, 0, "session",
				 "the sandbox runs under an older atoll, which does not have this");
	return sandbox->socket_fd < 0
		       ? sandbox_set_gone(sandbox, error)
		       : fault_set(error, ATOLL_E_TIMEOUT, ETIMEDOUT, "session", "the sandbox did not answer in %d ms",
				   sandbox->context->timeout_ms);
}

int sandbox_set_gone(const struct atoll_sandbox *sandbox, struct atoll_error *error)
{
	struct err err = { 0 };
	int code = sandbox_gone(sandbox, &err);

	return fault_from_err(error, &err) == code ? code : fault_code(error, code);
}

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
	int r = sandbox->parked ? -EBUSY
		: sandbox->socket_fd < 0 ? -EPIPE : frame_send(sandbox->socket_fd, out, fds, fd_count);

	switch (r) {
	case 0:
		return 0;
	case -EPIPE:
	case -ECONNRESET:
		/* Why stands in what it said before. */
		while (sandbox->socket_fd >= 0 && sandbox_step(sandbox, NULL, 0) == 1)
			continue;
		sandbox_wake(sandbox);
		return sandbox_set_gone(sandbox, error);
	case -EBUSY:
		return fault_set(error, ATOLL_E_BUSY, EBUSY, "session", "it is parked: atoll_take() comes first");
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
		sandbox_doze(sandbox); /* only what brings the answer is waited for */
		r = sandbox_step(sandbox, &answer, left_ms(until_ns));
	}
	sandbox_wake(sandbox);
	if (r < 0 && !answer.is_there) {
		atoll_record_free(answer.result);
		return fault_errno(error, r, "session");
	}
	if (!answer.is_there) {
		struct pending *pending = sandbox_take_pending(sandbox, ticket);

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

static uint32_t lowest_protocol(const struct atoll_context *context)
{
	return context->own_commands ? OWN_COMMANDS_PROTOCOL : LINK_PROTOCOL_LOWEST;
}

static uint64_t wanted_events(const struct atoll_context *context)
{
	return context->events | (context->own_commands ? LINK_OWN_COMMANDS : 0);
}

void sandbox_put_greeting(struct buf *out, const struct atoll_context *context)
{
	field_put_u64(out, "lowest", lowest_protocol(context));
	field_put_u64(out, "highest", LINK_PROTOCOL);
	field_put_u64(out, "events", wanted_events(context));
}

int sandbox_greet(int socket_fd, const struct atoll_context *context)
{
	char memory[2][128];
	struct buf hello, subscribe;
	int r;

	buf_init_fixed(&hello, memory[0], sizeof memory[0]);
	frame_begin(&hello, LINK_HELLO);
	frame_put_u32(&hello, lowest_protocol(context));
	frame_put_u32(&hello, LINK_PROTOCOL);
	buf_init_fixed(&subscribe, memory[1], sizeof memory[1]);
	frame_begin(&subscribe, LINK_SUBSCRIBE);
	frame_put_u64(&subscribe, 0);
	frame_put_u64(&subscribe, wanted_events(context));
	r = frame_end(&hello);
	if (r == 0)
		r = frame_end(&subscribe);
	if (r == 0)
		r = frame_send(socket_fd, &hello, NULL, 0);
	if (r == 0)
		r = frame_send(socket_fd, &subscribe, NULL, 0);
	/* It has ended already, and what it said of that is in the socket. */
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}
