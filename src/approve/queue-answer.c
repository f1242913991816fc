/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "approve/queue-state.h"
#include "audit/writer.h"
#include "base/str.h"
#include "grant/runtime-mount.h"
#include "os/clock.h"
#include "supervise/run.h"

/*
 * An answer counts for the question whose number and hash it has, once. A yes to what is waiting lets that through; one
 * that holds on becomes a grant. A no becomes a grant that refuses, so that the same thing is not asked about again.
 * Every answer is in the log, on the disk, before anybody hears of it: where that fails, nobody was let through.
 */

enum { NS_PER_MS = 1000000 };

static const char granted_reason[] = "a person allowed this";
static const char refused_reason[] = "a person refused this";
static const char refused_hint[] = "a person said no: do not try it in another way";

/* ---- grants ---- */

bool queue_grant_is_spent(const struct grant *grant, uint64_t now_ns)
{
	return !grant->uses_left || now_ns >= grant->until_ns;
}

static void grant_free(struct grant *grant)
{
	queue_shown_done(&grant->shown);
	free(grant);
}

void queue_grant_remove(struct queue_state *state, struct grant *grant)
{
	size_t i = 0;

	while (state->grants[i] != grant)
		i++;
	memmove(state->grants + i, state->grants + i + 1, (--state->grant_count - i) * sizeof *state->grants);
	grant_free(grant);
}

void queue_grants_expire(struct queue_state *state, uint64_t now_ns)
{
	for (size_t i = state->grant_count; i-- > 0;)
		if (queue_grant_is_spent(state->grants[i], now_ns))
			queue_grant_remove(state, state->grants[i]);
}

struct grant *queue_grant_find(struct queue_state *state, const struct grant_terms *asked)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct grant *found = NULL;

	for (size_t i = 0; i < state->grant_count; i++) {
		struct grant *grant = state->grants[i];
		struct grant_terms terms = queue_terms(&grant->shown);

		if (queue_grant_is_spent(grant, now_ns) || !grant_covers(&terms, asked))
			continue;
		if (terms.flags & GRANT_REFUSES)
			return grant;
		/* What is bounded by nothing first, so that counted uses are kept for what needs them. */
		if (!found || found->uses_left < grant->uses_left)
			found = grant;
	}
	return found;
}

static void outcome_of(struct queue_state *state, const struct grant *grant, struct queue_outcome *ret_outcome)
{
	bool refuses = grant->shown.flags & GRANT_REFUSES;

	if (str_format(state->texts.rule, sizeof state->texts.rule, "ask.grant[%u]", grant->number) < 0)
		state->texts.rule[0] = 0;
	*ret_outcome = (struct queue_outcome){
		.verdict = refuses ? QUEUE_DENIED : QUEUE_ALLOWED,
		.rule = { state->texts.rule, "", 0 },
		.reason = refuses ? refused_reason : granted_reason,
		.hint = refuses ? refused_hint : "",
		.grant = grant->number,
		.question = grant->question,
		.until_ns = grant->scope == ASKING_TIME ? grant->until_ns : UINT64_MAX,
	};
}

int queue_find(struct queue *queue, const struct queue_request *request, bool is_used,
		struct queue_outcome *ret_outcome)
{
	struct asking_shown shown = queue_shown_of(request);
	struct grant_terms asked = queue_terms(&shown);
	struct queue_state *state = queue->state;
	struct grant *grant = state ? queue_grant_find(state, &asked) : NULL;

	if (!grant)
		return 0;
	outcome_of(state, grant, ret_outcome);
	if (!is_used)
		return 1;
	grant->used++;
	if (grant->uses_left != UINT64_MAX)
		grant->uses_left--;
	return 1;
}

bool queue_has_network_grants(const struct queue *queue)
{
	const uint32_t kinds = 1u << ACTION_NET_CONNECT | 1u << ACTION_NET_DNS | 1u << ACTION_HTTP_REQUEST;
	const struct queue_state *state = queue->state;

	for (size_t i = 0; state && i < state->grant_count; i++) {
		const struct grant *grant = state->grants[i];

		if (kinds >> grant->shown.kind & 1 && !(grant->shown.flags & GRANT_REFUSES) && grant->uses_left)
			return true;
	}
	return false;
}

static struct grant *grant_new(struct queue_state *state, const struct asking_shown *shown, enum asking_scope scope,
			       uint64_t amount)
{
	uint64_t now_ns = clock_monotonic_ns(), ms = scope == ASKING_ONCE ? QUEUE_NEXT_MS : amount;
	bool is_timed = scope == ASKING_ONCE || scope == ASKING_TIME;
	struct grant *grant;

	queue_grants_expire(state, now_ns);
	grant = state->grant_count < QUEUE_GRANTS_MAX ? calloc(1, sizeof *grant) : NULL;
	if (!grant)
		return NULL;
	if (queue_shown_copy(shown, &grant->shown) < 0) {
		free(grant);
		return NULL;
	}
	grant->number = ++state->last_grant;
	grant->scope = scope;
	grant->uses_left = scope == ASKING_ONCE ? 1 : scope == ASKING_USES ? amount : UINT64_MAX;
	grant->until_ns = UINT64_MAX;
	if (is_timed && ms < (UINT64_MAX - now_ns) / NS_PER_MS)
		grant->until_ns = now_ns + ms * NS_PER_MS;
	grant->given_ns = clock_realtime_ns();
	queue_plan(state, grant->until_ns);
	state->grants[state->grant_count++] = grant;
	return grant;
}

/*
 * What a yes holds for. Counted ones are for who asked; those that hold on for whatever program it is: inside, any of
 * them can run any other. What a command does depends on where it runs.
 */
static struct asking_shown bound_of(const struct question *question, enum asking_scope scope, bool is_allowed)
{
	struct asking_shown bound = question->shown;

	bound.words = NULL;
	if (!is_allowed)
		bound.flags |= GRANT_REFUSES;
	if (!is_allowed || (scope != ASKING_ONCE && scope != ASKING_USES))
		bound.program = NULL;
	return bound;
}

/* ---- answers ---- */

static struct question *find_number(struct queue_state *state, uint32_t number)
{
	for (size_t i = 0; state && i < state->question_count; i++)
		if (state->questions[i]->number == number)
			return state->questions[i];
	return NULL;
}

static int refuse(struct err *err, int errnum, uint32_t number, const char *why, const char *hint)
{
	err_set(err, ERR_STATE, errnum, "ask", "question %u %s", number, why);
	err_hint(err, "%s", hint);
	return 1;
}

static int check_reply(const struct question *question, const struct asking_reply *reply, struct err *err)
{
	if (!question)
		return refuse(err, ENOENT, reply->number, "is not open: it has expired, or it does not exist",
			      "`atoll ask` lists the open ones");
	if (question->state == ASKING_ANSWERED)
		return refuse(err, EALREADY, reply->number,
			      question->is_allowed ? "has been answered already: it was allowed"
						   : "has been answered already: it was denied",
			      "`atoll grants` lists the grants and takes them back");
	if (memcmp(question->hash.bytes, reply->hash, sizeof question->hash.bytes) != 0)
		return refuse(err, ESTALE, reply->number, "is about something other than what you were shown",
			      "look at it again with `atoll ask`");
	return 0;
}

/* How many of those that wait now an answer lets through. Of what nobody was shown, the first. */
static size_t reached(const struct question *question, const struct asking_reply *reply)
{
	size_t most = question->is_sealed ? queue_count_shown(question) : 1;

	if (!reply->is_allowed || (reply->scope != ASKING_ONCE && reply->scope != ASKING_USES))
		return question->waiting_count;
	if (reply->scope == ASKING_USES)
		most = reply->amount > SIZE_MAX ? SIZE_MAX : (size_t)reply->amount;
	return question->waiting_count < most ? question->waiting_count : most;
}

/* Whether something of the answer is left for the next time. */
static bool holds_on(const struct asking_reply *reply, size_t count)
{
	if (!reply->is_allowed)
		return true;
	return reply->scope == ASKING_ONCE ? !count : reply->scope != ASKING_USES || reply->amount > count;
}

static void count_answer(struct queue_state *state, bool is_allowed, size_t count)
{
	*(is_allowed ? &state->allowed : &state->denied) += count ? count : 1;
}

/* All that wait for it are told what the grant says. */
static int settle(struct queue *queue, struct question *question, const struct grant *grant)
{
	bool is_allowed = !(grant->shown.flags & GRANT_REFUSES);
	struct queue_answer_log log = { .via = "grant", .scope = grant->scope, .grant = grant->number,
					 .is_allowed = is_allowed };
	struct queue_outcome outcome;
	size_t count = question->waiting_count;
	int r = queue_log_answer(queue, question, &log);

	if (r == 0)
		r = audit_flush(queue->run->audit);
	if (r < 0)
		return r;
	count_answer(queue->state, is_allowed, count);
	question->is_allowed = is_allowed;
	queue_shelve(queue->state, question, ASKING_ANSWERED);
	outcome_of(queue->state, grant, &outcome);
	return queue_deliver(queue->state, question, count, &outcome);
}

static struct question *find_covered(struct queue_state *state, const struct grant *grant)
{
	struct grant_terms terms = queue_terms(&grant->shown);

	for (size_t i = 0; i < state->question_count; i++) {
		struct question *question = state->questions[i];
		struct grant_terms asked = queue_terms(&question->shown);

		if (question->state != ASKING_ANSWERED && grant_covers(&terms, &asked))
			return question;
	}
	return NULL;
}

/* What else is open and was answered with it. The grant may be gone after anybody was told. */
static int settle_others(struct queue *queue, uint32_t number)
{
	struct queue_state *state = queue->state;

	for (;;) {
		struct question *question = NULL;
		struct grant *grant = NULL;
		int r;

		for (size_t i = 0; i < state->grant_count; i++)
			if (state->grants[i]->number == number)
				grant = state->grants[i];
		if (grant && grant->uses_left == UINT64_MAX)
			question = find_covered(state, grant);
		if (!question)
			return 0;
		r = settle(queue, question, grant);
		if (r < 0)
			return r;
	}
}

/* *ret_grant NULL: none is needed. 1: there is no room for it. */
static int make_grant(struct queue *queue, const struct question *question, const struct asking_reply *reply,
		      size_t count, const struct queue_answerer *by, struct grant **ret_grant)
{
	enum asking_scope scope = reply->is_allowed ? reply->scope : ASKING_SESSION;
	struct asking_shown bound = bound_of(question, scope, reply->is_allowed);
	struct grant *grant;

	*ret_grant = NULL;
	if (!holds_on(reply, count))
		return 0;
	grant = grant_new(queue->state, &bound, scope, reply->amount);
	/* A refusal that nobody remembers is still one. */
	if (!grant)
		return reply->is_allowed;
	grant->question = question->number;
	if (grant->scope == ASKING_USES)
		grant->uses_left -= count;
	grant->used = count;
	if (str_format(grant->by, sizeof grant->by, "user %u, by %s", by->uid, by->via) < 0)
		grant->by[0] = 0;
	*ret_grant = grant;
	return 0;
}

static int write_down(struct queue *queue, const struct question *question, const struct asking_reply *reply,
		      const struct queue_answerer *by, const struct grant *grant)
{
	struct queue_answer_log log = {
		.via = by->via, .by = by, .scope = reply->is_allowed ? reply->scope : ASKING_SESSION,
		.amount = reply->amount, .grant = grant ? grant->number : 0, .is_allowed = reply->is_allowed,
	};
	int r = queue_log_answer(queue, question, &log);

	if (r == 0 && grant && reply->is_allowed)
		r = queue_log_grant(queue, grant, false, by);
	return r == 0 ? audit_flush(queue->run->audit) : r;
}

static int conclude(struct queue *queue, struct question *question, const struct asking_reply *reply,
		    const struct grant *grant)
{
	struct queue_state *state = queue->state;
	struct queue_outcome outcome = {
		.verdict = reply->is_allowed ? QUEUE_ALLOWED : QUEUE_DENIED,
		.rule = { question->shown.rule, "", 0 },
		.reason = reply->is_allowed ? granted_reason : refused_reason,
		.hint = reply->is_allowed ? "" : refused_hint,
		.question = question->number,
		.until_ns = UINT64_MAX,
	};
	uint32_t number = grant ? grant->number : 0;
	int r;

	if (grant)
		outcome_of(state, grant, &outcome);
	count_answer(state, reply->is_allowed, question->waiting_count);
	question->is_allowed = reply->is_allowed;
	queue_shelve(state, question, ASKING_ANSWERED);
	r = queue_deliver(state, question, question->waiting_count, &outcome);
	return r < 0 || !number ? r : settle_others(queue, number);
}

/* ---- what comes into the view ---- */

/* Nobody counts what is opened there, so what it is in view for has a time. 1: there is no room for it. */
static int grant_view(struct queue *queue, const struct asking_shown *shown, uint32_t question, const char *by,
		      const struct queue_answerer *answerer)
{
	struct asking_shown view = { .kind = shown->kind, .flags = shown->flags | GRANT_VIEW, .subject = shown->subject,
				     .rule = "", .why = "" };
	struct grant *grant = grant_new(queue->state, &view, ASKING_TIME, QUEUE_NEXT_MS);
	int r;

	if (!grant)
		return 1;
	grant->question = question;
	if (str_copy(grant->by, sizeof grant->by, by) < 0)
		grant->by[0] = 0;
	r = queue_log_grant(queue, grant, false, answerer);
	if (r == 0)
		r = audit_flush(queue->run->audit);
	if (r == 0)
		runtime_mount_tie(queue->mounts, shown->subject, grant->number, grant->until_ns);
	else
		queue_grant_remove(queue->state, grant);
	return r;
}

/* As often as wanted: it holds for the view as well. */
static bool is_lasting(const struct grant *grant)
{
	return grant && grant->uses_left == UINT64_MAX;
}

/* 0; 1: *err; negative: the log failed. */
static int bring_in(struct queue *queue, const struct asking_shown *shown, const struct grant *grant,
		    const struct queue_answerer *by, uint32_t question, struct err *err)
{
	struct asking_shown seen = { .kind = shown->kind, .subject = shown->subject };
	struct runtime_mount_object object;
	char name[48];
	int r = runtime_mount_bind(queue->mounts, shown->subject, shown->kind == ACTION_FILE_WRITE, &object, err);

	if (r < 0)
		return 1;
	if (is_lasting(grant)) {
		runtime_mount_tie(queue->mounts, shown->subject, grant->number, grant->until_ns);
		return 0;
	}
	if (r == 0)
		return 0;
	seen.flags = object.is_directory ? GRANT_BELOW : 0;
	if (!by || str_format(name, sizeof name, "user %u, by %s", by->uid, by->via) < 0)
		memcpy(name, "request", sizeof "request");
	r = grant_view(queue, &seen, question, name, by);
	if (r != 1)
		return r;
	r = runtime_mount_unbind(queue->mounts, shown->subject, err);
	if (r == 0)
		err_set(err, ERR_STATE, ENOSPC, "grant", "there are too many grants, so nothing can be added to the "
							 "view");
	err_hint(err, "take some back with `atoll grants revoke`");
	return 1;
}

static struct grant *find_grant(struct queue_state *state, uint32_t number)
{
	for (size_t i = 0; number && i < state->grant_count; i++)
		if (state->grants[i]->number == number)
			return state->grants[i];
	return NULL;
}

int queue_bring_in(struct queue *queue, const struct action *action, const struct queue_outcome *outcome,
		    struct err *err)
{
	struct asking_shown shown = { .kind = action->kind, .subject = action->subject };
	int r;

	if (!queue_open_state(queue))
		return -ENOMEM;
	r = bring_in(queue, &shown, find_grant(queue->state, outcome->grant), NULL, outcome->question, err);
	if (r == 1)
		runtime_mount_forget(queue->mounts, action->subject);
	return r;
}

/* It was allowed and cannot be given: the answer is a no, for this time, and *err tells the person why. */
static int fail_answer(struct queue *queue, struct question *question, struct grant *grant,
		       const struct queue_answerer *by, const struct err *err)
{
	struct queue_answer_log log = { .via = "live", .by = by, .scope = ASKING_ONCE };
	struct queue_outcome outcome = {
		.verdict = QUEUE_DENIED, .rule = { question->shown.rule, "", 0 }, .reason = err->message,
		.hint = err->hint, .question = question->number,
	};
	int r = grant ? queue_log_grant(queue, grant, true, by) : 0;

	if (grant)
		queue_grant_remove(queue->state, grant);
	if (r == 0)
		r = queue_log_answer(queue, question, &log);
	if (r == 0)
		r = audit_flush(queue->run->audit);
	if (r < 0)
		return r;
	count_answer(queue->state, false, question->waiting_count);
	question->is_allowed = false;
	queue_shelve(queue->state, question, ASKING_ANSWERED);
	runtime_mount_forget(queue->mounts, question->shown.subject);
	r = queue_deliver(queue->state, question, question->waiting_count, &outcome);
	return r < 0 ? r : 1;
}

int queue_answer(struct queue *queue, const struct asking_reply *reply, const struct queue_answerer *by,
		  uint32_t *ret_grant, struct err *err)
{
	struct question *question = find_number(queue->state, reply->number);
	struct grant *grant;
	size_t count;
	int r = check_reply(question, reply, err);

	if (r)
		return r;
	count = reached(question, reply);
	if (make_grant(queue, question, reply, count, by, &grant))
		return refuse(err, ENOSPC, reply->number, "cannot be granted: there are too many grants",
			      "take some back with `atoll grants revoke`, or allow it once");
	*ret_grant = grant ? grant->number : 0;
	r = write_down(queue, question, reply, by, grant);
	if (r < 0) {
		/* Nothing of it holds: the sandbox ends. */
		if (grant)
			queue_grant_remove(queue->state, grant);
		return r;
	}
	r = reply->is_allowed && question->shown.flags & GRANT_OUTSIDE ?
		    bring_in(queue, &question->shown, grant, by, question->number, err) : 0;
	if (r)
		return r < 0 ? r : fail_answer(queue, question, grant, by, err);
	/* Those who came after it was shown were not allowed with it. */
	r = queue_split(queue, question, count);
	return r < 0 ? r : conclude(queue, question, reply, grant);
}

int queue_revoke(struct queue *queue, uint32_t number, const struct queue_answerer *by, struct err *err)
{
	struct queue_state *state = queue->state;
	struct grant *grant = NULL;
	int r;

	for (size_t i = 0; state && i < state->grant_count; i++)
		if (state->grants[i]->number == number &&
		    !queue_grant_is_spent(state->grants[i], clock_monotonic_ns()))
			grant = state->grants[i];
	if (!grant) {
		err_set(err, ERR_NOT_FOUND, ENOENT, "ask", "there is no grant %u any more", number);
		err_hint(err, "`atoll grants` lists those that hold");
		return 1;
	}
	r = queue_log_grant(queue, grant, true, by);
	if (r == 0)
		r = audit_flush(queue->run->audit);
	if (r < 0)
		return r;
	queue_grant_remove(state, grant);
	return runtime_mount_revoke(queue->mounts, number, err) < 0;
}

int queue_grant_add(struct queue *queue, const struct queue_grant_request *request, uint32_t *ret_number)
{
	const struct grant_terms *terms = &request->terms;
	struct asking_shown shown = {
		.kind = terms->kind, .flags = terms->flags, .subject = terms->subject, .argv = (char **)terms->argv,
		.method = terms->method, .path = terms->path, .program = terms->actor.program, .cwd = terms->actor.cwd,
		.port = terms->port, .rule = "", .why = "",
	};
	struct grant *grant = queue_open_state(queue)
				      ? grant_new(queue->state, &shown, request->scope, request->amount)
				      : NULL;
	int r;

	if (!grant)
		return -ENOSPC;
	if (str_copy(grant->by, sizeof grant->by, request->by) < 0)
		memcpy(grant->by, "token", sizeof "token");
	r = queue_log_grant(queue, grant, false, NULL);
	if (r == 0)
		r = audit_flush(queue->run->audit);
	if (r < 0) {
		queue_grant_remove(queue->state, grant);
		return r;
	}
	*ret_number = grant->number;
	return settle_others(queue, grant->number);
}
