/* SPDX-License-Identifier: Apache-2.0 */
#include "box/asking.h"

#include <string.h>

#include "base/str.h"
#include "box/asking-state.h"
#include "box/state.h"
#include "os/clock.h"
#include "session/listeners.h"

/*
 * A question waits while somebody can hear of it, and is refused at once where nobody can: an agent that nobody watches
 * must not stand still. Refused ones stay listed, so that a person can allow the next try. What is asked again is the
 * same question: one for a burst, and none for a loop.
 */

enum { NS_PER_MS = 1000000, WAITING_FIRST = 4, LISTENERS_MS = 20 };

static const char nobody_reason[] = "a person has to allow this, and nobody can be asked now";
static const char left_reason[] = "a person was asked to allow this, and it was given up before anybody answered";
static const char silent_reason[] = "a person was asked to allow this, and did not answer in time";
static const char flood_reason[] = "too many questions were asked, so nobody is asked about this";
static const char long_reason[] = "a person has to allow this, and it is too long to be shown";

struct asking *asking_open(struct box *box)
{
	if (box->asking)
		return box->asking;
	box->asking = calloc(1, sizeof *box->asking);
	if (box->asking) {
		box->asking->next_ns = UINT64_MAX;
		box->asking->tokens = ASKING_BURST;
		box->asking->refilled_ns = clock_monotonic_ns();
	}
	return box->asking;
}

void asking_touch(struct asking *asking, struct question *question)
{
	question->generation = ++asking->generation;
}

void asking_due(struct asking *asking, uint64_t when_ns)
{
	if (when_ns < asking->next_ns)
		asking->next_ns = when_ns;
}

static void question_free(struct question *question)
{
	asking_shown_done(&question->shown);
	free(question->waiting);
	free(question);
}

static void question_remove(struct asking *asking, size_t at)
{
	question_free(asking->questions[at]);
	asking->questions[at] = asking->questions[--asking->question_count];
}

/* Makes room by forgetting the one that nobody has waited for the longest. */
static bool make_room(struct asking *asking)
{
	size_t oldest = ASKING_QUESTIONS_MAX;

	if (asking->question_count < ASKING_QUESTIONS_MAX)
		return true;
	for (size_t i = 0; i < asking->question_count; i++)
		if (asking->questions[i]->state != ASKING_WAITS &&
		    (oldest == ASKING_QUESTIONS_MAX ||
		     asking->questions[i]->generation < asking->questions[oldest]->generation))
			oldest = i;
	if (oldest == ASKING_QUESTIONS_MAX)
		return false;
	question_remove(asking, oldest);
	return true;
}

struct question *asking_question_new(struct asking *asking, struct asking_shown *shown, const struct hash *hash)
{
	struct question *question = make_room(asking) ? calloc(1, sizeof *question) : NULL;

	if (!question)
		return NULL;
	question->number = ++asking->last_question;
	question->hash = *hash;
	question->shown = *shown;
	question->asked_ns = clock_realtime_ns();
	*shown = (struct asking_shown){ 0 };
	asking->questions[asking->question_count++] = question;
	asking_touch(asking, question);
	return question;
}

void asking_rest(struct asking *asking, struct question *question, enum asking_state state)
{
	question->state = state;
	question->until_ns = clock_monotonic_ns() + ASKING_LISTED_MS * (uint64_t)NS_PER_MS;
	asking_due(asking, question->until_ns);
	asking_touch(asking, question);
}

/* The one that can still be asked again as the same question: the last, since those before it were shown. */
static struct question *find_question(struct asking *asking, const struct hash *hash)
{
	struct question *found = NULL;

	for (size_t i = 0; i < asking->question_count; i++) {
		struct question *question = asking->questions[i];

		if (question->state != ASKING_ANSWERED && memcmp(&question->hash, hash, sizeof *hash) == 0 &&
		    (!found || question->number > found->number))
			found = question;
	}
	return found;
}

static bool take_token(struct asking *asking)
{
	uint64_t now_ns = clock_monotonic_ns(), more = (now_ns - asking->refilled_ns) / NS_PER_MS / ASKING_REFILL_MS;

	asking->refilled_ns += more * ASKING_REFILL_MS * NS_PER_MS;
	asking->tokens = asking->tokens + more > ASKING_BURST ? ASKING_BURST : asking->tokens + more;
	if (!asking->tokens)
		return false;
	asking->tokens--;
	asking->is_exhausted = false;
	return true;
}

/* ---- those that wait ---- */

static bool add_waiting(struct asking *asking, struct question *question, const struct asking_waiter *waiter,
			uint64_t until_ns)
{
	if (asking->waiting_count >= ASKING_WAITERS_MAX)
		return false;
	if (question->waiting_count == question->waiting_size) {
		size_t size = question->waiting_size ? question->waiting_size * 2 : WAITING_FIRST;
		struct asking_waiting *grown = realloc(question->waiting, size * sizeof *grown);

		if (!grown)
			return false;
		question->waiting = grown;
		question->waiting_size = size;
	}
	/* The first is the next try that an answer to what nobody waits for is good for. */
	question->waiting[question->waiting_count] = (struct asking_waiting){
		*waiter, until_ns, question->is_sealed && question->waiting_count
	};
	question->waiting_count++;
	asking->waiting_count++;
	if (question->state != ASKING_WAITS || until_ns > question->until_ns)
		question->until_ns = until_ns;
	question->state = ASKING_WAITS;
	asking_due(asking, until_ns);
	if (waiter->is_gone)
		asking_due(asking, clock_monotonic_ns() + ASKING_LOOK_MS * (uint64_t)NS_PER_MS);
	return true;
}

static bool is_same_waiter(const struct asking_waiter *a, const struct asking_waiter *b)
{
	return a->done == b->done && a->context == b->context && a->token == b->token;
}

/* waiter NULL: those who have died. */
static void forget_in(struct asking *asking, struct question *question, const struct asking_waiter *waiter)
{
	for (size_t i = 0; i < question->waiting_count; i++) {
		struct asking_waiter entry = question->waiting[i].waiter;

		if (waiter ? !is_same_waiter(&entry, waiter)
			   : !entry.is_gone || !entry.is_gone(entry.context, entry.token))
			continue;
		/* Whoever found that out may have forgotten others with it: the rest the next time. */
		if (i >= question->waiting_count || !is_same_waiter(&question->waiting[i].waiter, &entry))
			break;
		memmove(question->waiting + i, question->waiting + i + 1,
			(--question->waiting_count - i) * sizeof *question->waiting);
		asking->waiting_count--;
		asking_touch(asking, question);
		i--;
	}
	if (question->state == ASKING_WAITS && !question->waiting_count)
		asking_rest(asking, question, ASKING_LISTED);
	if (question->waiting_count && question->waiting[0].is_late)
		asking_due(asking, 0);
}

void asking_forget(struct box *box, const struct asking_waiter *waiter)
{
	struct asking *asking = box->asking;

	for (size_t i = 0; asking && i < asking->question_count; i++)
		forget_in(asking, asking->questions[i], waiter);
	for (size_t i = 0; asking && i < asking->delivery.count; i++)
		if (is_same_waiter(&asking->delivery.waiting[i].waiter, waiter))
			asking->delivery.waiting[i].waiter.done = NULL;
}

/* The texts of an outcome live in *asking and do not outlast the first of those that are told. */
static void keep_texts(const struct asking_outcome *outcome, struct asking_texts *texts,
		       struct asking_outcome *ret_kept)
{
	*ret_kept = *outcome;
	if (str_copy(texts->hint, sizeof texts->hint, outcome->hint) == 0)
		ret_kept->hint = texts->hint;
	if (str_copy(texts->rule, sizeof texts->rule, outcome->rule.id) == 0)
		ret_kept->rule.id = texts->rule;
}

int asking_deliver(struct asking *asking, struct question *question, size_t count,
		   const struct asking_outcome *outcome)
{
	cleanup_free struct asking_waiting *told = NULL;
	struct delivery outer = asking->delivery;
	struct asking_outcome kept;
	struct asking_texts texts;
	int first = 0;

	if (!count)
		return 0;
	told = calloc(count, sizeof *told);
	if (!told)
		return -ENOMEM;
	keep_texts(outcome, &texts, &kept);
	memcpy(told, question->waiting, count * sizeof *told);
	question->waiting_count -= count;
	asking->waiting_count -= count;
	memmove(question->waiting, question->waiting + count, question->waiting_count * sizeof *told);
	asking->delivery = (struct delivery){ told, count };
	for (size_t i = 0; i < count; i++) {
		const struct asking_waiter *waiter = &told[i].waiter;
		int r = waiter->done ? waiter->done(waiter->context, waiter->token, &kept) : 0;

		first = first < 0 ? first : r;
	}
	asking->delivery = outer;
	return first < 0 ? first : 0;
}

/* ---- to ask ---- */

static struct asking_outcome unanswered(struct asking *asking, const struct question *question, const char *reason)
{
	if (str_format(asking->texts.hint, sizeof asking->texts.hint,
		       "`atoll approve %u` lets the next try through; keep `atoll ask` open, or list it in the policy",
		       question->number) < 0)
		asking->texts.hint[0] = 0;
	return (struct asking_outcome){ .verdict = ASKING_UNANSWERED,
					.rule = { question->shown.rule, "", 0 },
					.reason = reason,
					.hint = asking->texts.hint,
					.question = question->number };
}

/* Said once until there is room again: the log must not be flooded by who floods us. */
static int too_many(struct box *box, const struct asking_request *request, const char *reason,
		    struct asking_outcome *ret_outcome)
{
	struct asking *asking = box->asking;
	bool is_flood = reason == flood_reason;
	int r = is_flood && !asking->is_exhausted ? run_limit_episode(&box->run, "ask.questions", ASKING_BURST) : 0;

	asking->is_exhausted = asking->is_exhausted || is_flood;
	asking->too_many++;
	*ret_outcome = (struct asking_outcome){ .verdict = ASKING_TOO_MANY, .rule = request->decision.rule,
						.reason = reason, .hint = "" };
	return r;
}

static uint64_t patience_ns(const struct box *box, const struct asking_request *request)
{
	uint64_t ms = box->run.policy->policy->ask.timeout_ms;

	if (request->wait_max_ms && request->wait_max_ms < ms)
		ms = request->wait_max_ms;
	return ms * NS_PER_MS;
}

/* A question that is new, or that nobody waited for until now. */
static int raise_question(struct box *box, const struct asking_request *request, const struct hash *hash,
			  struct question **ret_question)
{
	struct asking_shown shown = asking_show(request), copy;
	struct question *question;
	int r = asking_shown_copy(&shown, &copy);

	if (r < 0)
		return r;
	question = asking_question_new(box->asking, &copy, hash);
	if (!question) {
		asking_shown_done(&copy);
		return 1;
	}
	question->pid = request->pid;
	asking_rest(box->asking, question, ASKING_LISTED);
	box->asking->asked++;
	*ret_question = question;
	return asking_log_open(box, question);
}

static int ask(struct box *box, const struct asking_request *request, const struct asking_waiter *waiter,
	       struct asking_outcome *ret_outcome)
{
	struct asking_shown shown = asking_show(request);
	struct grant_terms terms = asking_terms(&shown);
	struct asking *asking = box->asking;
	bool is_heard = waiter && asking_is_heard(box), is_open;
	struct question *question;
	struct hash hash;
	int r;

	if (asking_shown_size(&shown) > ASKING_TEXT_MAX)
		return too_many(box, request, long_reason, ret_outcome);
	grant_identity(&terms, &hash);
	question = find_question(asking, &hash);
	is_open = question && (question->state == ASKING_WAITS || !is_heard);
	if (!is_open && !take_token(asking))
		return too_many(box, request, flood_reason, ret_outcome);
	if (!question) {
		r = raise_question(box, request, &hash, &question);
		if (r)
			return r < 0 ? r : too_many(box, request, flood_reason, ret_outcome);
	}
	question->times++;
	asking_touch(asking, question);
	if (!is_open)
		prompt_ring(box);
	if (is_heard) {
		if (!add_waiting(asking, question, waiter, clock_monotonic_ns() + patience_ns(box, request)))
			return too_many(box, request, flood_reason, ret_outcome);
		*ret_outcome = (struct asking_outcome){ .reason = "", .hint = "", .question = question->number };
		return 1;
	}
	asking->unanswered++;
	*ret_outcome = unanswered(asking, question, nobody_reason);
	return 0;
}

int asking_begin(struct box *box, const struct asking_request *request, const struct asking_waiter *waiter,
		 struct asking_outcome *ret_outcome)
{
	int r;

	if (!asking_open(box))
		return -ENOMEM;
	r = asking_find(box, request, true, ret_outcome);
	if (r)
		return r < 0 ? r : 0;
	return ask(box, request, waiter, ret_outcome);
}

int asking_left(struct box *box, const struct asking_waiter *waiter, struct asking_outcome *ret_outcome)
{
	struct asking_answer_log log = { .via = "left" };
	struct asking *asking = box->asking;

	for (size_t i = 0; asking && i < asking->question_count; i++) {
		struct question *question = asking->questions[i];
		size_t at = 0;

		while (at < question->waiting_count && !is_same_waiter(&question->waiting[at].waiter, waiter))
			at++;
		if (at == question->waiting_count)
			continue;
		asking->unanswered++;
		*ret_outcome = unanswered(asking, question, left_reason);
		return question->waiting_count == 1 && asking_log_answer(box, question, &log) < 0 ? -EIO : 1;
	}
	return 0;
}

/* ---- time ---- */

static void sort_out_due(struct question *question, uint64_t now_ns, size_t *ret_due)
{
	size_t due = 0;

	for (size_t i = 0; i < question->waiting_count; i++) {
		struct asking_waiting entry = question->waiting[i];

		if (entry.until_ns > now_ns)
			continue;
		memmove(question->waiting + due + 1, question->waiting + due, (i - due) * sizeof entry);
		question->waiting[due++] = entry;
	}
	*ret_due = due;
}

/* Who was shown is gone; who came later waits for another question. */
static int part_from_none(struct box *box, struct question *question)
{
	return question->waiting_count && question->waiting[0].is_late ? asking_part(box, question, 0) : 0;
}

/* 1: it is forgotten. */
static int check_question(struct box *box, struct question *question, uint64_t now_ns)
{
	struct asking_answer_log log = { .via = "timeout" };
	struct asking_outcome outcome;
	size_t due;
	int r;

	forget_in(box->asking, question, NULL);
	r = part_from_none(box, question);
	if (r < 0)
		return r;
	if (question->state != ASKING_WAITS)
		return question->until_ns <= now_ns;
	sort_out_due(question, now_ns, &due);
	if (!due)
		return 0;
	box->asking->unanswered += due;
	if (due == question->waiting_count)
		r = asking_log_answer(box, question, &log);
	outcome = unanswered(box->asking, question, silent_reason);
	if (due == question->waiting_count)
		asking_rest(box->asking, question, ASKING_LISTED);
	if (r == 0)
		r = asking_deliver(box->asking, question, due, &outcome);
	return r < 0 ? r : part_from_none(box, question);
}

/* All that wait are refused now. */
static int refuse_waiting(struct box *box, const char *via, const char *reason)
{
	struct asking_answer_log log = { .via = via };
	struct asking *asking = box->asking;
	int r = 0;

	for (size_t i = asking ? asking->question_count : 0; r == 0 && i-- > 0;) {
		struct question *question = i < asking->question_count ? asking->questions[i] : NULL;
		struct asking_outcome outcome;

		if (!question || question->state != ASKING_WAITS)
			continue;
		asking->unanswered += question->waiting_count;
		r = asking_log_answer(box, question, &log);
		outcome = unanswered(asking, question, reason);
		asking_rest(asking, question, ASKING_LISTED);
		if (r == 0)
			r = asking_deliver(asking, question, question->waiting_count, &outcome);
	}
	return r;
}

int asking_hush(struct box *box)
{
	return refuse_waiting(box, "nobody", nobody_reason);
}

int asking_end(struct box *box)
{
	return refuse_waiting(box, "left", left_reason);
}

static void find_next_due(struct asking *asking, uint64_t now_ns)
{
	asking->next_ns = UINT64_MAX;
	for (size_t i = 0; i < asking->question_count; i++) {
		const struct question *question = asking->questions[i];

		if (question->state != ASKING_WAITS)
			asking_due(asking, question->until_ns);
		for (size_t j = 0; j < question->waiting_count; j++) {
			asking_due(asking, question->waiting[j].until_ns);
			if (question->waiting[j].waiter.is_gone)
				asking_due(asking, now_ns + ASKING_LOOK_MS * (uint64_t)NS_PER_MS);
		}
	}
	for (size_t i = 0; i < asking->grant_count; i++)
		asking_due(asking, asking->grants[i]->until_ns);
}

int asking_check(struct box *box, uint64_t now_ns)
{
	struct asking *asking = box->asking;

	if (!asking || now_ns < asking->next_ns)
		return 0;
	asking_grants_expire(asking, now_ns);
	/* Downwards: a removal moves the last one, which was looked at, to the place of the removed. */
	for (size_t i = asking->question_count; i-- > 0;) {
		int r = i < asking->question_count ? check_question(box, asking->questions[i], now_ns) : 0;

		if (r < 0)
			return r;
		if (r > 0)
			question_remove(asking, i);
	}
	find_next_due(asking, now_ns);
	return 0;
}

int asking_timeout_ms(const struct box *box, uint64_t now_ns)
{
	uint64_t left;

	if (!box->asking || box->asking->next_ns == UINT64_MAX)
		return -1;
	if (box->asking->next_ns <= now_ns)
		return 0;
	left = (box->asking->next_ns - now_ns) / NS_PER_MS + 1;
	return left > INT32_MAX ? INT32_MAX : (int)left;
}

bool asking_waits_for_path(const struct box *box, const char *path)
{
	const struct asking *asking = box->asking;

	for (size_t i = 0; asking && i < asking->question_count; i++) {
		const struct question *question = asking->questions[i];

		if (question->state == ASKING_WAITS && str_equal(question->shown.subject, path))
			return true;
	}
	return false;
}

static bool is_heard_here(struct box *box)
{
	return control_is_followed(box) || prompt_is_possible(box) || notices_are_heard(box);
}

bool asking_is_heard(struct box *box)
{
	if (box->run.request->flags & REQUEST_TRIAL)
		return false;
	return is_heard_here(box) || listeners_are_there();
}

bool asking_was_heard(struct box *box)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (box->run.request->flags & REQUEST_TRIAL)
		return false;
	if (is_heard_here(box))
		return true;
	if (now_ns >= box->listeners_until_ns) {
		box->has_listeners = listeners_are_there();
		box->listeners_until_ns = now_ns + LISTENERS_MS * NS_PER_MS;
	}
	return box->has_listeners;
}

void asking_done(struct box *box)
{
	struct asking *asking = box->asking;

	if (!asking)
		return;
	while (asking->question_count)
		question_remove(asking, asking->question_count - 1);
	while (asking->grant_count)
		asking_grant_remove(asking, asking->grants[asking->grant_count - 1]);
	free(asking);
	box->asking = NULL;
}
