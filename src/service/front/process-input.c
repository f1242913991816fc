/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handler of SendInput. A process whose streams are not here yet (its client spoke to another front) is
 * attached to first. Who writes more than the process reads waits, a few at a time.
 */

#include <string.h>

#include "base/str.h"
#include "service/front/handlers.h"
#include "service/front/process.h"

enum { INPUT_MAX = 3 << 20 };

struct input {
	struct exchange *exchange;
	struct process_input input;
	size_t written;
	struct process_waiter waiter;
};

static void answer(struct exchange *exchange)
{
	struct buf body;

	buf_init(&body, 16);
	buf_put_text(&body, "{}");
	exchange_answer_bytes(exchange, 200, "application/json", &body);
}

static void fail_errno(struct exchange *exchange, int r)
{
	if (r == -ENOENT)
		exchange_fail(exchange, 400, CONNECT_FAILED_PRECONDITION,
			      "the process has no such input, or it is closed");
	else if (r == -EPIPE || r == -EIO)
		exchange_fail(exchange, 400, CONNECT_FAILED_PRECONDITION, "the process reads no more");
	else if (r == -EBUSY)
		exchange_fail(exchange, 429, CONNECT_RESOURCE_EXHAUSTED, "too many wait to write to this process");
	else
		exchange_fail(exchange, 500, CONNECT_INTERNAL, "the input cannot be written");
}

static struct process *find(struct exchange *exchange)
{
	const struct input *input = exchange->data;

	return process_find(exchange->front, exchange->target.sandbox, exchange_header(exchange, "X-Access-Token"),
			    &input->input.selector);
}

static void write_rest(struct exchange *exchange, struct process *process);

/* Found again by its name: it may have gone meanwhile. */
static void on_ready(void *context)
{
	struct input *input = context;
	struct process *process = find(input->exchange);

	if (process)
		write_rest(input->exchange, process);
	else
		exchange_fail(input->exchange, 404, CONNECT_NOT_FOUND, "the process has ended");
}

static void write_rest(struct exchange *exchange, struct process *process)
{
	struct input *input = exchange->data;
	size_t size = input->input.bytes.size - input->written;
	int r = process_write(process, input->input.is_for_pty, input->input.bytes.bytes + input->written, &size);

	input->written += r >= 0 ? size : 0;
	if (r == 0) {
		input->waiter.ready = on_ready;
		input->waiter.context = input;
		r = process_wait(process, &input->waiter);
		if (r == 0) {
			exchange_suspend_watched(exchange);
			return;
		}
	}
	if (r < 0)
		fail_errno(exchange, r);
	else
		answer(exchange);
}

static void on_attached(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct process *process;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	if (service_number(reply, "exited", 0)) {
		exchange_fail(exchange, 404, CONNECT_NOT_FOUND, "the process has ended");
		return;
	}
	process = process_open(exchange->front, exchange->target.sandbox, exchange_header(exchange, "X-Access-Token"),
			       reply);
	if (process)
		write_rest(exchange, process);
	else
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
}

static void run(struct exchange *exchange)
{
	char why[PROCESS_WHY_SIZE] = "the request cannot be read";
	struct input *input = calloc(1, sizeof *input);
	struct process *process;
	struct buf *out;

	if (!input) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	input->exchange = exchange;
	exchange->data = input;
	if (process_read_input(exchange->body.bytes, exchange->body.size, INPUT_MAX, &input->input, why) < 0) {
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, why);
		return;
	}
	process = find(exchange);
	if (process) {
		write_rest(exchange, process);
		return;
	}
	out = exchange_ask(exchange, SERVICE_ATTACH);
	if (!out)
		return;
	process_put_selector(out, &input->input.selector);
	exchange_send(exchange, on_attached);
}

static void done(struct exchange *exchange)
{
	struct input *input = exchange->data;

	if (!input)
		return;
	process_wait_no_more(&input->waiter);
	buf_done(&input->input.bytes);
	free(input);
}

const struct exchange_handler input_handler = { .run = run, .done = done };
