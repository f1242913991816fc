/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "approve/queue.h"
#include "base/num.h"
#include "base/str.h"
#include "gate-request/gate-state.h"
#include "gate-request/checkpoint.h"
#include "gate-request/token.h"
#include "grant/runtime-mount.h"
#include "os/clock.h"
#include "policy/describe/near.h"
#include "supervise/refusals.h"
#include "supervise/run.h"

/*
 * What the desk passes on is judged by the policy in force, like every action; what a rule denies or masks is refused
 * before any person hears of it. Paths are looked at once, here: the person is shown, and the policy judges, the name
 * without links, and only that object can come of it (grant/runtime-mount.h).
 */

enum { NS_PER_MS = 1000000, TEXT_MAX = 640 };

/* One request on its way to an answer. */
struct judged {
	uint32_t id;
	struct action action;
	struct decision decision;
	struct runtime_mount_object object;   /* of files */
	bool is_file, may_ask;
	struct err err;              /* why a file could not be brought in; ERR_NONE: nothing is known against it */
};

static int reply(struct access_gate *gate, const struct desk_answer *answer)
{
	if (desk_answer_put(&gate->run->out, answer) == 0)
		access_gate_send(gate);
	return 0;
}

static int reply_invalid(struct access_gate *gate, uint32_t id, const char *reason, const char *hint)
{
	return reply(gate, &(struct desk_answer){ .id = id, .verdict = DESK_INVALID, .reason = reason, .hint = hint });
}

/* With what is near and allowed. */
static int reply_refusal(struct access_gate *gate, const struct judged *judged, enum desk_verdict verdict)
{
	const char *names[POLICY_NEAR_MAX + 1] = { NULL };
	const struct policy *policy = judged->is_file ? gate->run->policy->policy : gate->run->network_policy;
	struct desk_answer answer = { .id = judged->id, .verdict = verdict, .rule = judged->decision.rule.id,
				      .reason = judged->decision.reason, .hint = judged->decision.hint,
				      .near = (char **)names };

	policy_near(policy, &judged->action, names);
	if (judged->err.code != ERR_NONE) {
		answer.reason = judged->err.message;
		answer.hint = judged->err.hint;
	}
	return reply(gate, &answer);
}

/* ---- who waits ---- */

static struct access_pending *find_pending(struct access_gate *gate, uint32_t id)
{
	for (size_t i = 0; i < DESK_PENDING_MAX; i++)
		if (gate->pending[i].id == id)
			return &gate->pending[i];
	return NULL;
}

static void pending_free(struct access_pending *pending)
{
	free(pending->path);
	*pending = (struct access_pending){ 0 };
}

static int answered(void *context, uint64_t token, const struct queue_outcome *outcome);

static struct queue_waiter waiter_of(struct access_gate *gate, uint32_t id)
{
	return (struct queue_waiter){ .done = answered, .context = gate, .token = id };
}

static void forget(struct access_gate *gate, struct access_pending *pending)
{
	struct queue_waiter waiter = waiter_of(gate, pending->id);

	queue_forget(gate->queue, &waiter);
	pending_free(pending);
}

void access_gate_forget(struct access_gate *gate)
{
	for (size_t i = 0; i < DESK_PENDING_MAX; i++)
		if (gate->pending[i].id)
			forget(gate, &gate->pending[i]);
}

/* So that it can be waited for again by the number that the sandbox was told. */
static void keep_frame(struct access_gate *gate, uint32_t question, const struct frame *frame)
{
	struct access_kept *kept = &gate->kept[gate->kept_next++ % DESK_KEPT_MAX];

	for (size_t i = 0; i < DESK_KEPT_MAX; i++)
		if (gate->kept[i].frame && gate->kept[i].question == question)
			kept = &gate->kept[i];
	free(kept->frame);
	kept->frame = malloc(frame->size);
	kept->size = kept->frame ? frame->size : 0;
	kept->question = kept->frame ? question : 0;
	if (kept->frame)
		memcpy(kept->frame, frame->bytes, frame->size);
}

/* ---- answers ---- */

/* The frame of a kept request, read again: bytes (malloc) holds what *ret_want borrows from. */
static int read_kept(const struct access_kept *kept, void **ret_bytes, struct desk_want *ret_want)
{
	struct frame frame;
	int r;

	*ret_bytes = malloc(kept->size);
	if (!*ret_bytes)
		return -ENOMEM;
	memcpy(*ret_bytes, kept->frame, kept->size);
	r = frame_open(&frame, *ret_bytes, kept->size);
	return r < 0 ? r : desk_want_get(&frame, ret_want);
}

static const struct access_kept *find_kept(const struct access_gate *gate, uint32_t question)
{
	for (size_t i = 0; question && i < DESK_KEPT_MAX; i++)
		if (gate->kept[i].frame && gate->kept[i].question == question)
			return &gate->kept[i];
	return NULL;
}

/*
 * A yes that holds for this one time was meant for what follows the request, and not for the request itself: a
 * connection, a program that is started.
 */
static int grant_next(struct access_gate *gate, uint32_t question)
{
	const struct access_kept *kept = find_kept(gate, question);
	struct queue_grant_request request = { .scope = ASKING_ONCE, .by = "request" };
	cleanup_free void *bytes = NULL;
	struct desk_want wanted;
	uint32_t number;
	int r;

	if (!kept || read_kept(kept, &bytes, &wanted) < 0)
		return 0;
	request.terms = (struct grant_terms){ .kind = (enum action_kind)wanted.kind, .subject = wanted.subject,
					      .port = (uint16_t)wanted.port,
					      .argv = wanted.argv[0] ? (const char *const *)wanted.argv : NULL };
	r = queue_grant_add(gate->queue, &request, &number);
	free(wanted.argv);
	return r == -ENOSPC ? 0 : r;
}

/* What is in view for a time only is told with that time. hint: memory for it. */
static void tell_time(const struct access_gate *gate, const char *path, struct desk_answer *answer, char hint[TEXT_MAX])
{
	uint64_t ms = runtime_mount_left_ms(gate->mounts, path, clock_monotonic_ns());
	char left[32];

	if (!ms || ms == UINT64_MAX)
		return;
	/* Whole seconds, and none too few. */
	num_format_duration((ms + 999) / 1000 * 1000, left);
	if (str_format(hint, TEXT_MAX, "it stays in view for %s; ask again for longer", left) == 0)
		answer->hint = hint;
}

/* The view is changed before the answer leaves, so that whoever hears it can open the path at once. */
static int act_on_yes(struct access_gate *gate, const struct access_pending *request,
		      const struct queue_outcome *outcome,
		      struct desk_answer *answer, struct err *err)
{
	struct action action = { .kind = (enum action_kind)request->kind, .subject = request->path };
	int r;

	if (!request->path)
		return outcome->grant ? 0 : grant_next(gate, outcome->question);
	r = queue_bring_in(gate->queue, &action, outcome, err);
	if (r <= 0)
		return r;
	answer->verdict = DESK_DENIED;
	answer->reason = err->message;
	answer->hint = err->hint;
	return 0;
}

static int reply_outcome(struct access_gate *gate, uint32_t id, const struct access_pending *request,
			 const struct queue_outcome *outcome)
{
	static const enum desk_verdict verdicts[] = {
		[QUEUE_DENIED] = DESK_DENIED, [QUEUE_ALLOWED] = DESK_ALLOWED,
		[QUEUE_UNANSWERED] = DESK_UNANSWERED, [QUEUE_TOO_MANY] = DESK_UNANSWERED,
	};
	struct desk_answer answer = { .id = id, .verdict = verdicts[outcome->verdict], .question = outcome->question,
				      .reason = outcome->reason };
	char rule[64], hint[TEXT_MAX];
	struct err err = { 0 };
	int r;

	/* The outcome's own are gone after the next call of the queue's. */
	answer.rule = str_copy(rule, sizeof rule, outcome->rule.id) == 0 ? rule : "";
	answer.hint = str_copy(hint, sizeof hint, outcome->hint) == 0 ? hint : "";
	r = outcome->verdict == QUEUE_ALLOWED ? act_on_yes(gate, request, outcome, &answer, &err) : 0;
	if (r == 0 && answer.verdict == DESK_ALLOWED && request->path)
		tell_time(gate, request->path, &answer, hint);
	return r < 0 ? r : reply(gate, &answer);
}

static int answered(void *context, uint64_t token, const struct queue_outcome *outcome)
{
	struct access_gate *gate = context;
	struct access_pending *pending = find_pending(gate, (uint32_t)token);
	int r;

	if (!pending)
		return 0;
	r = reply_outcome(gate, pending->id, pending, outcome);
	pending_free(pending);
	return r;
}

static int reply_waits(struct access_gate *gate, uint32_t id, uint32_t question)
{
	return reply(gate, &(struct desk_answer){
		.id = id, .verdict = DESK_WAITS, .question = question, .rule = "",
		.reason = "a person is asked; nothing changes until the answer", .hint = "" });
}

static int begin_question(struct access_gate *gate, const struct judged *judged, const struct desk_want *want,
	       const struct frame *frame)
{
	static const char reason[] = "no rule of the policy gives it, and something inside asks for it";
	struct queue_request request = {
		.action = judged->action,
		.decision = judged->decision,
		.flags = (judged->object.is_directory ? GRANT_BELOW : 0) | (judged->is_file ? GRANT_OUTSIDE : 0),
		.words = want->reason,
		.wait_max_ms = want->wait_ms,
	};
	struct access_pending *pending = find_pending(gate, 0), direct = { .kind = want->kind };
	struct queue_waiter waiter = waiter_of(gate, want->id);
	struct queue_outcome outcome = { 0 };
	char *path = judged->is_file ? str_dup(judged->object.path) : NULL;
	int r;

	if (judged->is_file && !path)
		return -ENOMEM;
	if (judged->decision.verdict != VERDICT_ASK)
		request.decision.reason = reason;
	direct.path = path;
	/* What was allowed for one time is for the try that follows: to be told of it is none. */
	if (!judged->is_file) {
		r = queue_find(gate->queue, &request, false, &outcome);
		if (r)
			return r < 0 ? r : reply_outcome(gate, want->id, &direct, &outcome);
	}
	r = queue_begin(gate->queue, &request, pending ? &waiter : NULL, &outcome);
	if (r >= 0 && outcome.question)
		keep_frame(gate, outcome.question, frame);
	if (r > 0) {
		*pending = (struct access_pending){ .id = want->id, .question = outcome.question, .kind = want->kind,
						  .path = path };
		return reply_waits(gate, want->id, outcome.question);
	}
	if (r == 0)
		r = reply_outcome(gate, want->id, &direct, &outcome);
	free(path);
	return r;
}

/* ---- judging ---- */

static const struct {
	enum action_kind kind;
	bool is_file;
} askable[] = {
	{ ACTION_FILE_READ, true }, { ACTION_FILE_WRITE, true }, { ACTION_NET_CONNECT, false }, { ACTION_EXEC, false },
};

static bool find_kind(uint32_t kind, bool *ret_is_file)
{
	for (size_t i = 0; i < ARRAY_SIZE(askable); i++) {
		if ((uint32_t)askable[i].kind != kind)
			continue;
		*ret_is_file = askable[i].is_file;
		return true;
	}
	return false;
}

static bool is_in_view(const struct decision *decision)
{
	return decision->verdict == VERDICT_ALLOW || decision->verdict == VERDICT_STAGE;
}

/* 1: it was answered. */
static int look_at_path(struct access_gate *gate, struct judged *judged)
{
	int r = clock_monotonic_ns() < gate->deaf_until_ns
			? -ETIMEDOUT
			: runtime_mount_show(gate->mounts, judged->action.subject, &judged->object);

	if (r == -EMFILE) {
		reply(gate, &(struct desk_answer){
			.id = judged->id, .verdict = DESK_UNANSWERED, .rule = "ask.requests",
			.reason = "too many paths are waited for", .hint = "ask again when one is answered" });
		return 1;
	}
	if (r == -EINVAL) {
		reply_invalid(gate, judged->id, "the path is not absolute and normalised", "give the real path");
		return 1;
	}
	if (r == -ETIMEDOUT) {
		if (gate->deaf_until_ns < clock_monotonic_ns())
			gate->deaf_until_ns = clock_monotonic_ns() + DESK_DEAF_MS * (uint64_t)NS_PER_MS;
		reply(gate, &(struct desk_answer){
			.id = judged->id, .verdict = DESK_UNANSWERED, .rule = "ask.path",
			.reason = "a file system does not answer, so no paths are looked at for a minute",
			.hint = "try again later" });
		return 1;
	}
	return r;
}

/* Fills *judged. 1: it was answered; negative: out of memory. */
static int judge(struct access_gate *gate, const struct desk_want *want, struct judged *judged)
{
	const struct policy *policy;
	int r;

	*judged = (struct judged){ .id = want->id, .action = { .kind = (enum action_kind)want->kind,
							       .subject = want->subject,
							       .port = (uint16_t)want->port } };
	if (!find_kind(want->kind, &judged->is_file)) {
		reply_invalid(gate, want->id, "this cannot be asked for", "file.read, file.write, net.connect, exec");
		return 1;
	}
	if (want->argv[0])
		judged->action.argv = (const char *const *)want->argv;
	policy = judged->is_file ? gate->run->policy->policy : gate->run->network_policy;
	judged->decision = policy_decide(policy, &judged->action);
	/* The name that was given is judged first: one that is refused itself leads nowhere. */
	if (judged->is_file && !is_in_view(&judged->decision) &&
	    policy_may_be_asked(policy, &judged->action, &judged->decision)) {
		r = look_at_path(gate, judged);
		if (r)
			return r;
		judged->action.subject = judged->object.path;
		judged->decision = policy_decide(policy, &judged->action);
	}
	judged->may_ask = policy_may_be_asked(policy, &judged->action, &judged->decision);
	if (judged->is_file && judged->may_ask && !is_in_view(&judged->decision))
		judged->may_ask = runtime_mount_may_bind(gate->mounts, judged->action.subject,
							 want->kind == ACTION_FILE_WRITE, &judged->err) == 0;
	return 0;
}

static bool is_allowed(const struct access_gate *gate, const struct judged *judged)
{
	return is_in_view(&judged->decision) ||
	       (judged->decision.verdict == VERDICT_SIMULATE && !judged->is_file) ||
	       (judged->is_file && runtime_mount_covers(gate->mounts, judged->action.subject,
					       judged->action.kind == ACTION_FILE_WRITE));
}

static int reply_allowed(struct access_gate *gate, const struct judged *judged)
{
	struct desk_answer answer = { .id = judged->id, .verdict = DESK_ALLOWED, .rule = judged->decision.rule.id,
				      .reason = judged->decision.reason, .hint = "" };

	if (!is_in_view(&judged->decision) && judged->is_file)
		answer.reason = "a person has granted it", answer.rule = "ask.grant";
	return reply(gate, &answer);
}

/* How to ask for it, in the words of the client. */
static int explain_asking(struct access_gate *gate, const struct judged *judged)
{
	const struct action *action = &judged->action;
	char memory[TEXT_MAX];
	struct judged told = *judged;
	struct buf hint;

	buf_init_fixed(&hint, memory, sizeof memory);
	buf_printf(&hint, "%s %s ", DESK_CLIENT, action_kind_names[action->kind]);
	buf_put_escaped(&hint, action->subject, strlen(action->subject), sizeof memory / 2);
	if (action->port)
		buf_printf(&hint, ":%u", action->port);
	buf_put_text(&hint, " -r REASON");
	told.decision.hint = buf_text(&hint);
	/* It has something there already; what a person would be asked for is the machine's own. */
	return reply_refusal(gate, &told, judged->decision.verdict == VERDICT_SIMULATE ? DESK_ALLOWED : DESK_ASKS);
}

/* ---- messages ---- */

/* Looking at a path starts a process, and a person reads the rest: neither can be had without end. */
static bool take_token(struct access_gate *gate)
{
	uint64_t now_ns = clock_monotonic_ns(), more = (now_ns - gate->refilled_ns) / NS_PER_MS / DESK_REFILL_MS;

	gate->refilled_ns += more * DESK_REFILL_MS * NS_PER_MS;
	gate->tokens = gate->tokens + more > DESK_BURST ? DESK_BURST : gate->tokens + more;
	if (!gate->tokens)
		return false;
	gate->tokens--;
	return true;
}

/* 1: it is too much, and was answered. */
static int check_rate(struct access_gate *gate, uint32_t id)
{
	if (take_token(gate))
		return 0;
	reply(gate, &(struct desk_answer){
		.id = id, .verdict = DESK_UNANSWERED, .rule = "ask.requests", .reason = "too much is asked at once",
		.hint = "ask again in a few seconds" });
	return 1;
}

static int judge_want(struct access_gate *gate, const struct desk_want *wanted, const struct frame *frame)
{
	struct judged judged;
	int r = check_rate(gate, wanted->id);

	if (r == 0)
		r = judge(gate, wanted, &judged);
	if (r)
		return r < 0 ? r : 0;
	if (is_allowed(gate, &judged))
		return reply_allowed(gate, &judged);
	return judged.may_ask ? begin_question(gate, &judged, wanted, frame) : reply_refusal(gate, &judged,
											     DESK_DENIED);
}

/* An id names one request, and 0 none. */
static bool is_new_id(struct access_gate *gate, uint32_t id)
{
	return id && !find_pending(gate, id);
}

static int on_want(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct access_gate *gate = context;
	struct desk_want wanted;
	int r = desk_want_get(frame, &wanted);

	(void)fds;
	(void)fd_count;
	if (r < 0)
		return r;
	r = is_new_id(gate, wanted.id) ? judge_want(gate, &wanted, frame) : -EBADMSG;
	free(wanted.argv);
	return r;
}

static int on_explain(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct access_gate *gate = context;
	struct desk_want wanted;
	struct judged judged;
	int r = desk_want_get(frame, &wanted);

	(void)fds;
	(void)fd_count;
	if (r < 0)
		return r;
	r = check_rate(gate, wanted.id);
	if (r == 0)
		r = judge(gate, &wanted, &judged);
	if (r == 0 && is_allowed(gate, &judged))
		r = reply_allowed(gate, &judged);
	else if (r == 0 && judged.may_ask)
		r = explain_asking(gate, &judged);
	else if (r == 0)
		r = reply_refusal(gate, &judged, DESK_DENIED);
	free(wanted.argv);
	return r < 0 ? r : 0;
}

/* The request as it came then, under its new id. */
static int judge_want_again(struct access_gate *gate, const struct access_kept *kept, uint32_t id, uint64_t wait_ms)
{
	cleanup_free void *bytes = NULL;
	struct desk_want wanted;
	struct frame frame = { .size = kept->size };
	int r = read_kept(kept, &bytes, &wanted);

	if (r < 0)
		return r;
	frame.bytes = bytes;
	wanted.id = id;
	wanted.wait_ms = wait_ms;
	r = judge_want(gate, &wanted, &frame);
	free(wanted.argv);
	return r;
}

static int on_wait(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct access_gate *gate = context;
	uint32_t id = frame_get_u32(frame), question = frame_get_u32(frame);
	uint64_t wait_ms = frame_get_u64(frame);
	const struct access_kept *kept = find_kept(gate, question);

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0 || wait_ms > DESK_WAIT_MAX_MS || !is_new_id(gate, id))
		return -EBADMSG;
	if (!kept)
		return reply_invalid(gate, id, "there is no such question", "ask again");
	return judge_want_again(gate, kept, id, wait_ms);
}

static int on_token(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct access_gate *gate = context;
	uint32_t id = frame_get_u32(frame);
	const char *text = frame_get_string(frame);
	int r;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0 || !text || !is_new_id(gate, id))
		return -EBADMSG;
	r = check_rate(gate, id);
	return r ? 0 : access_token_present(gate, id, text, strlen(text));
}

static int on_checkpoint(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct access_gate *gate = context;
	uint32_t id = frame_get_u32(frame);
	const char *text = frame_get_string(frame);
	int r;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0 || !text || strlen(text) >= DESK_REASON_MAX || !is_new_id(gate, id))
		return -EBADMSG;
	r = check_rate(gate, id);
	return r ? 0 : access_checkpoint_take(gate, id, text);
}

static int on_status(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct access_gate *gate = context;
	const struct policy *policy = gate->run->policy->policy;
	struct desk_status status = {
		.id = frame_get_u32(frame),
		.session = gate->run->request->session,
		.policy = policy->name,
		.level = trust_level_names[policy->level],
		.is_heard = queue_is_heard(gate->queue),
		.denied = gate->run->refusals->denied,
	};

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0)
		return -EBADMSG;
	if (desk_status_put(&gate->run->out, &status) == 0)
		access_gate_send(gate);
	return 0;
}

static int on_forget(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct access_gate *gate = context;
	uint32_t id = frame_get_u32(frame);
	struct access_pending *pending = id ? find_pending(gate, id) : NULL;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0)
		return -EBADMSG;
	if (pending)
		forget(gate, pending);
	return 0;
}

const struct frame_rule access_gate_rules[DESK_RULE_COUNT] = {
	{ DESK_WANT, PEER_BIT(SERVING), DESK_MESSAGE_MAX, 0, 0, on_want },
	{ DESK_EXPLAIN, PEER_BIT(SERVING), DESK_MESSAGE_MAX, 0, 0, on_explain },
	{ DESK_WAIT, PEER_BIT(SERVING), 64, 0, 0, on_wait },
	{ DESK_STATUS, PEER_BIT(SERVING), 64, 0, 0, on_status },
	{ DESK_FORGET, PEER_BIT(SERVING), 64, 0, 0, on_forget },
	{ DESK_TOKEN, PEER_BIT(SERVING), DESK_MESSAGE_MAX, 0, 0, on_token },
	{ DESK_CHECKPOINT, PEER_BIT(SERVING), DESK_MESSAGE_MAX, 0, 0, on_checkpoint },
};
