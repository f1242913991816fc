/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "approve/queue-state.h"
#include "base/json.h"
#include "base/str.h"
#include "os/clock.h"

/* QUESTION_EXTRA: the rule, the reason, the agent's words and all that is no text. */
enum { ARGUMENT_EXTRA = 8, QUESTION_EXTRA = 1600, FRAME_FULL = FRAME_MESSAGE_MAX / 2, NS_PER_MS = 1000000 };

struct asking_shown queue_shown_of(const struct queue_request *request)
{
	const struct action *action = &request->action;

	return (struct asking_shown){
		.kind = action->kind,
		.flags = request->flags & (GRANT_BELOW | GRANT_OUTSIDE),
		.subject = action->subject,
		.argv = (char **)action->argv, .method = action->method, .path = action->path,
		.program = request->actor.program, .cwd = request->actor.cwd, .port = action->port,
		.rule = request->decision.rule.id, .why = request->decision.reason, .words = request->words,
	};
}

struct grant_terms queue_terms(const struct asking_shown *shown)
{
	return (struct grant_terms){
		.kind = shown->kind, .flags = shown->flags, .subject = shown->subject,
		.argv = (const char *const *)shown->argv, .method = shown->method, .path = shown->path,
		.port = (uint16_t)shown->port, .actor = { shown->program, shown->cwd },
	};
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) : 0;
}

size_t queue_shown_size(const struct asking_shown *shown)
{
	size_t size = text_size(shown->subject) + text_size(shown->method) + text_size(shown->path) +
		      text_size(shown->program) + text_size(shown->cwd);

	for (size_t i = 0; shown->argv && shown->argv[i]; i++)
		size += strlen(shown->argv[i]) + ARGUMENT_EXTRA;
	return size;
}

/* Copies a text where there is one; false: out of memory. */
static bool copy_text(const char **ret_copy, const char *text)
{
	*ret_copy = text ? str_dup(text) : NULL;
	return !text || *ret_copy;
}

int queue_shown_copy(const struct asking_shown *shown, struct asking_shown *ret_copy)
{
	struct asking_shown copy = { .kind = shown->kind, .flags = shown->flags, .port = shown->port };
	bool is_whole = copy_text(&copy.subject, shown->subject) && copy_text(&copy.method, shown->method) &&
			copy_text(&copy.path, shown->path) && copy_text(&copy.program, shown->program) &&
			copy_text(&copy.cwd, shown->cwd) && copy_text(&copy.rule, shown->rule) &&
			copy_text(&copy.why, shown->why);

	if (is_whole && shown->words) {
		copy.words = strndup(shown->words, QUEUE_WORDS_MAX);
		is_whole = copy.words;
	}
	if (is_whole && shown->argv) {
		copy.argv = strv_copy((const char *const *)shown->argv);
		is_whole = copy.argv;
	}
	if (!is_whole) {
		queue_shown_done(&copy);
		return -ENOMEM;
	}
	*ret_copy = copy;
	return 0;
}

void queue_shown_done(struct asking_shown *shown)
{
	const char *texts[] = { shown->subject, shown->method, shown->path, shown->program,
				shown->cwd,	shown->rule,   shown->why,  shown->words };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free((char *)texts[i]);
	strv_free(shown->argv);
	*shown = (struct asking_shown){ 0 };
}

static uint64_t left_ms(uint64_t until_ns, uint64_t now_ns)
{
	if (until_ns == UINT64_MAX)
		return UINT64_MAX;
	return until_ns > now_ns ? (until_ns - now_ns) / NS_PER_MS : 0;
}

struct asking_question queue_question_of(const struct question *question, uint64_t now_ns)
{
	return (struct asking_question){
		.number = question->number, .hash = question->hash.bytes, .state = question->state,
		.waiting = (uint32_t)queue_count_shown(question), .times = question->times,
		.pid = (uint32_t)question->pid, .asked_ns = question->asked_ns,
		.left_ms = left_ms(question->until_ns, now_ns),
		.is_allowed = question->is_allowed, .shown = question->shown,
	};
}

size_t queue_count_open(const struct queue *queue)
{
	size_t count = 0;

	for (size_t i = 0; queue->state && i < queue->state->question_count; i++)
		count += queue->state->questions[i]->state != ASKING_ANSWERED;
	return count;
}

uint64_t queue_generation(const struct queue *queue)
{
	return queue->state ? queue->state->generation : 0;
}

static int by_generation(const void *a, const void *b)
{
	const struct question *left = *(const struct question *const *)a, *right = *(const struct question *const *)b;

	return left->generation < right->generation ? -1 : left->generation > right->generation;
}

/* How many fit, and take so much that the frame is full. */
static size_t count_fitting(struct question *const *sorted, size_t count)
{
	size_t size = 0, i = 0;

	for (; i < count && size < FRAME_FULL; i++)
		size += QUESTION_EXTRA + queue_shown_size(&sorted[i]->shown);
	return i;
}

uint64_t queue_put_questions(const struct queue *queue, uint64_t after, bool is_shown, struct buf *out)
{
	struct question *sorted[QUEUE_QUESTIONS_MAX];
	uint64_t now_ns = clock_monotonic_ns();
	size_t count = 0;

	for (size_t i = 0; queue->state && i < queue->state->question_count; i++)
		if (queue->state->questions[i]->generation > after)
			sorted[count++] = queue->state->questions[i];
	qsort(sorted, count, sizeof *sorted, by_generation);
	count = count_fitting(sorted, count);
	if (count)
		after = sorted[count - 1]->generation;
	frame_put_u64(out, after);
	for (size_t i = 0; i < count; i++) {
		struct asking_question told = queue_question_of(sorted[i], now_ns);

		if (is_shown)
			queue_seal(sorted[i]);
		asking_question_put(out, &told);
	}
	return after;
}

static void put_grant(const struct grant *grant, uint64_t now_ns, struct buf *out)
{
	struct asking_grant told = {
		.number = grant->number, .is_refusal = (grant->shown.flags & GRANT_REFUSES) != 0,
		.question = grant->question, .scope = grant->scope, .used = grant->used,
		.uses_left = grant->uses_left, .left_ms = left_ms(grant->until_ns, now_ns),
		.given_ns = grant->given_ns, .by = grant->by, .shown = grant->shown,
	};

	asking_grant_put(out, &told);
}

void queue_put_grants(const struct queue *queue, uint32_t after, struct buf *out)
{
	const struct queue_state *state = queue->state;
	uint64_t now_ns = clock_monotonic_ns();

	for (size_t i = 0; state && i < state->grant_count && out->size < FRAME_FULL; i++)
		if (state->grants[i]->number > after && !queue_grant_is_spent(state->grants[i], now_ns))
			put_grant(state->grants[i], now_ns, out);
}

uint64_t queue_unanswered(const struct queue *queue)
{
	return queue->state ? queue->state->unanswered : 0;
}

void queue_to_json(const struct queue *queue, struct json *json)
{
	const struct queue_state *state = queue->state;

	json_u64(json, "questions", state ? state->asked : 0);
	json_u64(json, "allowed", state ? state->allowed : 0);
	json_u64(json, "denied", state ? state->denied : 0);
	json_u64(json, "unanswered", queue_unanswered(queue));
	json_u64(json, "too_many", state ? state->too_many : 0);
}
