/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/requests.h"

#include <string.h>

#include "base/str.h"
#include "egress/flow/gate-state.h"
#include "egress/http/intercept.h"
#include "egress/message/http1-head.h"
#include "egress/message/override.h"
#include "os/clock.h"
#include "policy/decide.h"

/*
 * Order of things for a request that the policy allows: what the sandbox sends is looked at first, for a secret or a
 * placeholder that has no business there, and only then a secret is put in. So what is found was inside.
 */

/* A part of a secret that goes out is told when it has gone out so often: once it may be chance. */
enum { PARTS_MIN = 3 };

static const struct rule_origin own_rule = { "builtin.secrets", "", 0 };
static const struct rule_origin plain_rule = { "builtin.request", "", 0 };

/* --- What is counted. --- */

/* Of all rules that any reading of the path is about, as the decision is the strictest of them. */
static uint64_t limited_rules(const struct requests *requests, const struct exchange_record *record,
			      const struct target *target)
{
	struct action action = { .kind = ACTION_HTTP_REQUEST, .is_outward = true, .subject = requests->connection.host,
				 .port = (uint16_t)requests->connection.port, .method = record->method };
	uint64_t rules = 0;

	for (size_t i = 0; i < target_reading_count(target); i++) {
		target_set_reading(target, i, &action);
		rules |= policy_limited_rules(requests->gate->policy, &action);
	}
	return rules;
}

/* NULL, or why it may not go now. */
static const char *count_request(const struct requests *requests, struct exchange_record *record,
				 const struct target *target)
{
	struct quota_share share = { requests->gate->quota, limited_rules(requests, record, target) };
	struct quota_hit hit;
	uint64_t wait_ms;

	if (quota_request(&share, clock_monotonic_ns(), &hit, &wait_ms) == 0)
		return NULL;
	record->wait_s = (uint32_t)(wait_ms / 1000 + 1);
	/* The policy may be another one when the request is told of. */
	if (hit.rule && str_copy(record->limit_rule, sizeof record->limit_rule, hit.rule) < 0)
		record->limit_rule[0] = 0;
	return "there are too many requests for the limits of the policy";
}

/* --- What must not leave. --- */

static int first_of(uint32_t words)
{
	return words ? __builtin_ctz(words) : -1;
}

/* The words of which every byte may be made unreadable on its way out. */
static uint32_t masked_words(const struct gate *gate)
{
	return gate->policy->data.outgoing == DATA_MASK ? SECRET_WORDS & ~gate->secrets.long_words : 0;
}

/* Notes it, and says whether it is to be stopped; not for a secret that is masked. */
static bool note_leak(const struct requests *requests, struct exchange_record *record, uint32_t words,
		      const char *where, uint32_t masked)
{
	const struct gate *gate = requests->gate;
	enum data_action action = gate->policy->data.outgoing;
	uint32_t foreign = words & ~SECRET_WORDS & ~requests->placeholders;
	uint32_t leaked = action == DATA_OFF ? 0 : words & SECRET_WORDS;
	bool is_placeholder = foreign != 0;
	int number = first_of(is_placeholder ? foreign >> PLACEHOLDER_WORD(0) : leaked & ~masked ? leaked & ~masked
												 : leaked);

	if (number < 0)
		return false;
	record->leak = (struct leak){ .secret = gate->secrets.items[number].name, .where = where,
				      .is_placeholder = is_placeholder };
	record->leak.is_refused = is_placeholder || (leaked & ~masked && action != DATA_FLAG);
	if (!record->leak.is_refused)
		return false;
	if (gate->secrets.items[number].is_canary) {
		record->decision = (struct decision){ VERDICT_DENY, plain_rule, "the request is not allowed", "",
						      NULL };
		return true;
	}
	record->decision = (struct decision){
		VERDICT_DENY, own_rule,
		is_placeholder ? "what stands for a secret was sent to another host than the secret's own"
			       : "the request carries a secret out",
		is_placeholder ? "send it only to the hosts that the policy gives the secret to"
			       : "leave it out; the network gate puts secrets in where the policy says so", NULL,
	};
	return true;
}

/*
 * A long part of a secret is let through, for whoever sends it learns nothing then, and is told when it comes again and
 * again: somebody cuts it up, or has got hold of most of it.
 */
static void note_parts(const struct requests *requests, struct exchange_record *record, const struct scan_met *met,
		       const char *where)
{
	struct gate *gate = requests->gate;
	uint32_t parts = met->parts & ~met->words & ~record->parts & SECRET_WORDS;

	if (gate->policy->data.outgoing == DATA_OFF)
		return;
	record->parts |= parts;
	for (; parts; parts &= parts - 1) {
		struct gate_secret *secret = &gate->secrets.items[first_of(parts)];

		if (++secret->parts_seen >= PARTS_MIN && !record->leak.secret)
			record->leak = (struct leak){ .secret = secret->name, .where = where };
	}
}

/* A masked URL or header would mean something else: no mask there. */
static bool is_text_stopped(const struct requests *requests, struct exchange_record *record, const char *text,
			    const char *where)
{
	static const struct {
		const char *whole, *part;
	} places[] = { { "the URL", "the URL (a long part of it)" }, { "a header", "a header (a long part of it)" } };
	struct scan_met met = scanner_find(requests->gate->secrets.scanner, text, strlen(text));

	for (size_t i = 0; met.parts && i < ARRAY_SIZE(places); i++)
		if (str_equal(places[i].whole, where))
			note_parts(requests, record, &met, places[i].part);
	return met.words && note_leak(requests, record, met.words, where, 0);
}

static bool is_head_stopped(const struct requests *requests, struct exchange_record *record,
			    const struct http1_head *head)
{
	if (!requests->gate->secrets.scanner)
		return false;
	if (is_text_stopped(requests, record, head->target, "the URL"))
		return true;
	for (size_t i = 0; i < head->field_count; i++)
		if (is_text_stopped(requests, record, head->fields[i].name, "a header") ||
		    is_text_stopped(requests, record, head->fields[i].value, "a header"))
			return true;
	return false;
}

/* The bodies of one request and of its answer. */
struct bodies {
	struct scan *ways[EXCHANGE_WAY_COUNT];  /* NULL: nothing came */
	bool is_opaque;          /* the answer is compressed, though it was asked not to be: nobody can look into it */
};

static void forget_bodies(struct bodies *bodies)
{
	if (!bodies)
		return;
	for (int way = 0; way < EXCHANGE_WAY_COUNT; way++)
		scan_free(bodies->ways[way]);
	free(bodies);
}

static bool watch_bodies(const struct requests *requests, struct exchange_record *record)
{
	record->own = requests->gate->secrets.scanner ? calloc(1, sizeof(struct bodies)) : NULL;
	return record->own || !requests->gate->secrets.scanner;
}

/* 0 or -errno; what was met in *ret_met. *scan is made when something comes. */
static int scan_content(const struct scanner *scanner, struct scan **scan_slot, const struct exchange_content *content,
			uint32_t masked, struct buf *out, struct scan_met *ret_met)
{
	struct scan_met met = { 0 }, some = { 0 };
	const uint8_t *at = content->bytes;
	int r = *scan_slot || !content->size ? 0 : scan_new(scan_slot, scanner);
	struct scan *scan = *scan_slot;

	*ret_met = met;
	if (r < 0 || !scan)
		return r;
	for (size_t rest = content->size, piece; r == 0 && rest; at += piece, rest -= piece) {
		piece = rest < SCAN_FEED_MAX ? rest : SCAN_FEED_MAX;
		r = scan_feed(scan, at, piece, masked, out, &some);
		met.words |= some.words;
		met.parts |= some.parts;
		met.late |= some.late;
	}
	*ret_met = met;
	if (r < 0 || content->moment == HTTP1_GOES_ON)
		return r;
	if (content->moment == HTTP1_PAUSES)
		return scan_release(scan, out);
	r = scan_finish(scan, masked, out, &some);
	*ret_met = (struct scan_met){ met.words | some.words, met.parts | some.parts, met.late | some.late };
	return r;
}

/*
 * What of a secret had come in before it was whole cannot be masked any more. So no more comes in, it is told, and the
 * secret is not put in any more: whoever found out how to have an answer cut there would do it again.
 */
static bool may_come_in(const struct requests *requests, struct exchange_record *record, const struct scan_met *met)
{
	struct gate_secrets *secrets = &requests->gate->secrets;
	uint32_t late = met->late & requests->secrets;

	if (late)
		record->leak = (struct leak){ .secret = secrets->items[first_of(late)].name,
					      .where = "an answer (a part of it came in)" };
	for (uint32_t rest = late; rest; rest &= rest - 1)
		secrets->items[first_of(rest)].has_come_in = true;
	return !late && !(met->words & requests->secrets & secrets->long_words);
}

/*
 * An answer that stops in the middle of a secret ends there. Else whoever has it stop, for the server's buffer was full
 * and it waits for more of the request, would get all but the last byte, and leave before the secret is whole. Short
 * messages go to and fro at once, and are not looked at.
 */
static bool may_pause(const struct requests *requests, struct exchange_record *record, const struct scan *scan)
{
	uint32_t open = scan ? scan_open(scan) & requests->secrets : 0;

	if (open)
		record->leak = (struct leak){ .secret = requests->gate->secrets.items[first_of(open)].name,
					      .where = "an answer (it stopped in the middle)" };
	return !open;
}

/* An answer that repeats what was put in would bring it inside: there it is masked, whatever the policy says. */
static bool on_body(void *context, struct exchange_record *record, const struct exchange_content *content,
		    struct buf *out)
{
	const struct requests *requests = context;
	struct bodies *bodies = record->own;
	bool is_in = content->way == EXCHANGE_IN;
	uint32_t masked = is_in ? requests->secrets : masked_words(requests->gate);
	struct scan_met met;

	if (!bodies) {
		buf_put(out, content->bytes, content->size);
		return buf_error(out) == 0;
	}
	if (is_in && bodies->is_opaque)
		return false;
	if (is_in && content->moment == HTTP1_PAUSES && content->is_of_burst &&
	    !may_pause(requests, record, bodies->ways[EXCHANGE_IN]))
		return false;
	if (scan_content(requests->gate->secrets.scanner, &bodies->ways[content->way], content, masked, out, &met) < 0)
		return false;
	if (is_in)
		return may_come_in(requests, record, &met);
	if (met.parts)
		note_parts(requests, record, &met, "the body (a long part of it)");
	/* Of what had begun to leave no mask is left: then it is refused. */
	return !met.words || !note_leak(requests, record, met.words, "the body", masked & ~met.late);
}

/* --- What is put in. --- */

static bool is_same_place(const struct inject *a, const struct inject *b)
{
	const char *x = a->kind == INJECT_AWS ? "authorization" : a->name;
	const char *y = b->kind == INJECT_AWS ? "authorization" : b->name;

	if ((a->kind == INJECT_QUERY) != (b->kind == INJECT_QUERY))
		return false;
	return a->kind == INJECT_QUERY ? str_equal(x, y) : strcasecmp(x, y) == 0;
}

/* Two rules that mean the same request, and two secrets for one place: which one is meant nobody can say. */
static bool is_taken(const struct gate_secrets *secrets, uint64_t done, const struct injection *injection)
{
	for (size_t i = 0; done >> i; i++)
		if (done >> i & 1 && is_same_place(&secrets->injections[i].rule->inject, &injection->rule->inject) &&
		    !str_equal(secrets->injections[i].rule->inject.secret, injection->rule->inject.secret))
			return true;
	return false;
}

static const char *put_secrets(const struct requests *requests, struct exchange_record *record,
			       struct http1_head *head, const struct target *target, char **ret_owned)
{
	const struct gate_secrets *secrets = &requests->gate->secrets;
	uint64_t done = 0;

	for (size_t i = 0; i < secrets->injection_count; i++) {
		const struct injection *injection = &secrets->injections[i];
		int number = gate_secrets_find(secrets, injection->rule->inject.secret), r;
		char *owned = NULL;

		r = inject_request(injection, &requests->server, target, head, &owned);
		if (r == INJECT_NOT_HERE)
			continue;
		if (owned) {
			inject_free(*ret_owned);
			*ret_owned = owned;
		}
		if (r < 0 || i >= 64)
			return r == -EOPNOTSUPP ? "its signature cannot be made anew without its body"
						: "the credential cannot be put in";
		if (secrets->items[number].has_come_in)
			return "an answer had a part of the secret in it, so the secret is not used any more";
		if (is_taken(secrets, done, injection))
			return "two rules put different secrets into the same place of this request";
		done |= UINT64_C(1) << i;
		record->secrets |= 1u << number;
	}
	return NULL;
}

/* Whether the rule is about this host and port, whatever it says of requests. */
static bool leads_to(const struct net_rule *rule, const struct target_server *server)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .is_outward = true, .subject = server->host,
				 .port = server->port };

	return policy_rule_covers(rule, &action);
}

/* A client that was brought to leave TLS out finds out, and does not go on without its credential. */
static const char *find_downgrade(const struct requests *requests)
{
	const struct gate_secrets *secrets = &requests->gate->secrets;

	for (size_t i = 0; !requests->server.is_tls && i < secrets->injection_count; i++)
		if (leads_to(secrets->injections[i].rule, &requests->server))
			return "secrets go to this host over TLS only: use https";
	return NULL;
}

/* What answers in pieces or compressed could not be looked at when it comes back. */
static const char *ask_for_plain(struct http1_head *head)
{
	http1_remove(head, "range");
	http1_remove(head, "if-range");
	/* Messages of gRPC are compressed one by one. */
	http1_remove(head, "grpc-accept-encoding");
	/* WebSockets have only those that compress. */
	http1_remove(head, "sec-websocket-extensions");
	return http1_set(head, "accept-encoding", "identity") < 0 ? "there is no memory" : NULL;
}

/* --- What waits for a person. --- */

static struct gate_wait *find_wait(struct gate *gate, const struct exchange_record *record)
{
	for (size_t i = 0; i < GATE_WAITS_MAX; i++)
		if (gate->waits.of[i].record == record)
			return &gate->waits.of[i];
	return NULL;
}

static void send_forget(struct gate *gate, uint32_t id)
{
	frame_begin(&gate->link.out, GATE_FORGET);
	frame_put_u32(&gate->link.out, id);
	box_link_send(&gate->link, frame_end(&gate->link.out));
}

static void on_forget(void *context, struct exchange_record *record)
{
	const struct requests *requests = context;
	struct gate_wait *wait = record->is_waiting ? find_wait(requests->gate, record) : NULL;

	if (!wait)
		return;
	send_forget(requests->gate, wait->id);
	*wait = (struct gate_wait){ 0 };
	record->asked = 0;
}

/* The box has what people granted, counts each use, and asks them. */
static bool on_ask(void *context, struct exchange_record *record)
{
	struct requests *requests = context;
	struct gate *gate = requests->gate;
	struct gate_wait *wait = find_wait(gate, NULL);
	struct gate_ask ask = { .open = requests->connection, .method = record->method, .path = record->path };

	/* Of another reading of its path: that one is answered. */
	if (record->asked)
		send_forget(gate, record->asked);
	record->asked = 0;
	if (!wait) {
		record->decision = (struct decision){
			VERDICT_DENY, { "ask.requests", "", 0 }, "too many requests wait for a person",
			"send it again when others are answered", NULL };
		return false;
	}
	*wait = (struct gate_wait){ .id = ++gate->waits.last_asked, .owner = requests, .record = record };
	ask.id = record->asked = wait->id;
	box_link_send(&gate->link, gate_ask_put(&gate->link.out, &ask));
	return true;
}

void requests_answered(struct gate *gate, const struct gate_answer *answer)
{
	struct decision decision = { answer->is_granted ? VERDICT_ALLOW : VERDICT_DENY, { answer->rule, "", 0 },
				     answer->reason, answer->hint, NULL };

	for (size_t i = 0; answer->id && i < GATE_WAITS_MAX; i++) {
		struct gate_wait wait = gate->waits.of[i];

		if (wait.id != answer->id)
			continue;
		gate->waits.of[i] = (struct gate_wait){ 0 };
		intercept_answered(wait.owner->intercept, wait.record, &decision);
		return;
	}
}

static bool on_outgoing(void *context, struct exchange_record *record, struct http1_head *head,
			const struct target *target, char **ret_owned, const char **ret_problem)
{
	const struct requests *requests = context;

	if (is_head_stopped(requests, record, head))
		return false;
	*ret_problem = count_request(requests, record, target);
	if (!*ret_problem)
		*ret_problem = override_find(head, record->method, &requests->server, requests->gate->policy);
	if (!*ret_problem)
		*ret_problem = find_downgrade(requests);
	if (!*ret_problem && owner_headers_put(&requests->gate->secrets.headers, &requests->server, head) < 0)
		*ret_problem = "the headers that the owner of the sandbox sets cannot be put in";
	if (!*ret_problem)
		*ret_problem = put_secrets(requests, record, head, target, ret_owned);
	if (!*ret_problem && record->secrets)
		*ret_problem = ask_for_plain(head);
	if (!*ret_problem && !watch_bodies(requests, record))
		*ret_problem = "there is no memory";
	return !*ret_problem;
}

static bool has_secret(const struct requests *requests, const char *text)
{
	return scanner_find(requests->gate->secrets.scanner, text, strlen(text)).words & requests->secrets;
}

/* As in bodies: in each spelling, and each part of a secret that has parts. */
static void redact_words(const struct requests *requests, struct http1_head *head)
{
	for (size_t i = 0; requests->secrets && i < head->field_count; i++) {
		struct http1_field *field = &head->fields[i];
		bool is_in_name = has_secret(requests, field->name);

		if (is_in_name)
			field->name = inject_redacted_name;
		if (is_in_name || has_secret(requests, field->value))
			field->value = inject_redacted;
	}
	if (requests->secrets && has_secret(requests, head->reason))
		head->reason = "";
}

static bool is_coded(const struct http1_head *head, const char *name)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (http1_name_is(head->fields[i].name, name) && !str_equal(head->fields[i].value, "identity"))
			return true;
	return false;
}

/* An answer that repeats a credential would bring it in, and a redirect carry it elsewhere. */
static void on_incoming(void *context, struct exchange_record *record, struct http1_head *head)
{
	const struct requests *requests = context;
	const struct gate_secrets *secrets = &requests->gate->secrets;
	struct bodies *bodies = record->own;

	if (bodies && record->secrets && (is_coded(head, "content-encoding") || is_coded(head, "grpc-encoding")))
		bodies->is_opaque = true;
	/* Those that the scanner knows are not compared byte by byte: that takes longer the more of them is right. */
	for (size_t i = 0; i < secrets->injection_count; i++)
		if (str_equal(secrets->injections[i].rule->host, requests->connection.host) &&
		    strlen(secrets->injections[i].secret) < SCAN_WORD_MIN &&
		    inject_redact(&secrets->injections[i], head) < 0)
			head->field_count = 0;
	if (owner_headers_redact(&secrets->headers, head) < 0)
		head->field_count = 0;
	redact_words(requests, head);
}

/* --- What is told. --- */

/* The names of the secrets that were put in, separated by spaces. */
static const char *list_secrets(const struct gate_secrets *secrets, uint32_t used, char out[GATE_SECRETS_SIZE])
{
	struct buf list;

	buf_init_fixed(&list, out, GATE_SECRETS_SIZE);
	for (size_t i = 0; i < secrets->count; i++)
		if (used >> i & 1) {
			buf_put_text(&list, list.size ? " " : "");
			buf_put_text(&list, secrets->items[i].name);
		}
	return buf_text(&list);
}

static void report_request(void *context, const struct exchange_record *record)
{
	const struct requests *requests = context;
	struct gate *gate = requests->gate;
	struct gate_wait *wait = record->is_waiting ? find_wait(gate, record) : NULL;
	char names[GATE_SECRETS_SIZE];
	struct gate_request request = {
		.open = requests->connection,
		.method = record->method,
		.path = record->target ? record->target->path : "",
		.climbs = record->target ? record->target->climbs : 0,
		.status = record->status,
		.replay = record->is_replayed	    ? GATE_REPLAYED
			  : record->is_not_recorded ? GATE_NOT_RECORDED
						    : GATE_NOT_REPLAYED,
		.in_bytes = record->bytes_in,
		.out_bytes = record->bytes_out,
		.us = record->started_ns ? (clock_monotonic_ns() - record->started_ns) / 1000 : 0,
		.problem = record->problem,
		.is_limited = record->wait_s > 0,
		.limit_rule = *record->limit_rule ? record->limit_rule : NULL,
		.asked = record->is_waiting ? 0 : record->asked,
		.secrets = list_secrets(&gate->secrets, record->secrets, names),
		.leak = { record->leak.secret, record->leak.where, record->leak.is_placeholder,
			  record->leak.is_refused },
	};

	if (wait) {
		send_forget(gate, wait->id);
		*wait = (struct gate_wait){ 0 };
	}
	box_link_queue_request(&gate->link, &request);
	forget_bodies(record->own);
}

void requests_init(struct requests *requests, struct gate *gate, const struct gate_open *connection, bool is_tls)
{
	const struct gate_secrets *secrets = &gate->secrets;

	*requests = (struct requests){ .gate = gate, .connection = *connection };
	requests->server = (struct target_server){ connection->host, (uint16_t)connection->port, is_tls };
	for (size_t i = 0; i < secrets->injection_count; i++) {
		const struct net_rule *rule = secrets->injections[i].rule;

		int number = gate_secrets_find(secrets, rule->inject.secret);

		/* Whoever got it may repeat it at another port or name. */
		requests->secrets |= 1u << SECRET_WORD(number);
		if (is_tls && leads_to(rule, &requests->server))
			requests->placeholders |= 1u << PLACEHOLDER_WORD(number);
	}
}

struct exchange_hooks requests_hooks(struct requests *requests)
{
	return (struct exchange_hooks){ .ask = on_ask, .forget = on_forget, .outgoing = on_outgoing, .body = on_body,
					.incoming = on_incoming, .over = report_request, .context = requests,
					.recording = requests->gate->recording };
}
