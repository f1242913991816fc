/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "approve/question-words.h"
#include "approve/queue-state.h"
#include "audit/writer.h"
#include "base/str.h"
#include "os/clock.h"
#include "supervise/run.h"

struct context {
	const struct question *question;
	const struct queue_answer_log *answer;
	const struct grant *grant;
	const struct queue_answerer *by;
	bool is_revoked;
};

static void put_text(struct json *json, const char *key, const char *text)
{
	if (text)
		json_bytes(json, key, text, strlen(text));
}

static void put_shown(struct json *json, const struct asking_shown *shown)
{
	json_string(json, "kind", action_kind_names[shown->kind]);
	if (shown->flags & GRANT_BELOW)
		json_bool(json, "below", true);
	if (shown->flags & GRANT_VIEW)
		json_bool(json, "view", true);
	if (shown->port)
		json_u64(json, "port", shown->port);
	put_text(json, "method", shown->method);
	put_text(json, "path", shown->path);
	put_text(json, "cwd", shown->cwd);
	if (!shown->argv || !shown->argv[0])
		return;
	json_array_begin(json, "argv");
	for (size_t i = 0; shown->argv[i]; i++)
		json_bytes(json, NULL, shown->argv[i], strlen(shown->argv[i]));
	json_array_end(json);
}

static void put_question(struct json *json, const struct question *question)
{
	json_u64(json, "question", question->number);
	json_hash(json, "hash", &question->hash);
}

static void put_answerer(struct json *json, const char *via, const struct queue_answerer *by)
{
	json_string(json, "by", via);
	if (by)
		json_u64(json, "uid", by->uid);
	if (by && by->pid)
		json_u64(json, "answerer_pid", (uint64_t)by->pid);
}

static void open_detail(struct json *json, const void *context)
{
	const struct question *question = context;

	put_question(json, question);
	put_shown(json, &question->shown);
	put_text(json, "words", question->shown.words);
}

int queue_log_open(struct queue *queue, const struct question *question)
{
	struct audit_event event = {
		.type = AUDIT_ASK_OPEN, .verdict = verdict_names[VERDICT_ASK], .rule = question->shown.rule,
		.pid = question->pid, .exe = question->shown.program, .subject = question->shown.subject,
		.subject_size = strlen(question->shown.subject), .write_detail = open_detail, .context = question,
	};

	return audit_write(queue->run->audit, &event);
}

static void answer_detail(struct json *json, const void *opaque)
{
	const struct context *context = opaque;
	const struct queue_answer_log *answer = context->answer;

	put_question(json, context->question);
	put_answerer(json, answer->via, answer->by);
	if (!answer->by && !answer->grant)
		return;
	json_string(json, "scope", asking_scope_names[answer->scope]);
	if (answer->amount)
		json_u64(json, "amount", answer->amount);
	if (answer->grant)
		json_u64(json, "grant", answer->grant);
}

int queue_log_answer(struct queue *queue, const struct question *question, const struct queue_answer_log *answer)
{
	struct context context = { .question = question, .answer = answer };
	struct audit_event event = {
		.type = AUDIT_ASK_ANSWER,
		.verdict = verdict_names[answer->is_allowed ? VERDICT_ALLOW : VERDICT_DENY],
		.rule = question->shown.rule, .pid = question->pid, .exe = question->shown.program,
		.subject = question->shown.subject, .subject_size = strlen(question->shown.subject),
		.write_detail = answer_detail, .context = &context,
	};

	return audit_write(queue->run->audit, &event);
}

static void grant_detail(struct json *json, const void *opaque)
{
	const struct context *context = opaque;
	const struct grant *grant = context->grant;

	json_string(json, "change", context->is_revoked ? "revoke" : "grant");
	json_u64(json, "grant", grant->number);
	json_string(json, "scope", asking_scope_names[grant->scope]);
	json_u64(json, "used", grant->used);
	if (context->by)
		put_answerer(json, context->by->via, context->by);
	else
		json_string(json, "by", grant->by);
	put_shown(json, &grant->shown);
}

int queue_log_grant(struct queue *queue, const struct grant *grant, bool is_revoked, const struct queue_answerer *by)
{
	struct context context = { .grant = grant, .by = by, .is_revoked = is_revoked };
	bool refuses = grant->shown.flags & GRANT_REFUSES;
	struct audit_event event = {
		.type = AUDIT_POLICY_CHANGE,
		.verdict = verdict_names[refuses ? VERDICT_DENY : VERDICT_ALLOW],
		.exe = grant->shown.program, .subject = grant->shown.subject,
		.subject_size = strlen(grant->shown.subject), .write_detail = grant_detail, .context = &context,
	};

	return audit_write(queue->run->audit, &event);
}
