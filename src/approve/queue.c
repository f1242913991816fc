/* SPDX-License-Identifier: Apache-2.0 */
#include "approve/queue.h"

#include <string.h>

#include "approve/queue-state.h"
#include "audit/writer.h"
#include "base/str.h"
#include "os/clock.h"
#include "session/listeners.h"
#include "session/run-request.h"
#include "supervise/run.h"

/*
 * A question waits while somebody can hear of it, and is refused at once where nobody can: an agent that nobody watches
 * must not stand still. Refused ones stay listed, so that a person can allow the next try. What is asked again is the
 * same question: one for a burst, and none for a loop.
 */

enum { NS_PER_MS = 1000000, WAITING_FIRST = 4, LISTENERS_MS = 20 };

static const char nobody_reason[] = "a person has to allow this, and nobody can be asked now";
static const char left_reason[] = "a person was asked to allow this, and the program gave up before anybody answered";
static const char silent_reason[] = "a person was asked to allow this, and did not answer in time";
static const char flood_reason[] = "too many questions were asked, so nobody is asked about this";
static const char long_reason[] = "a person has to allow this, and it is too long to be shown";

struct queue_state *queue_open_state(struct queue *queue)
{
	if (queue->state)
		return queue->state;
	queue->state = calloc(1, sizeof *queue->state);
	if (queue->state) {
		queue->state->next_ns = UINT64_MAX;
		queue->state->tokens = QUEUE_BURST;
		queue->state->refilled_ns = clock_monotonic_ns();
	}
	return queue->state;
}

void queue_touch(struct queue_state *state, struct question *question)
{
	question->generation = ++state->generation;
}

void queue_plan(struct queue_state *state, uint64_t when_ns)
{
	if (when_ns < state->next_ns)
		state->next_ns = when_ns;
}

static void question_free(struct question *question)
{
	queue_shown_done(&question->shown);
	free(question->waiting);
	free(question);
}

static void question_remove(struct queue_state *state, size_t at)
{
	question_free(state->questions[at]);
	state->questions[at] = state->questions[--state->question_count];
}

/* Makes room by forgetting the one that nobody has waited for the longest. */
static bool make_room(struct queue_state *state)
{
	size_t oldest = QUEUE_QUESTIONS_MAX;

	if (state->question_count < QUEUE_QUESTIONS_MAX)
		return true;
	for (size_t i = 0; i < state->question_count; i++)
		if (state->questions[i]->state != ASKING_WAITS &&
		    (oldest == QUEUE_QUESTIONS_MAX ||
		     state->questions[i]->generation < state->questions[oldest]->generation))
			oldest = i;
	if (oldest == QUEUE_QUESTIONS_MAX)
		return false;
	question_remove(state, oldest);
	return true;
}

struct question *queue_question_new(struct queue_state *state, struct asking_shown *shown, const struct hash *hash)
{
	struct question *question = make_room(state) ? calloc(1, sizeof *question) : NULL;

	if (!question)
		return NULL;
	question->number = ++state->last_question;
	question->hash = *hash;
	question->shown = *shown;
	question->asked_ns = clock_realtime_ns();
	*shown = (struct asking_shown){ 0 };
	state->questions[state->question_count++] = question;
	queue_touch(state, question);
	return question;
}

void queue_shelve(struct queue_state *state, struct question *question, enum asking_state next)
{
	question->state = next;
	question->until_ns = clock_monotonic_ns() + QUEUE_LISTED_MS * (uint64_t)NS_PER_MS;
	queue_plan(state, question->until_ns);
	queue_touch(state, question);
}

/* The one that can still be asked again as the same question: the last, since those before it were shown. */
static struct question *find_question(struct queue_state *state, const struct hash *hash)
{
	struct question *found = NULL;

	for (size_t i = 0; i < state->question_count; i++) {
		struct question *question = state->questions[i];

		if (question->state != ASKING_ANSWERED && memcmp(&question->hash, hash, sizeof *hash) == 0 &&
		    (!found || question->number > found->number))
			found = question;
	}
	return found;
}

static bool take_token(struct queue_state *state)
{
	uint64_t now_ns = clock_monotonic_ns(), more = (now_ns - state->refilled_ns) / NS_PER_MS / QUEUE_REFILL_MS;

	state->refilled_ns += more * QUEUE_REFILL_MS * NS_PER_MS;
	state->tokens = state->tokens + more > QUEUE_BURST ? QUEUE_BURST : state->tokens + more;
	if (!state->tokens)
		return false;
	state->tokens--;
	state->is_exhausted = false;
	return true;
}

/* ---- those that wait ---- */

static bool add_waiting(struct queue_state *state, struct question *question, const struct queue_waiter *waiter,
			uint64_t until_ns)
{
	if (state->waiting_count >= QUEUE_WAITERS_MAX)
		return false;
	if (question->waiting_count == question->waiting_size) {
		size_t size = question->waiting_size ? question->waiting_size * 2 : WAITING_FIRST;
		struct queue_waiting *grown = realloc(question->waiting, size * sizeof *grown);

		if (!grown)
			return false;
		question->waiting = grown;
		question->waiting_size = size;
	}
	/* The first is the next try that an answer to what nobody waits for is good for. */
	question->waiting[question->waiting_count] = (struct queue_waiting){
		*waiter, until_ns, question->is_sealed && question->waiting_count
	};
	question->waiting_count++;
	state->waiting_count++;
	if (question->state != ASKING_WAITS || until_ns > question->until_ns)
		question->until_ns = until_ns;
	question->state = ASKING_WAITS;
	queue_plan(state, until_ns);
	if (waiter->is_gone)
		queue_plan(state, clock_monotonic_ns() + QUEUE_LOOK_MS * (uint64_t)NS_PER_MS);
	return true;
}

static bool is_same_waiter(const struct queue_waiter *a, const struct queue_waiter *b)
{
	return a->done == b->done && a->context == b->context && a->token == b->token;
}

/* waiter NULL: those who have died. */
static void forget_in(struct queue_state *state, struct question *question, const struct queue_waiter *waiter)
{
	for (size_t i = 0; i < question->waiting_count; i++) {
		struct queue_waiter entry = question->waiting[i].waiter;

		if (waiter ? !is_same_waiter(&entry, waiter)
			   : !entry.is_gone || !entry.is_gone(entry.context, entry.token))
			continue;
		/* Whoever found that out may have forgotten others with it: the rest the next time. */
		if (i >= question->waiting_count || !is_same_waiter(&question->waiting[i].waiter, &entry))
			break;
		memmove(question->waiting + i, question->waiting + i + 1,
			(--question->waiting_count - i) * sizeof *question->waiting);
		state->waiting_count--;
		queue_touch(state, question);
		i--;
	}
	if (question->state == ASKING_WAITS && !question->waiting_count)
		queue_shelve(state, question, ASKING_LISTED);
	if (question->waiting_count && question->waiting[0].is_late)
		queue_plan(state, 0);
}

void queue_forget(struct queue *queue, const struct queue_waiter *waiter)
{
	struct queue_state *state = queue->state;

	for (size_t i = 0; state && i < state->question_count; i++)
		forget_in(state, state->questions[i], waiter);
	for (size_t i = 0; state && i < state->delivery.count; i++)
		if (is_same_waiter(&state->delivery.waiting[i].waiter, waiter))
			state->delivery.waiting[i].waiter.done = NULL;
}

/* The texts of an outcome live in *state and do not outlast the first of those that are told. */
static void keep_texts(const struct queue_outcome *outcome, struct queue_texts *texts,
		       struct queue_outcome *ret_kept)
{
	*ret_kept = *outcome;
	if (str_copy(texts->hint, sizeof texts->hint, outcome->hint) == 0)
		ret_kept->hint = texts->hint;
	if (str_copy(texts->rule, sizeof texts->rule, outcome->rule.id) == 0)
		ret_kept->rule.id = texts->rule;
}

int queue_deliver(struct queue_state *state, struct question *question, size_t count,
		   const struct queue_outcome *outcome)
{
	cleanup_free struct queue_waiting *told = NULL;
	struct delivery outer = state->delivery;
	struct queue_outcome kept;
	struct queue_texts texts;
	int first = 0;

	if (!count)
		return 0;
	told = calloc(count, sizeof *told);
	if (!told)
		return -ENOMEM;
	keep_texts(outcome, &texts, &kept);
	memcpy(told, question->waiting, count * sizeof *told);
	question->waiting_count -= count;
	state->waiting_count -= count;
	memmove(question->waiting, question->waiting + count, question->waiting_count * sizeof *told);
	state->delivery = (struct delivery){ told, count };
	for (size_t i = 0; i < count; i++) {
		const struct queue_waiter *waiter = &told[i].waiter;
		int r = waiter->done ? waiter->done(waiter->context, waiter->token, &kept) : 0;

		first = first < 0 ? first : r;
	}
	state->delivery = outer;
	return first < 0 ? first : 0;
}

/* ---- to ask ---- */

static bool is_heard_here(const struct queue *queue)
{
	for (size_t i = 0; i < ARRAY_SIZE(queue->channels); i++) {
		const struct queue_channel *channel = &queue->channels[i];

		if (channel->is_heard && channel->is_heard(channel->context))
			return true;
	}
	return false;
}

static void ring(const struct queue *queue)
{
	for (size_t i = 0; i < ARRAY_SIZE(queue->channels); i++)
		if (queue->channels[i].ring)
			queue->channels[i].ring(queue->channels[i].context);
}

static struct queue_outcome unanswered(struct queue_state *state, const struct question *question, const char *reason)
{
	if (str_format(state->texts.hint, sizeof state->texts.hint,
		       "`atoll approve %u` lets the next try through; keep `atoll ask` open, or list it in the policy",
		       question->number) < 0)
		state->texts.hint[0] = 0;
	return (struct queue_outcome){ .verdict = QUEUE_UNANSWERED,
					.rule = { question->shown.rule, "", 0 },
					.reason = reason,
					.hint = state->texts.hint,
					.question = question->number };
}

/* Said once until there is room again: the log must not be flooded by who floods us. */
static int too_many(struct queue *queue, const struct queue_request *request, const char *reason,
		    struct queue_outcome *ret_outcome)
{
	struct queue_state *state = queue->state;
	bool is_flood = reason == flood_reason;
	int r = is_flood && !state->is_exhausted ? run_limit_episode(queue->run, "ask.questions", QUEUE_BURST) : 0;

	state->is_exhausted = state->is_exhausted || is_flood;
	state->too_many++;
	*ret_outcome = (struct queue_outcome){ .verdict = QUEUE_TOO_MANY, .rule = request->decision.rule,
						.reason = reason, .hint = "" };
	return r;
}

static uint64_t patience_ns(const struct queue *queue, const struct queue_request *request)
{
	uint64_t ms = queue->run->policy->policy->ask.timeout_ms;

	if (request->wait_max_ms && request->wait_max_ms < ms)
		ms = request->wait_max_ms;
	return ms * NS_PER_MS;
}

/* A question that is new, or that nobody waited for until now. */
static int raise_question(struct queue *queue, const struct queue_request *request, const struct hash *hash,
			  struct question **ret_question)
{
	struct asking_shown shown = queue_shown_of(request), copy;
	struct question *question;
	int r = queue_shown_copy(&shown, &copy);

	if (r < 0)
		return r;
	question = queue_question_new(queue->state, &copy, hash);
	if (!question) {
		queue_shown_done(&copy);
		return 1;
	}
	question->pid = request->pid;
	queue_shelve(queue->state, question, ASKING_LISTED);
	queue->state->asked++;
	*ret_question = question;
	return queue_log_open(queue, question);
}

static int ask(struct queue *queue, const struct queue_request *request, const struct queue_waiter *waiter,
	       struct queue_outcome *ret_outcome)
{
	struct asking_shown shown = queue_shown_of(request);
	struct grant_terms terms = queue_terms(&shown);
	struct queue_state *state = queue->state;
	bool is_heard = waiter && queue_is_heard(queue), is_open;
	struct question *question;
	struct hash hash;
	int r;

	if (queue_shown_size(&shown) > QUEUE_TEXT_MAX)
		return too_many(queue, request, long_reason, ret_outcome);
	grant_identity(&terms, &hash);
	question = find_question(state, &hash);
	is_open = question && (question->state == ASKING_WAITS || !is_heard);
	if (!is_open && !take_token(state))
		return too_many(queue, request, flood_reason, ret_outcome);
	if (!question) {
		r = raise_question(queue, request, &hash, &question);
		if (r)
			return r < 0 ? r : too_many(queue, request, flood_reason, ret_outcome);
	}
	question->times++;
	queue_touch(state, question);
	if (!is_open)
		ring(queue);
	if (is_heard) {
		if (!add_waiting(state, question, waiter, clock_monotonic_ns() + patience_ns(queue, request)))
			return too_many(queue, request, flood_reason, ret_outcome);
		*ret_outcome = (struct queue_outcome){ .reason = "", .hint = "", .question = question->number };
		return 1;
	}
	state->unanswered++;
	*ret_outcome = unanswered(state, question, nobody_reason);
	return 0;
}

int queue_begin(struct queue *queue, const struct queue_request *request, const struct queue_waiter *waiter,
		 struct queue_outcome *ret_outcome)
{
	int r;

	if (!queue_open_state(queue))
		return -ENOMEM;
	r = queue_find(queue, request, true, ret_outcome);
	if (r)
		return r < 0 ? r : 0;
	return ask(queue, request, waiter, ret_outcome);
}

int queue_give_up(struct queue *queue, const struct queue_waiter *waiter, struct queue_outcome *ret_outcome)
{
	struct queue_answer_log log = { .via = "left" };
	struct queue_state *state = queue->state;

	for (size_t i = 0; state && i < state->question_count; i++) {
		struct question *question = state->questions[i];
		size_t at = 0;

		while (at < question->waiting_count && !is_same_waiter(&question->waiting[at].waiter, waiter))
			at++;
		if (at == question->waiting_count)
			continue;
		state->unanswered++;
		*ret_outcome = unanswered(state, question, left_reason);
		return question->waiting_count == 1 && queue_log_answer(queue, question, &log) < 0 ? -EIO : 1;
	}
	return 0;
}

/* ---- time ---- */

static void sort_out_due(struct question *question, uint64_t now_ns, size_t *ret_due)
{
	size_t due = 0;

	for (size_t i = 0; i < question->waiting_count; i++) {
		struct queue_waiting entry = question->waiting[i];

		if (entry.until_ns > now_ns)
			continue;
		memmove(question->waiting + due + 1, question->waiting + due, (i - due) * sizeof entry);
		question->waiting[due++] = entry;
	}
	*ret_due = due;
}

/* Who was shown is gone; who came later waits for another question. */
static int part_from_none(struct queue *queue, struct question *question)
{
	return question->waiting_count && question->waiting[0].is_late ? queue_split(queue, question, 0) : 0;
}

/* 1: it is forgotten. */
static int check_question(struct queue *queue, struct question *question, uint64_t now_ns)
{
	struct queue_answer_log log = { .via = "timeout" };
	struct queue_outcome outcome;
	size_t due;
	int r;

	forget_in(queue->state, question, NULL);
	r = part_from_none(queue, question);
	if (r < 0)
		return r;
	if (question->state != ASKING_WAITS)
		return question->until_ns <= now_ns;
	sort_out_due(question, now_ns, &due);
	if (!due)
		return 0;
	queue->state->unanswered += due;
	if (due == question->waiting_count)
		r = queue_log_answer(queue, question, &log);
	outcome = unanswered(queue->state, question, silent_reason);
	if (due == question->waiting_count)
		queue_shelve(queue->state, question, ASKING_LISTED);
	if (r == 0)
		r = queue_deliver(queue->state, question, due, &outcome);
	return r < 0 ? r : part_from_none(queue, question);
}

/* All that wait are refused now. */
static int refuse_waiting(struct queue *queue, const char *via, const char *reason)
{
	struct queue_answer_log log = { .via = via };
	struct queue_state *state = queue->state;
	int r = 0;

	for (size_t i = state ? state->question_count : 0; r == 0 && i-- > 0;) {
		struct question *question = i < state->question_count ? state->questions[i] : NULL;
		struct queue_outcome outcome;

		if (!question || question->state != ASKING_WAITS)
			continue;
		state->unanswered += question->waiting_count;
		r = queue_log_answer(queue, question, &log);
		outcome = unanswered(state, question, reason);
		queue_shelve(state, question, ASKING_LISTED);
		if (r == 0)
			r = queue_deliver(state, question, question->waiting_count, &outcome);
	}
	return r;
}

int queue_refuse_all(struct queue *queue)
{
	return refuse_waiting(queue, "nobody", nobody_reason);
}

int queue_end(struct queue *queue)
{
	return refuse_waiting(queue, "left", left_reason);
}

static void find_next_due(struct queue_state *state, uint64_t now_ns)
{
	state->next_ns = UINT64_MAX;
	for (size_t i = 0; i < state->question_count; i++) {
		const struct question *question = state->questions[i];

		if (question->state != ASKING_WAITS)
			queue_plan(state, question->until_ns);
		for (size_t j = 0; j < question->waiting_count; j++) {
			queue_plan(state, question->waiting[j].until_ns);
			if (question->waiting[j].waiter.is_gone)
				queue_plan(state, now_ns + QUEUE_LOOK_MS * (uint64_t)NS_PER_MS);
		}
	}
	for (size_t i = 0; i < state->grant_count; i++)
		queue_plan(state, state->grants[i]->until_ns);
}

static int queue_check(void *context, uint64_t now_ns)
{
	struct queue *queue = context;
	struct queue_state *state = queue->state;

	if (!state || now_ns < state->next_ns)
		return 0;
	queue_grants_expire(state, now_ns);
	/* Downwards: a removal moves the last one, which was looked at, to the place of the removed. */
	for (size_t i = state->question_count; i-- > 0;) {
		int r = i < state->question_count ? check_question(queue, state->questions[i], now_ns) : 0;

		if (r < 0)
			return r;
		if (r > 0)
			question_remove(state, i);
	}
	find_next_due(state, now_ns);
	return 0;
}

static int queue_timeout_ms(const void *context, uint64_t now_ns)
{
	const struct queue *queue = context;
	uint64_t left;

	if (!queue->state || queue->state->next_ns == UINT64_MAX)
		return -1;
	if (queue->state->next_ns <= now_ns)
		return 0;
	left = (queue->state->next_ns - now_ns) / NS_PER_MS + 1;
	return left > INT32_MAX ? INT32_MAX : (int)left;
}

bool queue_waits_for_path(const struct queue *queue, const char *path)
{
	const struct queue_state *state = queue->state;

	for (size_t i = 0; state && i < state->question_count; i++) {
		const struct question *question = state->questions[i];

		if (question->state == ASKING_WAITS && str_equal(question->shown.subject, path))
			return true;
	}
	return false;
}

bool queue_is_heard(struct queue *queue)
{
	if (queue->run->request->flags & REQUEST_TRIAL)
		return false;
	return is_heard_here(queue) || listeners_are_there();
}

bool queue_was_heard(struct queue *queue)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (queue->run->request->flags & REQUEST_TRIAL)
		return false;
	if (is_heard_here(queue))
		return true;
	if (now_ns >= queue->listeners_until_ns) {
		queue->has_listeners = listeners_are_there();
		queue->listeners_until_ns = now_ns + LISTENERS_MS * NS_PER_MS;
	}
	return queue->has_listeners;
}

static void queue_done(void *context)
{
	struct queue *queue = context;
	struct queue_state *state = queue->state;

	if (!state)
		return;
	while (state->question_count)
		question_remove(state, state->question_count - 1);
	while (state->grant_count)
		queue_grant_remove(state, state->grants[state->grant_count - 1]);
	free(state);
	queue->state = NULL;
}

const struct module queue_module = {
	.name = "queue",
	.check = queue_check,
	.timeout_ms = queue_timeout_ms,
	.done = queue_done,
};
