/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/http/exchange.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "egress/credentials/inject.h"
#include "os/clock.h"

/* Readings of the path of one request that a person is asked about, one after the other. */
enum { READINGS_ASKED_MAX = 3 };

enum phase {
	PHASE_IDLE,	/* waiting for a request */
	PHASE_WAITING,	/* a person is asked about the request; nothing is read of it but its head */
	PHASE_ASKED,	/* a request goes out or has gone; its answer has not begun */
	PHASE_ANSWERED, /* the answer comes in */
	PHASE_LATE,	/* the answer is over, the request not yet: a server that answers early reads on, or
			   should */
	PHASE_RAW,	/* switched to another protocol */
	PHASE_KEPT,	/* a request that does not go out: the rest of it comes in */
	PHASE_GIVEN,	/* and its answer is given, without a server */
	PHASE_OVER,
};

static bool filter(struct exchange *exchange, struct exchange_content *content, struct buf *out)
{
	struct pace *pace = &exchange->paces[content->way];

	pace_add(pace, content->size);
	content->is_of_burst = pace_is_burst(pace);
	return exchange->hooks.body(exchange->hooks.context, &exchange->record, content, out);
}

static bool filter_request(void *context, const void *bytes, size_t size, enum http1_moment moment, struct buf *out)
{
	return filter(context, &(struct exchange_content){ EXCHANGE_OUT, bytes, size, moment, false }, out);
}

static bool filter_response(void *context, const void *bytes, size_t size, enum http1_moment moment, struct buf *out)
{
	return filter(context, &(struct exchange_content){ EXCHANGE_IN, bytes, size, moment, false }, out);
}

static void clean_trailers(void *context, struct http1_head *trailers)
{
	struct exchange *exchange = context;

	exchange->hooks.incoming(exchange->hooks.context, &exchange->record, trailers);
}

static void on_sent(void *context, const void *bytes, size_t size)
{
	const struct exchange *exchange = context;

	recorded_add_sent(exchange->recorded, bytes, size);
}

static void on_received(void *context, const void *bytes, size_t size)
{
	const struct exchange *exchange = context;

	recorded_add_received(exchange->recorded, bytes, size);
}

void exchange_init(struct exchange *exchange, const struct target_server *server, const struct policy *policy,
		   const struct exchange_hooks *hooks)
{
	*exchange = (struct exchange){ .server = *server, .policy = policy, .hooks = *hooks, .heads = 1 };
	http1_init(&exchange->request, HTTP1_REQUEST);
	http1_init(&exchange->response, HTTP1_RESPONSE);
	exchange->request.filter = hooks->body ? filter_request : NULL;
	exchange->response.filter = hooks->body ? filter_response : NULL;
	exchange->response.trailer_filter = hooks->incoming ? clean_trailers : NULL;
	exchange->request.filter_context = exchange->response.filter_context = exchange;
	exchange->request.on_content = on_sent;
	exchange->response.on_content = on_received;
	exchange->request.content_context = exchange->response.content_context = exchange;
}

/* What may not go out is nothing to keep either. */
static void drop_take(struct exchange *exchange)
{
	recorded_drop(exchange->recorded);
	exchange->recorded = NULL;
}

static void end_take(struct exchange *exchange, bool is_whole)
{
	recorded_end(exchange->recorded, is_whole);
	exchange->recorded = NULL;
}

static void report_over(struct exchange *exchange, const char *problem)
{
	struct exchange_record *record = &exchange->record;

	record->method = exchange->method;
	record->path = record->path ? record->path : "";
	record->problem = problem;
	record->bytes_out = exchange->request.body_bytes;
	record->bytes_in = exchange->given.answer ? exchange->given.done : exchange->response.body_bytes;
	if (exchange->hooks.over)
		exchange->hooks.over(exchange->hooks.context, record);
	end_take(exchange, !problem && (exchange->phase == PHASE_ANSWERED || exchange->phase == PHASE_LATE));
	target_done(&exchange->target);
	exchange->given = (struct answer_source){ 0 };
	*record = (struct exchange_record){ 0 };
}

static enum exchange_state end(struct exchange *exchange, const char *problem)
{
	if (exchange->phase == PHASE_OVER)
		return EXCHANGE_ENDED;
	if (exchange->phase != PHASE_IDLE || problem)
		report_over(exchange, problem);
	exchange->phase = PHASE_OVER;
	return EXCHANGE_ENDED;
}

void exchange_done(struct exchange *exchange)
{
	/* Whoever breaks a connection off leaves a request behind that was sent on. */
	(void)end(exchange, exchange->phase == PHASE_IDLE ? NULL : "the connection broke off");
	http1_done(&exchange->request);
	http1_done(&exchange->response);
	target_done(&exchange->target);
}

void exchange_put_reason(const char *reason, const char *rule, const char *hint, struct buf *out)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "error", "refused by atoll");
	json_string(&json, "reason", reason);
	if (rule)
		json_string(&json, "rule", rule);
	if (hint && *hint)
		json_string(&json, "hint", hint);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

const char exchange_server_left[] = "the server ended the connection while a person was asked: send the request again";
const char exchange_wait_hint[] = "wait for as long as Retry-After says, and send fewer at one time";

static const char *phrase_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *phrase;
	} phrases[] = { { 400, "Bad Request" }, { 403, "Forbidden" }, { 408, "Request Timeout" },
			{ 429, "Too Many Requests" }, { 502, "Bad Gateway" }, { 503, "Service Unavailable" },
			{ 504, "Gateway Timeout" } };

	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "";
}

bool exchange_is_kept(const struct decision *decision, const struct recording *recording)
{
	return decision->answer || (decision->verdict == VERDICT_ALLOW && recording_answers(recording));
}

struct decision exchange_not_recorded(const char *problem)
{
	return (struct decision){ VERDICT_DENY, { "builtin.replay", "", 0 }, problem,
				  "this run has no network: it answers only what a recording has" };
}

void exchange_limit_key(const struct exchange_record *record, char out[NET_LIMIT_KEY_SIZE])
{
	net_limit_key(*record->limit_rule ? record->limit_rule : NULL, NET_LIMIT_REQUESTS, out);
}

/* An answer of atoll's own; the connection ends with it, so that no rest of a body is taken for a request. */
static void put_refusal(unsigned status, uint32_t wait_s, const char *reason, const char *rule, const char *hint,
			struct buf *out)
{
	cleanup_buf struct buf body;

	buf_init(&body, EXCHANGE_REFUSAL_MAX);
	exchange_put_reason(reason, rule, hint, &body);
	buf_printf(out,
		   "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
		   "Cache-Control: no-store\r\nConnection: close\r\n",
		   status, phrase_of(status), body.size);
	if (wait_s)
		buf_printf(out, "Retry-After: %u\r\n", wait_s);
	buf_put_text(out, "\r\n");
	buf_put(out, body.bytes, body.size);
}

static enum exchange_state refuse(struct exchange *exchange, unsigned status, const char *problem,
				  struct buf *to_client)
{
	exchange->record.status = status;
	put_refusal(status, 0, problem, NULL, NULL, to_client);
	return end(exchange, problem);
}

static enum exchange_state deny(struct exchange *exchange, struct buf *to_client)
{
	const struct decision *decision = &exchange->record.decision;

	exchange->record.status = 403;
	put_refusal(403, 0, decision->reason, decision->rule.id, decision->hint, to_client);
	return end(exchange, NULL);
}

static enum exchange_state refuse_for_now(struct exchange *exchange, const char *problem, struct buf *to_client)
{
	struct exchange_record *record = &exchange->record;
	char limit[NET_LIMIT_KEY_SIZE];

	exchange_limit_key(record, limit);
	record->status = 429;
	put_refusal(429, record->wait_s, problem, limit, exchange_wait_hint, to_client);
	return end(exchange, problem);
}

/* What is sent on is the target that was judged. */
static enum exchange_state send_request(struct exchange *exchange, struct buf *to_server, struct buf *to_client)
{
	struct http1_head *head = &exchange->request.head;
	const struct exchange_hooks *hooks = &exchange->hooks;
	const char *problem = NULL;
	char *owned = NULL;

	if (exchange->unreachable)
		return refuse(exchange, 502, exchange->unreachable, to_client);
	head->target = exchange->target.origin;
	if (hooks->recording)
		exchange->recorded = recorded_begin(hooks->recording, &exchange->server, head, false, &problem);
	if (problem)
		return refuse(exchange, 502, problem, to_client);
	if (hooks->outgoing && !hooks->outgoing(hooks->context, &exchange->record, head, &exchange->target, &owned,
						&problem)) {
		inject_free(owned);
		drop_take(exchange);
		if (exchange->record.decision.verdict != VERDICT_ALLOW)
			return deny(exchange, to_client);
		return exchange->record.wait_s ? refuse_for_now(exchange, problem, to_client)
					       : refuse(exchange, 502, problem, to_client);
	}
	http1_expect(&exchange->response, head);
	exchange->is_closing = exchange->is_closing || head->closes;
	http1_put_head(head, to_server);
	/* A target with a credential in it lives no longer than this. */
	if (owned)
		head->target = "";
	inject_free(owned);
	return EXCHANGE_OPEN;
}

/* It goes nowhere: its answer is a rule's, or stands in a recording. */
static enum exchange_state keep_request(struct exchange *exchange, struct buf *to_client)
{
	struct http1_head *head = &exchange->request.head;
	const struct net_answer *rule = exchange->record.decision.answer;
	const char *problem = NULL;

	head->target = exchange->target.origin;
	exchange->phase = PHASE_KEPT;
	exchange->request.is_dropped = true;
	exchange->given.is_to_head = str_equal(head->method, "HEAD");
	exchange->is_closing = exchange->is_closing || head->closes;
	if (rule) {
		exchange->rule_answer = answer_of_rule(rule);
		exchange->given.answer = &exchange->rule_answer;
	} else {
		exchange->recorded =
			recorded_begin(exchange->hooks.recording, &exchange->server, head, false, &problem);
	}
	if (problem)
		return refuse(exchange, 502, problem, to_client);
	if (head->wants_continue)
		buf_put_text(to_client, "HTTP/1.1 100 Continue\r\n\r\n");
	return EXCHANGE_OPEN;
}

/* The request is whole: the head of its answer. */
static enum exchange_state begin_answer(struct exchange *exchange, struct buf *to_client)
{
	struct exchange_record *record = &exchange->record;
	const char *problem = NULL;

	exchange->request_is_over = true;
	if (exchange->recorded)
		exchange->given.answer = recorded_find_answer(exchange->recorded, &problem);
	if (!exchange->given.answer) {
		record->is_not_recorded = true;
		record->decision = exchange_not_recorded(problem);
		return deny(exchange, to_client);
	}
	record->is_replayed = exchange->recorded != NULL;
	record->status = exchange->given.answer->status;
	answer_put_head(&exchange->given, exchange->request.head.minor, &exchange->is_closing, to_client);
	exchange->phase = PHASE_GIVEN;
	return EXCHANGE_OPEN;
}

/*
 * Asks about the next reading that the policy asks about, whose decision is record->decision. False: there is none. Who
 * sends paths that can be read in many ways wears nobody out with them.
 */
static bool ask_next(const struct exchange_hooks *hooks, struct exchange_record *record, const struct target *target,
		     const struct policy *policy, const struct target_server *server)
{
	static const struct decision too_many = {
		VERDICT_DENY, { "ask.requests", "", 0 }, "a server can read this path in too many ways to ask about",
		"send it without dot segments, double slashes and escapes of / \\ ; ? # . %", NULL,
	};
	struct action action = { .kind = ACTION_HTTP_REQUEST, .is_outward = true, .subject = server->host,
				 .port = server->port, .method = record->method };

	for (size_t i = 0; i < target_reading_count(target); i++) {
		target_set_reading(target, i, &action);
		record->decision = policy_decide(policy, &action);
		if (record->decision.verdict != VERDICT_ASK || record->readings_asked >> i & 1)
			continue;
		if (__builtin_popcount(record->readings_asked) == READINGS_ASKED_MAX) {
			record->decision = too_many;
			return true;
		}
		record->readings_asked |= 1u << i;
		record->path = action.path;
		record->is_waiting = hooks->ask(hooks->context, record);
		return true;
	}
	return false;
}

struct decision exchange_judge(const struct exchange_hooks *hooks, struct exchange_record *record,
			       const struct target *target, const struct policy *policy,
			       const struct target_server *server, const struct decision *answer)
{
	static const struct decision granted = { VERDICT_ALLOW, { "ask.grant", "", 0 }, "a person allowed this", "",
						 NULL };
	const char *asked_reading = record->path;
	struct action action = { .kind = ACTION_HTTP_REQUEST, .is_outward = true, .subject = server->host,
				 .port = server->port, .method = record->method };
	struct decision decision = target_judge(target, policy, &action);

	record->path = action.path;
	record->target = target;
	record->is_waiting = false;
	/* The policy may be another one by now: it still must not deny. */
	if (decision.verdict != VERDICT_ASK || !hooks->ask)
		return decision;
	if (answer && answer->verdict != VERDICT_ALLOW) {
		record->path = asked_reading;
		return *answer;
	}
	if (!ask_next(hooks, record, target, policy, server)) {
		record->path = answer ? asked_reading : record->path;
		return granted;
	}
	return record->decision;
}

/* By what was decided about it. */
static enum exchange_state proceed(struct exchange *exchange, struct buf *to_server, struct buf *to_client)
{
	const struct exchange_record *record = &exchange->record;

	if (record->is_waiting) {
		exchange->phase = PHASE_WAITING;
		return EXCHANGE_OPEN;
	}
	if (exchange_is_kept(&record->decision, exchange->hooks.recording))
		return keep_request(exchange, to_client);
	if (record->decision.verdict != VERDICT_ALLOW)
		return deny(exchange, to_client);
	return send_request(exchange, to_server, to_client);
}

bool exchange_is_waiting(const struct exchange *exchange)
{
	return exchange->phase == PHASE_WAITING;
}

enum exchange_state exchange_answered(struct exchange *exchange, const struct decision *answer, struct buf *to_server,
				      struct buf *to_client)
{
	if (exchange->phase != PHASE_WAITING)
		return exchange->phase == PHASE_OVER ? EXCHANGE_ENDED : EXCHANGE_OPEN;
	exchange->phase = PHASE_ASKED;
	exchange->record.decision = exchange_judge(&exchange->hooks, &exchange->record, &exchange->target,
						   exchange->policy, &exchange->server, answer);
	return proceed(exchange, to_server, to_client);
}

/* A request has come whole up to its body: judged. */
static enum exchange_state begin_request(struct exchange *exchange, struct buf *to_server, struct buf *to_client)
{
	struct http1_head *head = &exchange->request.head;
	struct exchange_record *record = &exchange->record;
	const char *problem = NULL;
	int r;

	memcpy(exchange->method, head->method, sizeof exchange->method);
	exchange->phase = PHASE_ASKED;
	exchange->heads++;
	exchange->requests++;
	exchange->request_is_over = false;
	record->started_ns = clock_monotonic_ns();
	if (!target_host_is(http1_find(head, "host"), &exchange->server))
		return refuse(exchange, 400, "the host that it names is not the one that it is sent to", to_client);
	r = target_parse(head->method, head->target, &exchange->server, &exchange->target, &problem);
	if (r < 0)
		return refuse(exchange, 400, problem ? problem : "there is no memory", to_client);
	record->method = exchange->method;
	record->decision = exchange_judge(&exchange->hooks, record, &exchange->target, exchange->policy,
					  &exchange->server, NULL);
	return proceed(exchange, to_server, to_client);
}

/* Both halves are over: the next request may come. */
static enum exchange_state next(struct exchange *exchange)
{
	bool is_closing = exchange->is_closing;

	report_over(exchange, NULL);
	exchange->method[0] = 0;
	exchange->phase = PHASE_IDLE;
	http1_next(&exchange->request);
	http1_next(&exchange->response);
	return is_closing ? end(exchange, NULL) : EXCHANGE_OPEN;
}

/* Nothing is added to no bytes at all. */
static const uint8_t *skip(const uint8_t *bytes, size_t size)
{
	return size ? bytes + size : bytes;
}

/* A head that is none; a body that is none, or may not leave: told while the answer has not begun. */
static enum exchange_state refuse_bytes(struct exchange *exchange, struct buf *to_client)
{
	if (exchange->phase == PHASE_IDLE)
		return refuse(exchange, 400, exchange->request.problem, to_client);
	if (exchange->request.is_stopped)
		drop_take(exchange);
	if (exchange->phase == PHASE_ASKED && exchange->request.is_stopped)
		return deny(exchange, to_client);
	return end(exchange, exchange->request.problem);
}

enum exchange_state exchange_from_client(struct exchange *exchange, const uint8_t *bytes, size_t size, size_t *ret_used,
					 struct buf *to_server, struct buf *to_client)
{
	*ret_used = 0;
	while (exchange->phase != PHASE_OVER && exchange->phase != PHASE_WAITING) {
		size_t used;
		enum http1_result result =
			http1_feed(&exchange->request, skip(bytes, *ret_used), size - *ret_used, to_server, &used);

		*ret_used += used;
		if (result == HTTP1_BAD)
			return refuse_bytes(exchange, to_client);
		if (result == HTTP1_END && exchange->phase == PHASE_KEPT)
			return begin_answer(exchange, to_client);
		if (result == HTTP1_END)
			exchange->request_is_over = true;
		if (result == HTTP1_END && exchange->phase == PHASE_LATE && next(exchange) == EXCHANGE_OPEN)
			continue;
		if (result == HTTP1_MORE || (result == HTTP1_END && exchange->phase != PHASE_OVER))
			return EXCHANGE_OPEN;
		if (result == HTTP1_END)
			break;
		if (begin_request(exchange, to_server, to_client) == EXCHANGE_ENDED)
			break;
	}
	return exchange->phase == PHASE_WAITING ? EXCHANGE_OPEN : EXCHANGE_ENDED;
}

/* The head of an answer: interim ones (1xx) pass and are forgotten. */
static enum exchange_state begin_response(struct exchange *exchange, struct buf *to_client)
{
	struct http1_head *head = &exchange->response.head;

	exchange->heads++;
	if (exchange->phase != PHASE_ASKED)
		return end(exchange, "the server answers what nobody asked");
	if (exchange->hooks.incoming)
		exchange->hooks.incoming(exchange->hooks.context, &exchange->record, head);
	if (head->status < 200 && head->status != 101) {
		http1_put_head(head, to_client);
		return EXCHANGE_OPEN;
	}
	exchange->record.status = head->status;
	recorded_set_answer(exchange->recorded, head);
	http1_put_head(head, to_client);
	exchange->phase = head->status == 101 ? PHASE_RAW : PHASE_ANSWERED;
	exchange->is_closing = exchange->is_closing || head->closes;
	if (head->status == 101)
		http1_pass_raw(&exchange->request);
	return EXCHANGE_OPEN;
}

static enum exchange_state end_response(struct exchange *exchange)
{
	size_t used;

	if (exchange->phase != PHASE_ANSWERED) {
		http1_next(&exchange->response);   /* 1xx */
		http1_expect(&exchange->response, &exchange->request.head);
		return EXCHANGE_OPEN;
	}
	/* A request without a body may not have been asked for its end yet. */
	if (!exchange->request_is_over)
		exchange->request_is_over = http1_feed(&exchange->request, NULL, 0, NULL, &used) == HTTP1_END;
	if (exchange->request_is_over)
		return next(exchange);
	/* Cut off now, a client that still writes would not come to read its answer. */
	exchange->phase = PHASE_LATE;
	return EXCHANGE_OPEN;
}

enum exchange_state exchange_from_server(struct exchange *exchange, const uint8_t *bytes, size_t size,
					 struct buf *to_client)
{
	enum exchange_state state = EXCHANGE_OPEN;
	size_t done = 0;

	while (state == EXCHANGE_OPEN && exchange->phase != PHASE_OVER) {
		size_t used;
		enum http1_result result =
			http1_feed(&exchange->response, skip(bytes, done), size - done, to_client, &used);

		done += used;
		if (exchange->phase == PHASE_LATE)
			return done == size ? EXCHANGE_OPEN : end(exchange, "the server answers what nobody asked");
		if (result == HTTP1_MORE)
			return EXCHANGE_OPEN;
		if (result == HTTP1_BAD)
			state = exchange->phase == PHASE_ASKED
					? refuse(exchange, 502, exchange->response.problem, to_client)
					: end(exchange, exchange->response.problem);
		else
			state = result == HTTP1_HEAD ? begin_response(exchange, to_client) : end_response(exchange);
	}
	return EXCHANGE_ENDED;
}

uint64_t exchange_head_on_its_way(const struct exchange *exchange)
{
	return http1_is_in_head(&exchange->request) || http1_is_in_head(&exchange->response) ? exchange->heads : 0;
}

enum exchange_state exchange_time_out(struct exchange *exchange, struct buf *to_client)
{
	if (exchange->phase == PHASE_IDLE)
		return refuse(exchange, 408, "the head of the request takes too long", to_client);
	if (exchange->phase == PHASE_ASKED)
		return refuse(exchange, 504, "the answer takes too long", to_client);
	return end(exchange, "it takes too long");
}

const char exchange_slow_request[] = "the body of the request comes too slowly";
const char exchange_slow_answer[] = "the body of the answer comes too slowly";

const char *exchange_look(struct exchange *exchange, bool out_is_held_up, bool in_is_held_up)
{
	const struct http1 *request = &exchange->request, *response = &exchange->response;
	bool asks = exchange->phase == PHASE_ASKED || exchange->phase == PHASE_ANSWERED ||
		    exchange->phase == PHASE_LATE || exchange->phase == PHASE_KEPT;
	/* The end of an empty one is not always asked for before the answer comes. */
	bool sends = asks && !exchange->request_is_over && request->head.framing == HTTP1_LENGTH &&
		     request->body_bytes < request->head.length;
	bool answers = exchange->phase == PHASE_ANSWERED && response->head.framing == HTTP1_LENGTH;

	if (progress_is_too_slow(&exchange->sent, sends && !out_is_held_up, exchange->requests, request->body_bytes))
		return exchange_slow_request;
	if (progress_is_too_slow(&exchange->received, answers && !in_is_held_up, exchange->requests,
				 response->body_bytes))
		return exchange_slow_answer;
	return NULL;
}

enum exchange_state exchange_give_up(struct exchange *exchange, const char *why, struct buf *to_client)
{
	if (exchange->phase == PHASE_ASKED || exchange->phase == PHASE_KEPT)
		return refuse(exchange, 408, why, to_client);
	return end(exchange, why);
}

enum exchange_state exchange_settle(struct exchange *exchange, bool in_is_held_up, uint64_t now_ns,
				    struct buf *to_server, struct buf *to_client, uint64_t *ret_wait_ns)
{
	struct http1 *messages[EXCHANGE_WAY_COUNT] = { &exchange->request, &exchange->response };
	struct buf *outs[EXCHANGE_WAY_COUNT] = { to_server, to_client };

	*ret_wait_ns = 0;
	for (int way = 0; way < EXCHANGE_WAY_COUNT && exchange->phase != PHASE_OVER; way++) {
		bool is_in = way == EXCHANGE_IN;
		uint64_t wait_ns;

		if (!messages[way]->withheld && !exchange->paces[way].came)
			continue;
		wait_ns = pace_look(&exchange->paces[way], is_in, is_in && in_is_held_up, now_ns);
		if (!messages[way]->withheld)
			continue;
		if (!wait_ns && http1_release(messages[way], outs[way]) == HTTP1_BAD)
			return end(exchange, messages[way]->problem);
		wait_ns = wait_ns ? wait_ns : 1;
		if (!*ret_wait_ns || wait_ns < *ret_wait_ns)
			*ret_wait_ns = wait_ns;
	}
	return exchange->phase == PHASE_OVER ? EXCHANGE_ENDED : EXCHANGE_OPEN;
}

bool exchange_is_idle(const struct exchange *exchange)
{
	return exchange->phase == PHASE_IDLE && http1_is_idle(&exchange->request);
}

bool exchange_has_switched(const struct exchange *exchange)
{
	return exchange->phase == PHASE_RAW;
}

bool exchange_is_giving(const struct exchange *exchange)
{
	return exchange->phase == PHASE_GIVEN;
}

enum exchange_state exchange_take(struct exchange *exchange, struct buf *to_client, size_t max)
{
	switch (answer_put_body(&exchange->given, to_client, max)) {
	case ANSWER_MORE:
		return EXCHANGE_OPEN;
	case ANSWER_CUT:
		return end(exchange, "the recorded answer breaks off");
	case ANSWER_WHOLE:
		return next(exchange);
	}
	return EXCHANGE_ENDED;
}

enum exchange_state exchange_client_ended(struct exchange *exchange)
{
	if (exchange->phase == PHASE_IDLE || exchange->phase == PHASE_RAW || exchange->phase == PHASE_LATE)
		return end(exchange, NULL);
	/* Nobody can tell a client that is gone from one that has said all: no person is asked in vain. */
	if (exchange->phase == PHASE_WAITING)
		return end(exchange, "the client ended the connection while a person was asked");
	/* Half closed behind its request: the answer still comes. */
	exchange->is_closing = true;
	return exchange->request_is_over || http1_finish(&exchange->request, NULL) == HTTP1_END
		? EXCHANGE_OPEN : end(exchange, "the request ends in the middle");
}

enum exchange_state exchange_server_ended(struct exchange *exchange, struct buf *to_client)
{
	bool has_begun = !http1_is_idle(&exchange->response);

	if (exchange->phase == PHASE_WAITING)
		return refuse(exchange, 503, exchange_server_left, to_client);
	if (exchange->phase == PHASE_ASKED)
		return refuse(exchange, 502, "the server closed the connection without an answer", to_client);
	if (exchange->phase == PHASE_LATE) {
		exchange->is_closing = true;
		return EXCHANGE_OPEN;
	}
	if (has_begun && exchange->phase == PHASE_ANSWERED &&
	    http1_finish(&exchange->response, to_client) != HTTP1_END)
		return end(exchange, "the answer ends in the middle");
	return end(exchange, NULL);
}
