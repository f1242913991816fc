/* SPDX-License-Identifier: Apache-2.0 */
#include "box/gate-log.h"

#include <string.h>

#include "box/state.h"

enum { TYPE_A = 1, TYPE_AAAA = 28 };

struct refusal_text {
	struct rule_origin rule;
	const char *reason, *hint;
};

static const struct refusal_text refusal_texts[GATE_REFUSAL_COUNT] = {
	[GATE_BY_POLICY] = { { "network.default", "", 0 }, "no rule allows this host and port",
			     "list the host under network.allow of your policy" },
	[GATE_BY_SERVER_NAME] = { { "builtin.server_name", "", 0 },
				  "the TLS client asks for another server than the one it looked up",
				  "connect to the host by its own name" },
	[GATE_WITHOUT_NAME] = { { "builtin.server_name", "", 0 }, "the TLS client names no server that can be checked",
				"use a client that sends the server's name (SNI) openly" },
	[GATE_WITHOUT_TLS] = { { "builtin.tls", "", 0 }, "only TLS may be spoken on this port",
			       "use https, or another port that the policy lists" },
	[GATE_BY_ADDRESS] = { { "builtin.private", "", 0 },
			      "the name leads to an address that is not of the public internet",
			      "list that address as a cidr under network.allow of your policy" },
	[GATE_BY_LOOKUP] = { { "builtin.lookup", "", 0 }, "no name was looked up for this address",
			     "connect to the host by its name" },
	[GATE_BY_LIMIT] = { { "network.limits", "", 0 }, "there are too many connections, or the bytes are used up",
			    "use fewer at one time, or raise network.limits of your policy" },
};

struct net_detail {
	uint32_t port, type, id;
	const char *detail_key, *detail;
	const struct gate_closed *closed;
	const struct gate_request *request;
};

static const char *type_name(uint32_t type)
{
	static const struct {
		uint32_t type;
		const char *name;
	} names[] = { { 1, "A" },    { 5, "CNAME" }, { 12, "PTR" },  { 15, "MX" },   { 16, "TXT" },    { 28, "AAAA" },
		      { 33, "SRV" }, { 64, "SVCB" }, { 65, "HTTPS" }, { 255, "ANY" }, { 257, "CAA" } };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].type == type)
			return names[i].name;
	return "other";
}

static void write_request(struct json *json, const struct gate_request *request)
{
	json_string(json, "method", request->method);
	json_bytes(json, "path", request->path, strlen(request->path));
	if (request->status)
		json_u64(json, "status", request->status);
	json_u64(json, "in_bytes", request->in_bytes);
	json_u64(json, "out_bytes", request->out_bytes);
	json_u64(json, "wall_us", request->us);
	json_string(json, "error", request->problem);
}

static void write_detail(struct json *json, const void *context)
{
	const struct net_detail *detail = context;
	const struct gate_closed *closed = detail->closed;

	if (detail->type)
		json_string(json, "type", type_name(detail->type));
	if (detail->port)
		json_u64(json, "port", detail->port);
	if (detail->id)
		json_u64(json, "connection", detail->id);
	if (detail->detail)
		json_bytes(json, detail->detail_key, detail->detail, strlen(detail->detail));
	if (detail->request)
		write_request(json, detail->request);
	if (!closed)
		return;
	json_string(json, "address", closed->address);
	json_u64(json, "in_bytes", closed->in_bytes);
	json_u64(json, "out_bytes", closed->out_bytes);
	json_u64(json, "wall_us", closed->us);
	json_string(json, "error", closed->why);
}

static int record(struct box *box, enum audit_type type, const struct action *action, const struct decision *decision,
		  pid_t pid, const struct net_detail *detail)
{
	struct audit_event event = {
		.type = type,
		.verdict = decision ? verdict_names[decision->verdict] : NULL,
		.rule = decision ? decision->rule.id : NULL,
		.pid = pid,
		.subject = action->subject,
		.subject_size = strlen(action->subject),
		.write_detail = write_detail,
		.context = detail,
	};

	return audit_write(&box->audit, &event);
}

/* What nobody can be asked about is refused; the record says what came of it. */
static int deny(struct box *box, enum audit_type type, const struct action *action, struct decision decision, pid_t pid,
		const struct net_detail *detail)
{
	int r;

	decision.verdict = VERDICT_DENY;
	box->denied++;
	r = record(box, type, action, &decision, pid, detail);
	return r < 0 ? r : denials_add(&box->denials, action, &decision);
}

int gate_log_lookup(struct box *box, const struct gate_lookup *lookup)
{
	struct action action = { .kind = ACTION_NET_DNS, .subject = lookup->name };
	struct decision decision = policy_decide(box->policy->policy, &action);
	struct net_detail detail = { .type = lookup->type };

	if (!lookup->is_allowed && (lookup->type == TYPE_A || lookup->type == TYPE_AAAA))
		return deny(box, AUDIT_NET_DNS, &action, decision, 0, &detail);
	/* Programs ask for more than they need (services, reverse names): a refusal of that is nobody's problem. */
	if (!lookup->is_allowed)
		decision.verdict = VERDICT_DENY;
	else
		box->allowed++;
	if (box->policy->policy->audit_network == AUDIT_OFF)
		return 0;
	return record(box, AUDIT_NET_DNS, &action, &decision, 0, &detail);
}

static int judge_open(struct box *box, const struct gate_open *open, bool is_final)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = open->host, .port = (uint16_t)open->port };
	struct decision decision = policy_decide(box->policy->policy, &action);
	struct net_detail detail = { .port = open->port, .id = open->id };
	int r;

	if (decision.verdict != VERDICT_ALLOW) {
		r = is_final ? deny(box, AUDIT_NET_CONNECT, &action, decision, (pid_t)open->pid, &detail) : 0;
		return r < 0 ? r : 0;
	}
	box->allowed++;
	if (box->policy->policy->audit_network == AUDIT_OFF)
		return 1;
	r = record(box, AUDIT_NET_CONNECT, &action, &decision, (pid_t)open->pid, &detail);
	return r < 0 ? r : 1;
}

int gate_log_granted(struct box *box, const struct gate_open *open)
{
	return judge_open(box, open, false);
}

int gate_log_open(struct box *box, const struct gate_open *open)
{
	return judge_open(box, open, true);
}

int gate_log_refused(struct box *box, const struct gate_refused *refused)
{
	const struct refusal_text *text = &refusal_texts[refused->refusal];
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = refused->open.host,
				 .port = (uint16_t)refused->open.port };
	struct decision decision = { VERDICT_DENY, text->rule, text->reason, text->hint };
	struct net_detail detail = {
		.port = refused->open.port, .id = refused->open.id, .detail = refused->detail,
		.detail_key = refused->refusal == GATE_BY_ADDRESS ? "address" : "server_name",
	};

	if (refused->refusal == GATE_BY_POLICY)
		decision = policy_decide(box->policy->policy, &action);
	return deny(box, AUDIT_NET_CONNECT, &action, decision, (pid_t)refused->open.pid, &detail);
}

int gate_log_closed(struct box *box, const struct gate_closed *closed)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = closed->open.host };
	struct net_detail detail = { .port = closed->open.port, .id = closed->open.id, .closed = closed };

	if (box->policy->policy->audit_network == AUDIT_OFF)
		return 0;
	return record(box, AUDIT_NET_CLOSE, &action, NULL, (pid_t)closed->open.pid, &detail);
}

int gate_log_request(struct box *box, const struct gate_request *request)
{
	static const struct decision unread = {
		VERDICT_DENY, { "builtin.http", "", 0 },
		"the request is malformed, could be read in two ways, or names another host",
		"use an ordinary client; the answer to the request says what was wrong",
	};
	const struct gate_open *open = &request->open;
	struct action action = { .kind = ACTION_HTTP_REQUEST, .subject = open->host, .port = (uint16_t)open->port,
				 .method = request->method, .path = request->path };
	struct net_detail detail = { .port = open->port, .id = open->id, .request = request };
	struct decision decision = *request->path ? policy_decide(box->policy->policy, &action) : unread;

	if (decision.verdict != VERDICT_ALLOW)
		return deny(box, AUDIT_NET_HTTP, &action, decision, (pid_t)open->pid, &detail);
	box->allowed++;
	if (box->policy->policy->audit_network == AUDIT_OFF)
		return 0;
	return record(box, AUDIT_NET_HTTP, &action, &decision, (pid_t)open->pid, &detail);
}

int gate_log_address(struct box *box, const struct watch_network *event)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = event->address, .port = event->port };
	struct decision decision = policy_decide(box->policy->policy, &action);
	struct net_detail detail = { .port = event->port };
	int r;

	if (decision.verdict == VERDICT_ALLOW)
		return 0;
	r = deny(box, AUDIT_NET_CONNECT, &action, decision, event->pid, &detail);
	return r < 0 ? r : ENETUNREACH;
}

int gate_log_failure(struct box *box)
{
	static const char subject[] = "network gate";
	struct net_detail detail = { .detail_key = "failure", .detail = box->gate.failure };
	struct audit_event event = {
		.type = AUDIT_ALERT, .subject = subject, .subject_size = strlen(subject), .write_detail = write_detail,
		.context = &detail,
	};

	return audit_write(&box->audit, &event);
}
