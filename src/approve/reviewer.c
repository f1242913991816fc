/* SPDX-License-Identifier: Apache-2.0 */
#include "approve/reviewer.h"

#include <limits.h>
#include <fcntl.h>
#include <string.h>

#include "approve/queue.h"
#include "approve/reviewer-start.h"
#include "audit/writer.h"
#include "base/json.h"
#include "base/str.h"
#include "os/clock.h"
#include "supervise/cooldown.h"
#include "supervise/freeze.h"
#include "supervise/path-search.h"
#include "supervise/peer.h"
#include "supervise/run.h"

/*
 * One program for the session, started with the first case. Each case waits for it, and for no longer than the policy
 * says and a little: a program that is stopped is an opinion that is not clear. One that falls is started again for the
 * next case, a few times.
 */

enum { NS_PER_MS = 1000000, STARTS_MAX = 4, GRACE_MS = 2000, END_MS = 500, SUBJECT_SIZE = 128 };

struct open_case {
	uint32_t id;                 /* 0: free */
	struct reviewer_waiter waiter;
	uint64_t begun_ns, until_ns;
	struct path_search search;   /* of a shell along PATH: each place is judged, and all are one refusal */
	struct external_subject {
		pid_t pid;
		char program[PATH_MAX];
	} subject;
};

struct reviewer_state {
	struct peer peer;            /* atoll-judge */
	struct open_case cases[JUDGE_OPEN_MAX];
	uint32_t last_id;
	struct cooldown denials;
	struct path_search denied;   /* the last one */
	bool is_tripped;             /* everything is frozen, and a person is asked */
	uint64_t asked, opinions[JUDGE_VERDICT_COUNT], trips;
	char reason[JUDGE_REASON_MAX];
};

static const struct external_verifier *verifier(const struct reviewer *reviewer)
{
	return &reviewer->run->policy->policy->external;
}

bool reviewer_wants(const struct reviewer *reviewer, enum verdict verdict)
{
	const struct external_verifier *external = verifier(reviewer);

	/* What happens in a trial leads nowhere; when it is done for real, it is brought before the verifier. */
	if (reviewer->run->request->flags & REQUEST_TRIAL)
		return false;
	return external_is_given(external) && verdict != VERDICT_DENY &&
	       (verdict == VERDICT_ASK || external->when == VERIFY_ALL);
}

static const struct peer_kind judge;

static struct reviewer_state *open_external(struct reviewer *reviewer)
{
	if (reviewer->state)
		return reviewer->state;
	reviewer->state = calloc(1, sizeof *reviewer->state);
	/* A secret lies in its socket once. */
	if (reviewer->state)
		peer_init(&reviewer->state->peer, reviewer->run, &judge, verifier(reviewer)->secret ? 1 : STARTS_MAX,
			  reviewer);
	return reviewer->state;
}

/* ---- the log ---- */

struct opinion_context {
	const struct reviewer_opinion *opinion;
	uint64_t ms;
};

static void put_detail(struct json *json, const void *context)
{
	const struct opinion_context *opinion = context;

	json_string(json, "opinion", judge_verdict_names[opinion->opinion->verdict]);
	json_string(json, "reason", opinion->opinion->reason);
	json_u64(json, "ms", opinion->ms);
}

static int log_opinion(struct reviewer *reviewer, const struct external_subject *subject,
		       const struct reviewer_opinion *opinion, uint64_t begun_ns)
{
	static const enum verdict verdicts[JUDGE_VERDICT_COUNT] = {
		[JUDGE_ALLOW] = VERDICT_ALLOW, [JUDGE_DENY] = VERDICT_DENY, [JUDGE_UNCLEAR] = VERDICT_ASK,
	};
	struct opinion_context context = { opinion, (clock_monotonic_ns() - begun_ns) / NS_PER_MS };
	struct audit_event event = {
		.type = AUDIT_VERIFY_EXTERNAL, .verdict = verdict_names[verdicts[opinion->verdict]],
		.rule = "verify.external", .pid = subject->pid, .subject = subject->program,
		.subject_size = strlen(subject->program), .write_detail = put_detail, .context = &context,
	};

	return audit_write(reviewer->run->audit, &event);
}

/* ---- the breaker ---- */

static const struct freeze_holder breaker_freeze = { .thawed = freeze_log, .ends_run = true };

static int resumed(void *context, uint64_t token, const struct queue_outcome *outcome)
{
	struct reviewer *reviewer = context;

	reviewer->state->is_tripped = false;
	if (outcome->verdict == QUEUE_ALLOWED)
		return freeze_end(reviewer->run->freeze);
	run_end(reviewer->run, ENDED_STOPPED);
	return 0;
}

static int ask_to_go_on(struct reviewer *reviewer)
{
	const struct external_verifier *external = verifier(reviewer);
	char subject[SUBJECT_SIZE];
	struct queue_request request = {
		.action = { .kind = ACTION_ALERT, .subject = subject },
		.decision = { VERDICT_ASK, { "verify.external.breaker", "", 0 },
			      "the external verifier refused too much, so everything inside is frozen", "", NULL },
	};
	struct queue_waiter waiter = { .done = resumed, .context = reviewer };
	struct queue_outcome outcome;
	int r;

	if (str_format(subject, sizeof subject, "the external verifier refused %llu commands, stop %llu",
		       (unsigned long long)external->breaker.denials, (unsigned long long)reviewer->state->trips) < 0)
		return -EINVAL;
	r = queue_begin(reviewer->queue, &request, &waiter, &outcome);
	return r == 0 ? resumed(reviewer, 0, &outcome) : r < 0 ? r : 0;
}

/* Enough was refused: the agent does not go on by itself. */
static int trip(struct reviewer *reviewer)
{
	const struct external_verifier *external = verifier(reviewer);
	uint64_t until_ns =
		clock_monotonic_ns() + (reviewer->run->policy->policy->ask.timeout_ms + GRACE_MS) * NS_PER_MS;
	int r;

	if (reviewer->run->ended != ENDED_NOT || reviewer->state->is_tripped)
		return 0;
	reviewer->state->trips++;
	r = run_limit_hit(reviewer->run, "verify.external.breaker", external->breaker.denials);
	if (r < 0)
		return r;
	if (external->breaker_action == BREAKER_END ||
	    freeze_begin_soon(reviewer->run->freeze, &breaker_freeze, "verify.external.breaker", until_ns) < 0) {
		run_end(reviewer->run, ENDED_STOPPED);
		return 0;
	}
	reviewer->state->is_tripped = true;
	return ask_to_go_on(reviewer);
}

/* ---- opinions ---- */

/* The first time at which a case has waited for too long. */
static void expect(struct reviewer_state *external)
{
	uint64_t until_ns = UINT64_MAX;

	for (size_t i = 0; i < JUDGE_OPEN_MAX; i++)
		if (external->cases[i].id && external->cases[i].until_ns < until_ns)
			until_ns = external->cases[i].until_ns;
	peer_expect(&external->peer, until_ns);
}

static int conclude(struct reviewer *reviewer, struct open_case *open, const struct reviewer_opinion *opinion)
{
	struct reviewer_state *external = reviewer->state;
	struct open_case was = *open;
	int r = log_opinion(reviewer, &was.subject, opinion, was.begun_ns);

	*open = (struct open_case){ 0 };
	expect(external);
	external->opinions[opinion->verdict]++;
	if (r == 0)
		r = was.waiter.done(was.waiter.context, was.waiter.token, opinion);
	if (r == 0 && opinion->verdict == JUDGE_DENY && !path_search_goes_on(&external->denied, &was.search) &&
	    cooldown_count(&external->denials, &verifier(reviewer)->breaker, clock_monotonic_ns()))
		r = trip(reviewer);
	return r;
}

static struct open_case *find(struct reviewer_state *external, uint32_t id)
{
	for (size_t i = 0; i < JUDGE_OPEN_MAX; i++)
		if (external->cases[i].id == id)
			return &external->cases[i];
	return NULL;
}

static int on_verdict(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct reviewer *reviewer = context;
	struct reviewer_opinion opinion;
	struct open_case *open;
	uint32_t id;
	int r = judge_verdict_get(frame, &id, &opinion.verdict, &opinion.reason);

	if (r < 0)
		return r;
	/* One that was forgotten meanwhile. */
	open = find(reviewer->state, id);
	if (!open || str_copy(reviewer->state->reason, sizeof reviewer->state->reason, opinion.reason) < 0)
		return 0;
	opinion.reason = reviewer->state->reason;
	return peer_fail(&reviewer->state->peer, conclude(reviewer, open, &opinion));
}

static const struct frame_rule rules[] = {
	{ JUDGE_VERDICT, PEER_BIT(SERVING), 1024, 0, 0, on_verdict },
};

/* It is gone, and with it what it was asked. */
static int broke(void *context, enum peer_fault fault)
{
	static const struct reviewer_opinion gone = { JUDGE_UNCLEAR, "the program that asks the verifier has ended" };
	struct reviewer *reviewer = context;
	struct reviewer_state *external = reviewer->state;
	int r = 0;

	(void)fault;
	for (size_t i = 0; r == 0 && i < JUDGE_OPEN_MAX; i++)
		if (external->cases[i].id)
			r = conclude(reviewer, &external->cases[i], &gone);
	return r;
}

static int late(void *context, uint64_t now_ns)
{
	static const struct reviewer_opinion late = { JUDGE_UNCLEAR, "the verifier did not answer in time" };
	struct reviewer *reviewer = context;
	struct reviewer_state *external = reviewer->state;
	int r = 0;

	for (size_t i = 0; r == 0 && i < JUDGE_OPEN_MAX; i++)
		if (external->cases[i].id && external->cases[i].until_ns <= now_ns)
			r = conclude(reviewer, &external->cases[i], &late);
	expect(external);
	return r;
}

/* ---- the program ---- */

static const struct peer_kind judge = {
	.program = "atoll-judge", .user = PEER_JUDGE, .rules = rules, .rule_count = ARRAY_SIZE(rules),
	.leave_ms = END_MS, .broke = broke, .late = late,
};

static int start(struct reviewer *reviewer)
{
	struct peer *peer = &reviewer->state->peer;
	const struct reviewer_origin origin = {
		.env = reviewer->run->request->command.env, .secret_fd = reviewer->run->request->secrets.judge_fd,
	};
	int r = peer_start(peer, NULL);

	if (r < 0)
		return r;
	r = reviewer_greet(verifier(reviewer), &origin, peer->fd, &reviewer->run->out);
	if (r < 0)
		peer_break(peer, PEER_DEAF);
	return r < 0 ? r : peer_listen(peer);
}

/* ---- a case ---- */

static void put_bytes(struct json *json, const char *key, const char *text)
{
	if (text)
		json_bytes(json, key, text, strlen(text));
	else
		json_null(json, key);
}

static void put_case(struct reviewer *reviewer, const struct reviewer_request *request, struct buf *out)
{
	const struct action *action = &request->action;
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_u64(&json, "v", 1);
	json_string(&json, "session", reviewer->run->request->session);
	put_bytes(&json, "project", reviewer->run->request->project);
	put_bytes(&json, "task", reviewer->run->request->task);
	json_object_begin(&json, "action");
	json_string(&json, "kind", action_kind_names[action->kind]);
	put_bytes(&json, "subject", action->subject);
	json_array_begin(&json, "argv");
	for (const char *const *word = action->argv; word && *word; word++)
		put_bytes(&json, NULL, *word);
	json_array_end(&json);
	put_bytes(&json, "cwd", request->cwd);
	put_bytes(&json, "program", request->program);
	json_object_end(&json);
	json_string(&json, "verdict", verdict_names[request->verdict]);
	json_string(&json, "rule", request->rule);
	/* Written by the rules' own program. */
	buf_put_text(out, ",\"findings\":");
	buf_put_text(out, request->findings ? request->findings : "[]");
	json_object_end(&json);
}

static int unclear(struct reviewer *reviewer, const struct reviewer_request *request, const char *reason,
		   struct reviewer_opinion *ret_opinion)
{
	struct external_subject subject = { .pid = request->pid };

	if (str_copy(subject.program, sizeof subject.program, request->action.subject) < 0)
		subject.program[0] = 0;
	*ret_opinion = (struct reviewer_opinion){ JUDGE_UNCLEAR, reason };
	if (reviewer->state)
		reviewer->state->opinions[JUDGE_UNCLEAR]++;
	return log_opinion(reviewer, &subject, ret_opinion, clock_monotonic_ns());
}

int reviewer_begin(struct reviewer *reviewer, const struct reviewer_request *request,
			  const struct reviewer_waiter *waiter, struct reviewer_opinion *ret_opinion)
{
	struct reviewer_state *external = open_external(reviewer);
	cleanup_buf struct buf text;
	struct open_case *open = external ? find(external, 0) : NULL;

	buf_init(&text, JUDGE_CASE_MAX);
	if (!external)
		return -ENOMEM;
	external->asked++;
	if (!open)
		return unclear(reviewer, request, "too many programs wait for the verifier", ret_opinion);
	put_case(reviewer, request, &text);
	if (buf_error(&text))
		return unclear(reviewer, request, "it is too long to be judged", ret_opinion);
	if (!peer_is_there(&external->peer) && start(reviewer) < 0)
		return unclear(reviewer, request, "the program that asks the verifier cannot be started", ret_opinion);
	if (judge_case_put(&reviewer->run->out, ++external->last_id, buf_text(&text)) < 0 ||
	    peer_send(&external->peer, NULL, 0) < 0)
		return unclear(reviewer, request, "the verifier takes nothing now", ret_opinion);
	*open = (struct open_case){ .id = external->last_id, .waiter = *waiter, .begun_ns = clock_monotonic_ns() };
	open->until_ns = open->begun_ns + (verifier(reviewer)->timeout_ms + GRACE_MS) * NS_PER_MS;
	open->subject.pid = request->pid;
	open->search = path_search_of(request->pid, request->action.subject, request->action.argv, "");
	if (str_copy(open->subject.program, sizeof open->subject.program, request->action.subject) < 0)
		open->subject.program[0] = 0;
	expect(external);
	return 1;
}

void reviewer_forget(struct reviewer *reviewer, const struct reviewer_waiter *waiter)
{
	struct reviewer_state *external = reviewer->state;

	for (size_t i = 0; external && i < JUDGE_OPEN_MAX; i++) {
		struct open_case *open = &external->cases[i];

		if (!open->id || open->waiter.done != waiter->done || open->waiter.context != waiter->context ||
		    open->waiter.token != waiter->token)
			continue;
		if (peer_is_there(&external->peer) && judge_forget_put(&reviewer->run->out, open->id) == 0)
			(void)!peer_send(&external->peer, NULL, 0);
		*open = (struct open_case){ 0 };
		expect(external);
	}
}

/* ---- the end ---- */

void reviewer_to_json(const struct reviewer *reviewer, struct json *json)
{
	const struct reviewer_state *external = reviewer->state;

	if (!external) {
		json_null(json, "external");
		return;
	}
	json_object_begin(json, "external");
	json_u64(json, "asked", external->asked);
	for (unsigned i = 0; i < JUDGE_VERDICT_COUNT; i++)
		json_u64(json, judge_verdict_names[i], external->opinions[i]);
	json_u64(json, "stops", external->trips);
	json_object_end(json);
}

/* At the end of the socket it kills what it has started. */
void reviewer_close(struct reviewer *reviewer)
{
	struct reviewer_state *external = reviewer->state;

	if (!external)
		return;
	peer_retire(&external->peer, true);
	memset(external->cases, 0, sizeof external->cases);
}

static void reviewer_free(void *context)
{
	struct reviewer *reviewer = context;

	if (reviewer->state)
		peer_retire(&reviewer->state->peer, false);
	free(reviewer->state);
	reviewer->state = NULL;
}

const struct module reviewer_module = {
	.name = "reviewer",
	.done = reviewer_free,
};
