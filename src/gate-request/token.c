/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-request/token.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "approve/token-grants.h"
#include "audit/writer.h"
#include "gate-request/gate-state.h"
#include "os/clock.h"
#include "os/fd.h"
#include "supervise/peer.h"
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
	const struct peer_spec spec = { .program = "atoll-token", .argv = argv, .given = &text, .given_count = 1,
					     .seconds = TIME_SECONDS };
	struct access_token *token = &gate->token;

	return peer_start_as(request->init_path, &spec, &token->near_fd, &token->process);
}

/* ---- what it says ---- */

static void close_job(struct access_gate *gate)
{
	struct access_token *token = &gate->token;
	siginfo_t info;

	loop_remove(gate->run->loop, &token->source);
	close_fd(&token->near_fd);
	if (token->process.fd >= 0) {
		/* It has counted and written down before it spoke. */
		(void)!pidref_signal(&token->process, SIGKILL);
		(void)!pidref_wait(&token->process, WEXITED, &info, NULL);
		pidref_done(&token->process);
		token->process = PIDREF_NONE;
	}
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

static int on_refused(struct access_gate *gate, uint32_t id, struct frame *frame)
{
	struct token_refused refused;

	if (token_refused_get(frame, &refused) < 0)
		return fail(gate, id);
	return refuse(gate, id, refused.fault, refused.id, refused.reason, "");
}

static int on_holds(struct access_gate *gate, uint32_t id, struct frame *frame)
{
	struct err err = { 0 };
	int r = token_grants_add(gate->queue, frame, &err);

	if (r == 1)
		return refuse(gate, id, "here", NULL, err.message, err.hint);
	return r < 0 ? r : reply(gate, id, DESK_ALLOWED, "the token holds here, for as long as it says", "");
}

static int hear(void *context, uint32_t events)
{
	struct access_gate *gate = context;
	struct access_token *token = &gate->token;
	static uint8_t bytes[TOKEN_HELD_MAX];
	uint32_t id = token->id;
	struct frame frame;
	size_t fd_count;
	ssize_t n = fd_receive_message(token->near_fd, bytes, sizeof bytes, NULL, 0, &fd_count);

	(void)events;
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	close_job(gate);
	if (n <= 0 || frame_open(&frame, bytes, (size_t)n) < 0)
		return fail(gate, id);
	if (frame.type == TOKEN_REFUSED)
		return on_refused(gate, id, &frame);
	return frame.type == TOKEN_HOLDS ? on_holds(gate, id, &frame) : fail(gate, id);
}

/* ---- the request ---- */

static int start(struct access_gate *gate, const void *text, size_t size)
{
	struct access_token *token = &gate->token;
	int low_fd = fd_memfd_sealed("token", text, size), r;
	cleanup_fd int text_fd = low_fd < 0 ? low_fd : fd_move_above(low_fd, PEER_ABOVE);

	if (text_fd < 0)
		return text_fd;
	if (lseek(text_fd, 0, SEEK_SET) < 0)
		return -errno;
	r = start_program(gate, text_fd);
	token->source = (struct loop_source){ .fd = token->near_fd, .events = EPOLLIN, .ready = hear, .context = gate };
	return r == 0 ? loop_add(gate->run->loop, &token->source) : r;
}

int access_token_present(struct access_gate *gate, uint32_t id, const void *text, size_t size)
{
	struct access_token *token = &gate->token;

	if (!*gate->run->request->token.keys)
		return refuse(gate, id, "nowhere", NULL, "the token is refused: there is no place for keys outside",
			      "start the sandbox by somebody with a home directory");
	if (token->id || clock_monotonic_ns() < token->free_ns)
		return reply(gate, id, DESK_UNANSWERED, "one token is looked at after the other",
			     "present it again in a second");
	token->id = id;
	if (start(gate, text, size) == 0)
		return 0;
	close_job(gate);
	return fail(gate, id);
}
