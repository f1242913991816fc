/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/questions.h"

#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "gate-net/gate.h"
#include "gate-net/link.h"
#include "gate-net/log.h"
#include "os/proc.h"
#include "session/run-request.h"

/* A connection in the gate that waits for an answer. */
struct gate_pending {
	struct gate_pending *next;
	struct net_gate *gate;
	uint32_t id, pid;
	uint16_t port;
	bool has_left;
	char host[254];
	char address[46];            /* that host leads to, which is what was asked about; "": host was */
	/* Of a request: */
	bool is_answered;
	char *method, *path;         /* owned */
	struct gate_answered answered;
};

static struct queue_request describe(const struct gate_open *open, const struct decision *decision, char *program,
				     size_t size)
{
	bool is_known = open->pid && proc_program((pid_t)open->pid, program, size) == 0;

	return (struct queue_request){
		.action = { .kind = ACTION_NET_CONNECT, .subject = open->host, .port = (uint16_t)open->port },
		.decision = *decision,
		.pid = (pid_t)open->pid,
		.actor = { .program = is_known ? program : NULL },
	};
}

static void drop(struct net_gate *gate, struct gate_pending *pending)
{
	struct gate_pending **at = &gate->asking.first;

	while (*at != pending)
		at = &(*at)->next;
	*at = pending->next;
	free(pending);
}

static int on_answer(void *context, uint64_t token, const struct queue_outcome *outcome)
{
	struct gate_pending *pending = context;
	struct net_gate *gate = pending->gate;
	struct gate_pending answered = *pending;
	struct gate_open open = { .id = answered.id, .pid = answered.pid, .host = answered.host,
				  .port = answered.port };

	struct gate_resolved resolved = { open, answered.address };

	(void)token;
	drop(gate, pending);
	return *answered.address ? gate_log_resolved_answered(gate, &resolved, outcome)
				 : gate_log_answered(gate, &open, outcome);
}

/*
 * Nobody can be told by a connection whether its client is gone or has only said all that it wants to say. So it is
 * asked for where both is so: nothing more comes, and the program that made the connection is not there any more.
 */
static bool is_gone(void *context, uint64_t token)
{
	struct gate_pending *pending = context;
	struct net_gate *gate = pending->gate;
	struct queue_waiter waiter = { .done = on_answer, .context = pending };
	struct queue_outcome outcome;

	if (!pending->has_left || !pending->pid || !proc_is_over((pid_t)pending->pid))
		return false;
	/* What fails with the gate, or the log, is heard by all who use it next. */
	if (queue_give_up(gate->queue, &waiter, &outcome) > 0)
		(void)!on_answer(pending, token, &outcome);
	else
		drop(gate, pending);
	return true;
}

void gate_questions_left(struct net_gate *gate, uint32_t id)
{
	for (struct gate_pending *at = gate->asking.first; at; at = at->next)
		at->has_left = at->has_left || at->id == id;
}

/* address: "": what is asked about is the host. */
static int begin(struct net_gate *gate, const struct gate_open *open, const char *address,
		 const struct decision *decision, struct queue_outcome *out)
{
	struct gate_pending *pending = calloc(1, sizeof *pending);
	struct queue_waiter waiter = { .done = on_answer, .is_gone = is_gone, .context = pending };
	struct queue_request request;
	char program[PATH_MAX];
	int r;

	if (!pending || str_copy(pending->host, sizeof pending->host, open->host) < 0 ||
	    str_copy(pending->address, sizeof pending->address, address) < 0) {
		free(pending);
		return -ENOMEM;
	}
	pending->gate = gate;
	pending->id = open->id;
	pending->pid = open->pid;
	pending->port = (uint16_t)open->port;
	request = describe(open, decision, program, sizeof program);
	if (*address)
		request.action.subject = address;
	r = queue_begin(gate->queue, &request, &waiter, out);
	if (r <= 0) {
		free(pending);
		return r;
	}
	pending->next = gate->asking.first;
	gate->asking.first = pending;
	return 1;
}

int gate_questions_begin(struct net_gate *gate, const struct gate_open *open, const struct decision *decision,
		      struct queue_outcome *out)
{
	return begin(gate, open, "", decision, out);
}

int gate_questions_resolved(struct net_gate *gate, const struct gate_resolved *resolved,
			    const struct decision *decision, struct queue_outcome *out)
{
	return begin(gate, &resolved->open, resolved->address, decision, out);
}

int gate_questions_list(struct net_gate *gate, const struct gate_open *open, const struct decision *decision,
		     struct queue_outcome *out)
{
	char program[PATH_MAX];
	struct queue_request request = describe(open, decision, program, sizeof program);

	return queue_begin(gate->queue, &request, NULL, out);
}

/* ---- requests ---- */

static struct gate_pending *find_request(struct net_gate *gate, uint32_t id)
{
	struct gate_pending *at = gate->asking.requests;

	while (at && at->id != id)
		at = at->next;
	return at;
}

static void drop_request(struct net_gate *gate, struct gate_pending *request)
{
	struct gate_pending **at = &gate->asking.requests;

	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	gate->asking.request_count--;
	free(request->method);
	free(request->path);
	free(request);
}

static void copy_text(char *out, size_t size, const char *text)
{
	if (str_format(out, size, "%.*s", (int)size - 1, text) < 0)
		out[0] = 0;
}

static void conclude_request(struct gate_pending *request, const struct queue_outcome *outcome)
{
	struct net_gate *gate = request->gate;
	struct gate_answered *answered = &request->answered;
	struct gate_ask ask = { .id = request->id, .method = request->method, .path = request->path,
				.open = { .pid = request->pid, .host = request->host, .port = request->port } };
	struct decision decision = { outcome->verdict == QUEUE_ALLOWED ? VERDICT_ALLOW : VERDICT_DENY,
				     outcome->rule, outcome->reason, outcome->hint, NULL };

	gate_log_judge_again(gate, &ask, &decision);
	request->is_answered = true;
	answered->verdict = decision.verdict;
	copy_text(answered->rule, sizeof answered->rule, decision.rule.id);
	copy_text(answered->reason, sizeof answered->reason, decision.reason);
	copy_text(answered->hint, sizeof answered->hint, decision.hint);
	gate_answer_request(gate, request->id, &decision);
}

static int on_request_answer(void *context, uint64_t token, const struct queue_outcome *outcome)
{
	struct net_gate *gate = context;
	struct gate_pending *request = find_request(gate, (uint32_t)token);

	if (request)
		conclude_request(request, outcome);
	return 0;
}

static struct gate_pending *add_request(struct net_gate *gate, const struct gate_ask *ask)
{
	struct gate_pending *request = calloc(1, sizeof *request);

	if (!request)
		return NULL;
	*request = (struct gate_pending){ .next = gate->asking.requests, .gate = gate, .id = ask->id,
					  .pid = ask->open.pid, .port = (uint16_t)ask->open.port,
					  .method = str_dup(ask->method), .path = str_dup(ask->path) };
	gate->asking.requests = request;
	gate->asking.request_count++;
	if (request->method && request->path && str_copy(request->host, sizeof request->host, ask->open.host) == 0)
		return request;
	drop_request(gate, request);
	return NULL;
}

int gate_questions_request(struct net_gate *gate, const struct gate_ask *ask, const struct decision *decision)
{
	static const struct decision full = {
		VERDICT_DENY, { "ask.requests", "", 0 },
		"too many requests are asked about, or under way since they were", "send fewer at one time", NULL,
	};
	struct queue_waiter waiter = { .done = on_request_answer, .context = gate, .token = ask->id };
	struct queue_request request;
	struct queue_outcome outcome;
	struct gate_pending *pending;
	char program[PATH_MAX];
	int r;

	if (find_request(gate, ask->id))
		return -EBADMSG;
	if (gate->asking.request_count == GATE_REQUESTS_ASKED_MAX) {
		gate_answer_request(gate, ask->id, &full);
		return 0;
	}
	pending = add_request(gate, ask);
	if (!pending)
		return -ENOMEM;
	request = describe(&ask->open, decision, program, sizeof program);
	request.action.kind = ACTION_HTTP_REQUEST;
	request.action.method = pending->method;
	request.action.path = pending->path;
	r = queue_begin(gate->queue, &request, &waiter, &outcome);
	if (r == 0)
		conclude_request(pending, &outcome);
	return r < 0 ? r : 0;
}

bool gate_questions_take(struct net_gate *gate, uint32_t id, struct gate_answered *ret_answered)
{
	struct gate_pending *request = find_request(gate, id);

	if (!request || !request->is_answered)
		return false;
	*ret_answered = request->answered;
	drop_request(gate, request);
	return true;
}

void gate_questions_forget(struct net_gate *gate, uint32_t id)
{
	struct queue_waiter waiter = { .done = on_request_answer, .context = gate, .token = id };
	struct gate_pending *request = find_request(gate, id);

	if (!request)
		return;
	if (!request->is_answered)
		queue_forget(gate->queue, &waiter);
	drop_request(gate, request);
}

/* ---- all ---- */

bool gate_questions_is_on(struct net_gate *gate)
{
	return queue_was_heard(gate->queue) || queue_has_network_grants(gate->queue);
}

void gate_questions_done(struct net_gate *gate)
{
	while (gate->asking.first) {
		struct queue_waiter waiter = { .done = on_answer, .context = gate->asking.first };

		queue_forget(gate->queue, &waiter);
		drop(gate, gate->asking.first);
	}
	while (gate->asking.requests)
		gate_questions_forget(gate, gate->asking.requests->id);
}
