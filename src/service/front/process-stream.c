/* SPDX-License-Identifier: Apache-2.0 */

/* Handlers of process.Process/Start and Connect: a command is asked for, and its streams become one answer. */

#include <string.h>

#include "service/front/handlers.h"
#include "service/front/process.h"
#include "service/front/state.h"

static void fail_invalid(struct exchange *exchange, const char *why)
{
	exchange->ticket = 0;
	exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, why);
}

/* What has ended already is told at once. */
static void tell_ended(struct process_reader *reader, const struct service_message *reply)
{
	const struct process_end end = process_end_of(reply);

	process_put_started(&reader->stream.out, (uint32_t)service_number(reply, "pid", 0));
	process_end_stream(&reader->stream, &end);
}

static void on_reply(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct process_reader *reader = calloc(1, sizeof *reader);
	struct process *process = NULL;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		free(reader);
		exchange_fail_reply(exchange, reply);
		return;
	}
	if (reader && !service_number(reply, "exited", 0))
		process = process_open(exchange->front, exchange->target.sandbox,
				       exchange_header(exchange, "X-Access-Token"), reply);
	if (!reader || (!process && !service_number(reply, "exited", 0))) {
		free(reader);
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	exchange->data = reader;
	stream_begin(&reader->stream, exchange);
	if (process)
		process_add_reader(process, reader);
	else
		tell_ended(reader, reply);
}

static void run_start(struct exchange *exchange)
{
	char why[PROCESS_WHY_SIZE] = "", user[65];
	struct connect_envelope envelope;
	bool has_pty;
	struct buf *out;
	uint64_t timeout_ms;
	int r, has_user;

	if (!exchange_message(exchange, &envelope))
		return;
	has_user = exchange_user(exchange, user);
	if (has_user < 0)
		return;
	if (connect_read_timeout(exchange_header(exchange, "Connect-Timeout-Ms"), &timeout_ms) < 0) {
		fail_invalid(exchange, "Connect-Timeout-Ms is no number of at most ten digits");
		return;
	}
	out = exchange_ask(exchange, SERVICE_EXEC);
	if (!out)
		return;
	r = process_read_start(envelope.payload, envelope.size, out, &has_pty, why);
	if (r < 0) {
		fail_invalid(exchange, r == -EINVAL ? why : "the request is too large");
		return;
	}
	if (has_user)
		field_put_string(out, "user", user);
	if (timeout_ms)
		field_put_u64(out, "timeout_ms", timeout_ms);
	exchange_send(exchange, on_reply);
}

static void run_attach(struct exchange *exchange)
{
	char why[PROCESS_WHY_SIZE] = "";
	struct process_selector selector;
	struct connect_envelope envelope;
	struct buf *out;

	if (!exchange_message(exchange, &envelope))
		return;
	if (process_read_selector(envelope.payload, envelope.size, &selector, why) < 0) {
		fail_invalid(exchange, why);
		return;
	}
	out = exchange_ask(exchange, SERVICE_ATTACH);
	if (!out)
		return;
	process_put_selector(out, &selector);
	exchange_send(exchange, on_reply);
}

static void done(struct exchange *exchange)
{
	struct process_reader *reader = exchange->data;

	if (!reader)
		return;
	process_remove_reader(reader);
	stream_done(&reader->stream);
	free(reader);
}

const struct exchange_handler start_handler = { .run = run_start, .done = done };
const struct exchange_handler attach_handler = { .run = run_attach, .done = done };
