/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/reply.h"

#include <string.h>

#include "base/json.h"

enum { WORDS_MAX = 1024 };

static void put_words(struct buf *out, const char *before, const char *text)
{
	if (!*text)
		return;
	buf_put_text(out, before);
	buf_put_escaped(out, text, strlen(text), WORDS_MAX);
}

static void put_near_words(struct buf *out, char *const *near)
{
	for (size_t i = 0; near && near[i]; i++)
		put_words(out, i ? ", " : "; allowed and near: ", near[i]);
}

static void put_answer_words(struct buf *out, const struct desk_answer *answer)
{
	buf_put_text(out, desk_verdict_names[answer->verdict]);
	if (answer->question)
		buf_printf(out, " %u", answer->question);
	buf_put_char(out, ':');
	put_words(out, " ", answer->reason);
	if (*answer->rule) {
		put_words(out, " (", answer->rule);
		buf_put_char(out, ')');
	}
	put_words(out, "; ", answer->hint);
	put_near_words(out, answer->near);
}

static void begin(struct json *json, struct buf *out, const struct reply_form *form, const char *verdict)
{
	json_init(json, out);
	json_object_begin(json, NULL);
	json_string(json, "verdict", verdict);
	if (form->tag)
		json_string(json, "tag", form->tag);
}

static void put_answer_json(struct buf *out, const struct reply_form *form, const struct desk_answer *answer)
{
	struct json json;

	begin(&json, out, form, desk_verdict_names[answer->verdict]);
	if (answer->question)
		json_u64(&json, "number", answer->question);
	json_string(&json, "rule", answer->rule);
	json_string(&json, "reason", answer->reason);
	json_string(&json, "hint", answer->hint);
	if (answer->near && answer->near[0]) {
		json_array_begin(&json, "near");
		for (size_t i = 0; answer->near[i]; i++)
			json_bytes(&json, NULL, answer->near[i], strlen(answer->near[i]));
		json_array_end(&json);
	}
	json_object_end(&json);
}

void reply_put_answer(struct buf *out, const struct reply_form *form, const struct desk_answer *answer)
{
	if (form->is_text)
		put_answer_words(out, answer);
	else
		put_answer_json(out, form, answer);
	buf_put_char(out, '\n');
}

void reply_put_status(struct buf *out, const struct reply_form *form, const struct desk_status *status)
{
	struct json json;

	if (form->is_text) {
		put_words(out, "status: session ", status->session);
		put_words(out, ", policy ", status->policy);
		put_words(out, ", level ", status->level);
		buf_printf(out, ", %llu refusals; %s\n", (unsigned long long)status->denied,
			   status->is_heard ? "a person sees questions now" : "nobody sees questions now");
		return;
	}
	begin(&json, out, form, "status");
	json_string(&json, "session", status->session);
	json_string(&json, "policy", status->policy);
	json_string(&json, "level", status->level);
	json_bool(&json, "heard", status->is_heard);
	json_u64(&json, "denied", status->denied);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

void reply_put_invalid(struct buf *out, const struct reply_form *form, const char *why)
{
	const struct desk_answer answer = { .verdict = DESK_INVALID, .rule = "", .reason = why,
					    .hint = "see /run/atoll/limits.md" };

	reply_put_answer(out, form, &answer);
}
