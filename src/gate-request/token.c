/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-request/token.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "approve/token-grants.h"
#include "audit/writer.h"
#include "gate-request/gate-state.h"
#include "os/clock.h"
#include "os/fd.h"
#include "supervise/refusals.h"
#include "supervise/run.h"

/*
 * atoll-token gets the text as its standard input, a memory file, so that it stands in no argument and in no file; and
 * says what it holds, or why it does not, over the socket that it has for that (wire/token.h). It confines itself
 * before it reads. Whatever becomes of it, who asked hears an answer: the end of the socket is one too.
 */

enum { TIME_SECONDS = 5, PAUSE_MS = 500, NS_PER_MS = 1000000 };

_Static_assert((int)TOKEN_FD == (int)PEER_FD, "atoll-token answers where the wire says");

static int reply(struct access_gate *gate, uint32_t id, enum desk_verdict verdict, const char *reason, const char *hint)
{
	struct desk_answer answer = { .id = id, .verdict = verdict, .rule = "ask.token", .reason = reason,
				      .hint = hint };

	if (desk_answer_put(&gate->run->out, &answer) == 0)
		access_gate_send(gate);
	return 0;
}

/* ---- the program ---- */

static int start_program(struct access_gate *gate, int text_fd)
{
	const struct run_request *request = gate->run->request;
	const char *policy = gate->run->policy->policy->name;
	char *argv[] = { (char *)"atoll-token", (char *)"--keys", (char *)request->token.keys, (char *)"--store",
			 (char *)request->token.store, (char *)"--project", (char *)request->project,
			 (char *)"--agent", (char *)policy, (char *)"--agent",
			 (char *)(request->name ? request->name : policy), (char *)"take", (char *)"--", (char *)"-",
			 NULL };
	const struct peer_fd text = { text_fd, STDIN_FILENO };
	const struct peer_spec spec = { .argv = argv, .given = &text, .given_count = 1, .seconds = TIME_SECONDS };
	int r = peer_start(&gate->token.peer, &spec);

	return r < 0 ? r : peer_listen(&gate->token.peer);
}

/* ---- what it says ---- */

/* It has counted and written down before it spoke. */
static void close_job(struct access_gate *gate)
{
	struct access_token *token = &gate->token;

	peer_close(&token->peer, false);
	token->id = 0;
	token->free_ns = clock_monotonic_ns() + PAUSE_MS * (uint64_t)NS_PER_MS;
}

void access_token_done(struct access_gate *gate)
{
	close_job(gate);
}

struct refusal {
	const char *fault, *token;   /* token: its id; NULL: nobody can tell */
};

static void write_detail(struct json *json, const void *context)
{
	const struct refusal *refusal = context;

	json_string(json, "change", "token");
	json_string(json, "fault", refusal->fault);
	json_string(json, "token", refusal->token);
}

static int log_refusal(struct access_gate *gate, const char *fault, const char *id)
{
	static const char subject[] = "capability token";
	struct refusal refusal = { fault, id };
	struct audit_event event = {
		.type = AUDIT_POLICY_CHANGE, .verdict = verdict_names[VERDICT_DENY], .rule = "ask.token",
		.subject = subject, .subject_size = strlen(subject), .write_detail = write_detail,
		.context = &refusal,
	};

	gate->run->refusals->denied++;
	return audit_write(gate->run->audit, &event);
}

static int refuse(struct access_gate *gate, uint32_t id, const char *fault, const char *token, const char *reason,
		  const char *hint)
{
	int r = log_refusal(gate, fault, token);

	if (r == 0)
		r = rate_refused(gate->run);
	return r < 0 ? r : reply(gate, id, DESK_DENIED, reason, hint);
}

static int fail(struct access_gate *gate, uint32_t id)
{
	return refuse(gate, id, "failed", NULL, "the token could not be checked, so it is refused",
		      "the person outside can look: atoll token verify");
}

static int on_refused(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct access_gate *gate = context;
	struct token_refused refused;
	uint32_t id = gate->token.id;

	(void)fds, (void)fd_count;
	if (token_refused_get(frame, &refused) < 0)
		return -EBADMSG;
	close_job(gate);
	return peer_fail(&gate->token.peer, refuse(gate, id, refused.fault, refused.id, refused.reason, ""));
}

static int on_holds(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct access_gate *gate = context;
	struct err err = { 0 };
	uint32_t id = gate->token.id;
	int r = token_grants_add(gate->queue, frame, &err);

	(void)fds, (void)fd_count;
	close_job(gate);
	if (r == 1)
		r = refuse(gate, id, "here", NULL, err.message, err.hint);
	else if (r == 0)
		r = reply(gate, id, DESK_ALLOWED, "the token holds here, for as long as it says", "");
	return peer_fail(&gate->token.peer, r);
}

static const struct frame_rule rules[] = {
	{ TOKEN_REFUSED, PEER_BIT(SERVING), TOKEN_HELD_MAX, 0, 0, on_refused },
	{ TOKEN_HOLDS, PEER_BIT(SERVING), TOKEN_HELD_MAX, 0, 0, on_holds },
};

static int broke(void *context, enum peer_fault fault)
{
	struct access_gate *gate = context;
	uint32_t id = gate->token.id;

	(void)fault;
	close_job(gate);
	return fail(gate, id);
}

static const struct peer_kind reader = {
	.program = "atoll-token", .rules = rules, .rule_count = ARRAY_SIZE(rules), .broke = broke,
};

void access_token_init(struct access_gate *gate)
{
	peer_init(&gate->token.peer, gate->run, &reader, UINT_MAX, gate);
}

/* ---- the request ---- */

static int start(struct access_gate *gate, const void *text, size_t size)
{
	int low_fd = fd_memfd_sealed("token", text, size);
	cleanup_fd int text_fd = low_fd < 0 ? low_fd : fd_move_above(low_fd, PEER_ABOVE);

	if (text_fd < 0)
		return text_fd;
	if (lseek(text_fd, 0, SEEK_SET) < 0)
		return -errno;
	return start_program(gate, text_fd);
}

int access_token_present(struct access_gate *gate, uint32_t id, const void *text, size_t size)
{
	struct access_token *token = &gate->token;

	if (!*gate->run->request->token.keys)
		return refuse(gate, id, "nowhere", NULL, "the token is refused: there is no place for keys outside",
			      "start the sandbox as a user with a home directory");
	if (token->id || clock_monotonic_ns() < token->free_ns)
		return reply(gate, id, DESK_UNANSWERED, "one token is looked at after the other",
			     "present it again in a second");
	token->id = id;
	if (start(gate, text, size) == 0)
		return 0;
	close_job(gate);
	return fail(gate, id);
}
