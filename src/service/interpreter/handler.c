/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "service/front/exchange.h"
#include "service/interpreter/contexts.h"
#include "service/interpreter/interpreter.h"

/* Handler of the routes of the interpreter's port. The launcher says first whether who asks may. */

enum { ANSWER_MAX = 256 << 10, STREAM_OUT_MAX = 2 * STREAM_FULL };

static const char json_type[] = "application/json";

static void answer_json(struct exchange *exchange, unsigned status, struct buf *body)
{
	exchange_answer_bytes(exchange, status, json_type, body);
}

/* Those that are there from the beginning, as clients expect. */
static void make_defaults(struct exchange *exchange)
{
	(void)contexts_default(exchange->front, exchange->target.sandbox, INTERPRETER_JAVASCRIPT);
	(void)contexts_default(exchange->front, exchange->target.sandbox, INTERPRETER_PYTHON);
}

static void fail_full(struct exchange *exchange)
{
	exchange_fail(exchange, 429, CONNECT_RESOURCE_EXHAUSTED, "the sandbox has as many contexts as it may have");
}

/* ---- /execute ---- */

static void execute(struct exchange *exchange, struct interpreter_request *request)
{
	const char *sandbox = exchange->target.sandbox, *token = exchange_header(exchange, "X-Access-Token");
	struct context *context = request->context ? contexts_find(exchange->front, sandbox, request->context)
						   : contexts_default(exchange->front, sandbox, request->language);
	struct run *run;

	if (!context) {
		if (request->context)
			exchange_fail(exchange, 404, CONNECT_NOT_FOUND, "there is no such context");
		else
			fail_full(exchange);
		return;
	}
	run = calloc(1, sizeof *run);
	if (!run) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	run->request = *request;
	*request = (struct interpreter_request){ 0 };
	exchange->data = run;
	stream_begin_as(&run->stream, exchange, json_type, STREAM_OUT_MAX);
	if (contexts_run(context, run, token) < 0) {
		buf_init(&run->out, ANSWER_MAX);
		interpreter_put_error(&run->stream.out, "TooManyExecutions",
				      "too many executions wait in this context");
		interpreter_put_end(&run->stream.out);
		stream_close(&run->stream);
	}
}

static void run_execute(struct exchange *exchange)
{
	char why[INTERPRETER_WHY_SIZE] = "the request cannot be read";
	struct interpreter_request request;
	int r;

	/* The token of the ports lets nobody run anything. */
	if (!exchange_header(exchange, "X-Access-Token")) {
		exchange_fail(exchange, 401, CONNECT_UNAUTHENTICATED,
			      "an access token is needed (header X-Access-Token)");
		return;
	}
	r = interpreter_read_execute(exchange->body.bytes, exchange->body.size, &request, why);
	if (r < 0) {
		exchange_fail(exchange, r == -EINVAL ? 400 : 503, CONNECT_UNKNOWN, why);
		return;
	}
	execute(exchange, &request);
	interpreter_request_done(&request);
}

static void done(struct exchange *exchange)
{
	struct run *run = exchange->data;

	if (!run)
		return;
	contexts_leave(run);
	stream_done(&run->stream);
	buf_done(&run->out);
	interpreter_request_done(&run->request);
	free(run);
}

/* ---- /contexts ---- */

static void put_context(struct buf *out, const struct context *context)
{
	interpreter_put_context(out, context->id, context->language, context->cwd);
}

static void run_list(struct exchange *exchange)
{
	struct context *context = contexts_next(exchange->front, exchange->target.sandbox, NULL);
	bool is_first = true;
	struct buf body;

	buf_init(&body, ANSWER_MAX);
	buf_put_char(&body, '[');
	for (; context; context = contexts_next(exchange->front, exchange->target.sandbox, context)) {
		if (!is_first)
			buf_put_char(&body, ',');
		is_first = false;
		put_context(&body, context);
	}
	buf_put_char(&body, ']');
	answer_json(exchange, 200, &body);
}

static void run_create(struct exchange *exchange)
{
	char why[INTERPRETER_WHY_SIZE] = "the request cannot be read";
	struct interpreter_request request;
	struct context *context;
	struct buf body;
	int r = interpreter_read_create(exchange->body.bytes, exchange->body.size, &request, why);

	if (r < 0) {
		exchange_fail(exchange, r == -EINVAL ? 400 : 503, CONNECT_UNKNOWN, why);
		return;
	}
	context = contexts_add(exchange->front, exchange->target.sandbox, request.language, request.cwd);
	interpreter_request_done(&request);
	if (!context) {
		fail_full(exchange);
		return;
	}
	buf_init(&body, ANSWER_MAX);
	put_context(&body, context);
	answer_json(exchange, 200, &body);
}

static void run_one(struct exchange *exchange)
{
	struct context *context = contexts_find(exchange->front, exchange->target.sandbox,
						exchange->match.values[0].text);

	if (!context) {
		exchange_fail(exchange, 404, CONNECT_NOT_FOUND, "there is no such context");
		return;
	}
	if (str_equal(exchange->method, "DELETE"))
		contexts_remove(exchange->front, context);
	else
		contexts_restart(context);
	exchange_answer_bytes(exchange, 200, NULL, NULL);
}

static void run_health(struct exchange *exchange)
{
	struct buf body;

	buf_init(&body, ANSWER_MAX);
	buf_put_text(&body, "\"OK\"");
	answer_json(exchange, 200, &body);
}

/* ---- who may ---- */

static const struct {
	const char *method, *pattern;
	void (*run)(struct exchange *exchange);
} calls[] = {
	{ "POST", "/execute", run_execute },
	{ "GET", "/contexts", run_list },
	{ "POST", "/contexts", run_create },
	{ "DELETE", "/contexts/{context}", run_one },
	{ "POST", "/contexts/{context}/restart", run_one },
	{ "GET", "/health", run_health },
};

static void on_checked(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	make_defaults(exchange);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (str_equal(calls[i].method, exchange->method) &&
		    str_equal(calls[i].pattern, exchange->match.route->pattern))
			calls[i].run(exchange);
}

static void run(struct exchange *exchange)
{
	enum service_operation operation = exchange->match.route->operation;
	const char *token = exchange_header(exchange, "E2b-Traffic-Access-Token");
	struct buf *out = exchange_ask(exchange, operation);

	if (!out)
		return;
	if (token && operation == SERVICE_INTERPRET)
		field_put_string(out, "traffic_token", token);
	exchange_send(exchange, on_checked);
}

static const struct exchange_handler handler = { .run = run, .done = done };

const struct front_extension interpreter_extension = {
	.handler = &handler, .exit = contexts_on_exit, .gone = contexts_on_gone, .tick = contexts_tick,
};
