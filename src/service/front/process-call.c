/* SPDX-License-Identifier: Apache-2.0 */

/* Handler of the unary calls about processes that the launcher answers: List, Update, SendSignal and CloseStdin. */

#include <string.h>

#include "base/str.h"
#include "service/front/handlers.h"
#include "service/front/process.h"

enum { LIST_MAX = 4 << 20 };

static void on_done(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct buf body;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	buf_init(&body, 16);
	buf_put_text(&body, "{}");
	exchange_answer_bytes(exchange, 200, "application/json", &body);
}

/* The launcher tells the process; what is held here would keep the pipe open. */
static void on_closed(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	char why[PROCESS_WHY_SIZE];
	struct process_selector selector;
	struct process *process = NULL;

	if (reply->status < 300 &&
	    process_read_selector(exchange->body.bytes, exchange->body.size, &selector, why) == 0)
		process = process_find(exchange->front, exchange->target.sandbox,
				       exchange_header(exchange, "X-Access-Token"), &selector);
	if (process)
		process_close_input(process);
	on_done(context, reply);
}

static void on_list(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct service_message *row;
	struct buf body;
	size_t at = 0, count = 0;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	row = malloc(sizeof *row);
	buf_init(&body, LIST_MAX);
	process_begin_list(&body);
	while (row && service_next_row(reply, &at, row) > 0) {
		process_put_listed(&body, row, count++);
		service_message_done(row);
	}
	process_end_list(&body);
	free(row);
	exchange_answer_bytes(exchange, 200, "application/json", &body);
}

/* Puts the values of a call; -EINVAL with a sentence, or -ENOTSUP. */
static int put_update(const struct exchange *exchange, struct buf *out, char why[PROCESS_WHY_SIZE])
{
	struct process_selector selector;
	uint32_t rows = 0, columns = 0;
	int r = process_read_update(exchange->body.bytes, exchange->body.size, &selector, &rows, &columns, why);

	if (r < 0)
		return r;
	process_put_selector(out, &selector);
	if (rows) {
		field_put_u64(out, "rows", rows);
		field_put_u64(out, "columns", columns);
	}
	return 0;
}

static int put_signal(const struct exchange *exchange, struct buf *out, char why[PROCESS_WHY_SIZE])
{
	struct process_selector selector;
	uint32_t signal = 0;
	int r = process_read_signal(exchange->body.bytes, exchange->body.size, &selector, &signal, why);

	if (r < 0)
		return r;
	if (signal != 9 && signal != 15)
		return -ENOTSUP;
	process_put_selector(out, &selector);
	field_put_u64(out, "signal", signal);
	return 0;
}

static int put_selector(const struct exchange *exchange, struct buf *out, char why[PROCESS_WHY_SIZE])
{
	struct process_selector selector;
	int r = process_read_selector(exchange->body.bytes, exchange->body.size, &selector, why);

	if (r == 0)
		process_put_selector(out, &selector);
	return r;
}

static int put_nothing(const struct exchange *exchange, struct buf *out, char why[PROCESS_WHY_SIZE])
{
	return 0;
}

static const struct {
	enum service_operation operation;
	int (*put)(const struct exchange *exchange, struct buf *out, char why[PROCESS_WHY_SIZE]);
	launcher_replied replied;
} calls[] = {
	{ SERVICE_COMMANDS, put_nothing, on_list },
	{ SERVICE_RESIZE, put_update, on_done },
	{ SERVICE_SIGNAL, put_signal, on_done },
	{ SERVICE_CLOSE_INPUT, put_selector, on_closed },
};

static void run(struct exchange *exchange)
{
	enum service_operation operation = exchange->match.route->operation;
	char why[PROCESS_WHY_SIZE] = "the request cannot be read";
	struct buf *out = exchange_ask(exchange, operation);

	for (size_t i = 0; out && i < ARRAY_SIZE(calls); i++) {
		int r;

		if (calls[i].operation != operation)
			continue;
		r = calls[i].put(exchange, out, why);
		if (r == 0) {
			exchange_send(exchange, calls[i].replied);
			return;
		}
		exchange->ticket = 0;
		if (r == -ENOTSUP)
			exchange_fail(exchange, 501, CONNECT_UNIMPLEMENTED, "signals are SIGTERM and SIGKILL");
		else
			exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, why);
		return;
	}
}

const struct exchange_handler process_handler = { .run = run };
