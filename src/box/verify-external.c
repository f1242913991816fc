/* SPDX-License-Identifier: Apache-2.0 */
#include "box/verify-external.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/str.h"
#include "box/exec-search.h"
#include "box/judge-start.h"
#include "box/state.h"
#include "box/trust.h"
#include "os/clock.h"
#include "os/fd.h"
#include "supervise/cooldown.h"
#include "supervise/peer.h"

/*
 * One program for the session, started with the first case. Each case waits for it, and for no longer than the policy
 * says and a little: a program that is stopped is an opinion that is not clear. One that falls is started again for the
 * next case, a few times.
 */

enum { NS_PER_MS = 1000000, STARTS_MAX = 4, GRACE_MS = 2000, END_MS = 500, SUBJECT_SIZE = 128 };

struct open_case {
	uint32_t id;                 /* 0: free */
	struct external_waiter waiter;
	uint64_t begun_ns, until_ns;
	struct exec_search search;   /* of a shell along PATH: each place is judged, and all are one refusal */
	struct external_subject {
		pid_t pid;
		char program[PATH_MAX];
	} subject;
};

struct external {
	int fd;                      /* owned; FD_NONE: no program runs */
	struct pidref process;
	struct loop_source source;
	struct open_case cases[JUDGE_OPEN_MAX];
	uint32_t last_id;
	unsigned starts;
	struct cooldown denials;
	struct exec_search denied;   /* the last one */
	bool is_tripped;             /* everything is frozen, and a person is asked */
	uint64_t asked, opinions[JUDGE_VERDICT_COUNT], trips;
	char reason[JUDGE_REASON_MAX];
	int fatal;
};

static const struct external_verifier *verifier(const struct box *box)
{
	return &box->run.policy->policy->external;
}

bool verify_external_wants(const struct box *box, enum verdict verdict)
{
	const struct external_verifier *external = verifier(box);

	/* What happens in a trial leads nowhere; when it is done for real, it is brought before the verifier. */
	if (box->run.request->flags & REQUEST_TRIAL)
		return false;
	return external_is_given(external) && verdict != VERDICT_DENY &&
	       (verdict == VERDICT_ASK || external->when == VERIFY_ALL);
}

static struct external *open_external(struct box *box)
{
	if (box->external)
		return box->external;
	box->external = calloc(1, sizeof *box->external);
	if (box->external) {
		box->external->fd = FD_NONE;
		box->external->process = PIDREF_NONE;
	}
	return box->external;
}

/* ---- the log ---- */

struct opinion_context {
	const struct external_opinion *opinion;
	uint64_t ms;
};

static void put_detail(struct json *json, const void *context)
{
	const struct opinion_context *opinion = context;

	json_string(json, "opinion", judge_verdict_names[opinion->opinion->verdict]);
	json_string(json, "reason", opinion->opinion->reason);
	json_u64(json, "ms", opinion->ms);
}

static int log_opinion(struct box *box, const struct external_subject *subject, const struct external_opinion *opinion,
		       uint64_t begun_ns)
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

	return audit_write(box->run.audit, &event);
}

/* ---- the breaker ---- */

static const struct freeze_holder breaker_freeze = { .thawed = freeze_log, .ends_run = true };

static int resumed(void *context, uint64_t token, const struct asking_outcome *outcome)
{
	struct box *box = context;

	box->external->is_tripped = false;
	if (outcome->verdict == ASKING_ALLOWED)
		return freeze_end(box->run.freeze);
	run_end(&box->run, ENDED_STOPPED);
	return 0;
}

static int ask_to_go_on(struct box *box)
{
	const struct external_verifier *external = verifier(box);
	char subject[SUBJECT_SIZE];
	struct asking_request request = {
		.action = { .kind = ACTION_ALERT, .subject = subject },
		.decision = { VERDICT_ASK, { "verify.external.breaker", "", 0 },
			      "the external verifier refused too much, so everything inside stands still", "", NULL },
	};
	struct asking_waiter waiter = { .done = resumed, .context = box };
	struct asking_outcome outcome;
	int r;

	if (str_format(subject, sizeof subject, "the external verifier refused %llu commands, stop %llu",
		       (unsigned long long)external->breaker.denials, (unsigned long long)box->external->trips) < 0)
		return -EINVAL;
	r = asking_begin(box, &request, &waiter, &outcome);
	return r == 0 ? resumed(box, 0, &outcome) : r < 0 ? r : 0;
}

/* Enough was refused: the agent does not go on by itself. */
static int trip(struct box *box)
{
	const struct external_verifier *external = verifier(box);
	uint64_t until_ns =
		clock_monotonic_ns() + (box->run.policy->policy->ask.timeout_ms + GRACE_MS) * NS_PER_MS;
	int r;

	if (box->run.ended != ENDED_NOT || box->external->is_tripped)
		return 0;
	box->external->trips++;
	r = run_limit_hit(&box->run, "verify.external.breaker", external->breaker.denials);
	if (r < 0)
		return r;
	if (external->breaker_action == BREAKER_END ||
	    freeze_begin_soon(box->run.freeze, &breaker_freeze, "verify.external.breaker", until_ns) < 0) {
		run_end(&box->run, ENDED_STOPPED);
		return 0;
	}
	box->external->is_tripped = true;
	return ask_to_go_on(box);
}

/* ---- opinions ---- */

static int conclude(struct box *box, struct open_case *open, const struct external_opinion *opinion)
{
	struct external *external = box->external;
	struct open_case was = *open;
	int r = log_opinion(box, &was.subject, opinion, was.begun_ns);

	*open = (struct open_case){ 0 };
	external->opinions[opinion->verdict]++;
	if (r == 0)
		r = was.waiter.done(was.waiter.context, was.waiter.token, opinion);
	if (r == 0 && opinion->verdict == JUDGE_DENY && !exec_search_goes_on(&external->denied, &was.search) &&
	    cooldown_count(&external->denials, &verifier(box)->breaker, clock_monotonic_ns()))
		r = trip(box);
	return r;
}

static struct open_case *find(struct external *external, uint32_t id)
{
	for (size_t i = 0; i < JUDGE_OPEN_MAX; i++)
		if (external->cases[i].id == id)
			return &external->cases[i];
	return NULL;
}

static int on_verdict(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct box *box = context;
	struct external_opinion opinion;
	struct open_case *open;
	uint32_t id;
	int r = judge_verdict_get(frame, &id, &opinion.verdict, &opinion.reason);

	if (r < 0)
		return r;
	/* One that was forgotten meanwhile. */
	open = find(box->external, id);
	if (!open || str_copy(box->external->reason, sizeof box->external->reason, opinion.reason) < 0)
		return 0;
	opinion.reason = box->external->reason;
	box->external->fatal = conclude(box, open, &opinion);
	return box->external->fatal;
}

static const struct frame_rule rules[] = {
	{ JUDGE_VERDICT, 1, 1024, 0, 0, on_verdict },
};

/* It is gone, and with it what it was asked. */
static int lose(struct box *box)
{
	static const struct external_opinion gone = { JUDGE_UNCLEAR, "the program that asks the verifier has ended" };
	struct external *external = box->external;
	int r = 0;

	loop_remove(box->run.loop, &external->source);
	close_fd(&external->fd);
	peer_end(&external->process);
	for (size_t i = 0; r == 0 && i < JUDGE_OPEN_MAX; i++)
		if (external->cases[i].id)
			r = conclude(box, &external->cases[i], &gone);
	return r;
}

static int judge_speaks(void *context, uint32_t events)
{
	struct box *box = context;
	int r = frame_dispatch(box->external->fd, &box->run.scratch, 0, rules, ARRAY_SIZE(rules), box);

	(void)events;
	if (box->external->fatal < 0)
		return box->external->fatal;
	return r > 0 || r == -EAGAIN ? 0 : lose(box);
}

/* ---- the program ---- */

static int start(struct box *box)
{
	struct external *external = box->external;
	const struct judge_origin origin = {
		.init_path = box->run.request->init_path, .uid = peer_uid(&box->run, PEER_JUDGE),
		.env = box->run.request->env, .secret_fd = box->run.request->judge_secret_fd,
	};
	int r;

	/* A secret lies in its socket once. */
	if (external->starts >= (verifier(box)->secret ? 1 : STARTS_MAX))
		return -ECHILD;
	external->starts++;
	r = judge_start_program(verifier(box), &origin, &box->run.out, &external->fd, &external->process);
	external->source = (struct loop_source){ .fd = external->fd, .events = EPOLLIN, .ready = judge_speaks,
						 .context = box };
	if (r == 0)
		r = loop_add(box->run.loop, &external->source);
	if (r < 0) {
		loop_remove(box->run.loop, &external->source);
		close_fd(&external->fd);
		peer_end(&external->process);
	}
	return r;
}

/* ---- a case ---- */

static void put_bytes(struct json *json, const char *key, const char *text)
{
	if (text)
		json_bytes(json, key, text, strlen(text));
	else
		json_null(json, key);
}

static void put_case(struct box *box, const struct external_request *request, struct buf *out)
{
	const struct action *action = &request->action;
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_u64(&json, "v", 1);
	json_string(&json, "session", box->run.request->session);
	put_bytes(&json, "project", box->run.request->project);
	put_bytes(&json, "task", box->run.request->task);
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

static int unclear(struct box *box, const struct external_request *request, const char *reason,
		   struct external_opinion *ret_opinion)
{
	struct external_subject subject = { .pid = request->pid };

	if (str_copy(subject.program, sizeof subject.program, request->action.subject) < 0)
		subject.program[0] = 0;
	*ret_opinion = (struct external_opinion){ JUDGE_UNCLEAR, reason };
	if (box->external)
		box->external->opinions[JUDGE_UNCLEAR]++;
	return log_opinion(box, &subject, ret_opinion, clock_monotonic_ns());
}

int verify_external_begin(struct box *box, const struct external_request *request,
			  const struct external_waiter *waiter, struct external_opinion *ret_opinion)
{
	struct external *external = open_external(box);
	cleanup_buf struct buf text;
	struct open_case *open = external ? find(external, 0) : NULL;

	buf_init(&text, JUDGE_CASE_MAX);
	if (!external)
		return -ENOMEM;
	external->asked++;
	if (!open)
		return unclear(box, request, "too many programs wait for the verifier", ret_opinion);
	put_case(box, request, &text);
	if (buf_error(&text))
		return unclear(box, request, "it is too long to be judged", ret_opinion);
	if (external->fd < 0 && start(box) < 0)
		return unclear(box, request, "the program that asks the verifier cannot be started", ret_opinion);
	if (judge_case_put(&box->run.out, ++external->last_id, buf_text(&text)) < 0 ||
	    frame_send(external->fd, &box->run.out, NULL, 0) < 0)
		return unclear(box, request, "the verifier takes nothing now", ret_opinion);
	*open = (struct open_case){ .id = external->last_id, .waiter = *waiter, .begun_ns = clock_monotonic_ns() };
	open->until_ns = open->begun_ns + (verifier(box)->timeout_ms + GRACE_MS) * NS_PER_MS;
	open->subject.pid = request->pid;
	open->search = exec_search_of(request->pid, request->action.subject, request->action.argv, "");
	if (str_copy(open->subject.program, sizeof open->subject.program, request->action.subject) < 0)
		open->subject.program[0] = 0;
	return 1;
}

void verify_external_forget(struct box *box, const struct external_waiter *waiter)
{
	struct external *external = box->external;

	for (size_t i = 0; external && i < JUDGE_OPEN_MAX; i++) {
		struct open_case *open = &external->cases[i];

		if (!open->id || open->waiter.done != waiter->done || open->waiter.context != waiter->context ||
		    open->waiter.token != waiter->token)
			continue;
		if (external->fd >= 0 && judge_forget_put(&box->run.out, open->id) == 0)
			(void)!frame_send(external->fd, &box->run.out, NULL, 0);
		*open = (struct open_case){ 0 };
	}
}

int verify_external_check(struct box *box, uint64_t now_ns)
{
	static const struct external_opinion late = { JUDGE_UNCLEAR, "the verifier did not answer in time" };
	struct external *external = box->external;
	int r = 0;

	for (size_t i = 0; external && r == 0 && i < JUDGE_OPEN_MAX; i++)
		if (external->cases[i].id && external->cases[i].until_ns <= now_ns)
			r = conclude(box, &external->cases[i], &late);
	return r;
}

int verify_external_timeout_ms(const struct box *box, uint64_t now_ns)
{
	const struct external *external = box->external;
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = 0; external && i < JUDGE_OPEN_MAX; i++)
		if (external->cases[i].id && external->cases[i].until_ns < next_ns)
			next_ns = external->cases[i].until_ns;
	if (next_ns == UINT64_MAX)
		return -1;
	return next_ns > now_ns ? (int)((next_ns - now_ns) / NS_PER_MS) + 1 : 0;
}

/* ---- the end ---- */

void verify_external_to_json(const struct box *box, struct json *json)
{
	const struct external *external = box->external;

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
void verify_external_close(struct box *box)
{
	struct external *external = box->external;
	struct pollfd polled = { .fd = external ? external->process.fd : FD_NONE, .events = POLLIN };

	if (!external)
		return;
	loop_remove(box->run.loop, &external->source);
	close_fd(&external->fd);
	if (polled.fd >= 0)
		(void)!poll(&polled, 1, END_MS);
	peer_end(&external->process);
	memset(external->cases, 0, sizeof external->cases);
}

void verify_external_free(struct box *box)
{
	free(box->external);
	box->external = NULL;
}
