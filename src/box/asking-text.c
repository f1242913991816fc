/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "box/asking-state.h"
#include "box/state.h"

/* QUESTION_EXTRA: the rule, the reason, the agent's words and all that is no text. */
enum { ARGUMENT_EXTRA = 8, QUESTION_EXTRA = 1600, FRAME_FULL = FRAME_MESSAGE_MAX / 2, NS_PER_MS = 1000000 };

struct asking_shown asking_show(const struct asking_request *request)
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

struct grant_terms asking_terms(const struct asking_shown *shown)
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

size_t asking_shown_size(const struct asking_shown *shown)
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

int asking_shown_copy(const struct asking_shown *shown, struct asking_shown *ret_copy)
{
	struct asking_shown copy = { .kind = shown->kind, .flags = shown->flags, .port = shown->port };
	bool is_whole = copy_text(&copy.subject, shown->subject) && copy_text(&copy.method, shown->method) &&
			copy_text(&copy.path, shown->path) && copy_text(&copy.program, shown->program) &&
			copy_text(&copy.cwd, shown->cwd) && copy_text(&copy.rule, shown->rule) &&
			copy_text(&copy.why, shown->why);

	if (is_whole && shown->words) {
		copy.words = strndup(shown->words, ASKING_WORDS_MAX);
		is_whole = copy.words;
	}
	if (is_whole && shown->argv) {
		copy.argv = strv_copy((const char *const *)shown->argv);
		is_whole = copy.argv;
	}
	if (!is_whole) {
		asking_shown_done(&copy);
		return -ENOMEM;
	}
	*ret_copy = copy;
	return 0;
}

void asking_shown_done(struct asking_shown *shown)
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

struct asking_question asking_tell(const struct question *question, uint64_t now_ns)
{
	return (struct asking_question){
		.number = question->number, .hash = question->hash.bytes, .state = question->state,
		.waiting = (uint32_t)asking_count_shown(question), .times = question->times,
		.pid = (uint32_t)question->pid, .asked_ns = question->asked_ns,
		.left_ms = left_ms(question->until_ns, now_ns),
		.is_allowed = question->is_allowed, .shown = question->shown,
	};
}

size_t asking_count_open(const struct box *box)
{
	size_t count = 0;

	for (size_t i = 0; box->asking && i < box->asking->question_count; i++)
		count += box->asking->questions[i]->state != ASKING_ANSWERED;
	return count;
}

uint64_t asking_generation(const struct box *box)
{
	return box->asking ? box->asking->generation : 0;
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
		size += QUESTION_EXTRA + asking_shown_size(&sorted[i]->shown);
	return i;
}

uint64_t asking_put_questions(const struct box *box, uint64_t after, bool is_shown, struct buf *out)
{
	struct question *sorted[ASKING_QUESTIONS_MAX];
	uint64_t now_ns = clock_monotonic_ns();
	size_t count = 0;

	for (size_t i = 0; box->asking && i < box->asking->question_count; i++)
		if (box->asking->questions[i]->generation > after)
			sorted[count++] = box->asking->questions[i];
	qsort(sorted, count, sizeof *sorted, by_generation);
	count = count_fitting(sorted, count);
	if (count)
		after = sorted[count - 1]->generation;
	frame_put_u64(out, after);
	for (size_t i = 0; i < count; i++) {
		struct asking_question told = asking_tell(sorted[i], now_ns);

		if (is_shown)
			asking_seal(sorted[i]);
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

void asking_put_grants(const struct box *box, uint32_t after, struct buf *out)
{
	const struct asking *asking = box->asking;
	uint64_t now_ns = clock_monotonic_ns();

	for (size_t i = 0; asking && i < asking->grant_count && out->size < FRAME_FULL; i++)
		if (asking->grants[i]->number > after && !asking_grant_is_spent(asking->grants[i], now_ns))
			put_grant(asking->grants[i], now_ns, out);
}

uint64_t asking_unanswered(const struct box *box)
{
	return box->asking ? box->asking->unanswered : 0;
}

void asking_to_json(const struct box *box, struct json *json)
{
	const struct asking *asking = box->asking;

	json_object_begin(json, "asked");
	json_u64(json, "questions", asking ? asking->asked : 0);
	json_u64(json, "allowed", asking ? asking->allowed : 0);
	json_u64(json, "denied", asking ? asking->denied : 0);
	json_u64(json, "unanswered", asking_unanswered(box));
	json_u64(json, "too_many", asking ? asking->too_many : 0);
	notices_to_json(box, json);
	json_object_end(json);
}
