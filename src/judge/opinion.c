/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/opinion.h"

#include <jansson.h>
#include <string.h>

#include "base/str.h"

void opinion_prepare(void)
{
	json_object_seed(0);
}

static void set(struct opinion *opinion, enum judge_verdict verdict, const char *reason)
{
	struct buf out;

	opinion->verdict = verdict;
	buf_init_fixed(&out, opinion->reason, sizeof opinion->reason);
	buf_put_escaped(&out, reason, strlen(reason), sizeof opinion->reason - 8);
	if (buf_error(&out))
		opinion->reason[0] = 0;
	else
		(void)buf_text(&out);
}

/* NULL: *ret_opinion is what it says; else why it says nothing. */
static const char *read_object(const json_t *root, struct opinion *ret_opinion)
{
	const json_t *verdict = json_object_get(root, "verdict"), *reason = json_object_get(root, "reason");
	const char *name = json_string_value(verdict);

	if (!json_is_object(root))
		return "the verifier did not answer with a JSON object";
	if (json_object_size(root) != (reason ? 2 : 1) || (reason && !json_is_string(reason)))
		return "the verifier's answer has other members than \"verdict\" and \"reason\"";
	for (unsigned i = 0; name && i < JUDGE_VERDICT_COUNT; i++) {
		if (!str_equal(name, judge_verdict_names[i]))
			continue;
		set(ret_opinion, (enum judge_verdict)i, reason ? json_string_value(reason) : "");
		return NULL;
	}
	return "the verifier's verdict is none of allow, deny, unclear";
}

void opinion_parse(const void *bytes, size_t size, struct opinion *ret_opinion)
{
	json_error_t error;
	json_t *root = size <= OPINION_MAX ? json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error) : NULL;
	const char *why = read_object(root, ret_opinion);

	if (why)
		set(ret_opinion, JUDGE_UNCLEAR, why);
	json_decref(root);
}

const char *opinion_content(const json_t *completion)
{
	const json_t *choices = json_object_get(completion, "choices");
	const json_t *message = json_object_get(json_array_get(choices, 0), "message");

	/* Of several answers none is the one that was asked for. */
	return json_array_size(choices) == 1 ? json_string_value(json_object_get(message, "content")) : NULL;
}

void opinion_parse_completion(const void *bytes, size_t size, struct opinion *ret_opinion)
{
	json_error_t error;
	json_t *root = size <= OPINION_MAX ? json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error) : NULL;
	const char *content = opinion_content(root);

	if (content)
		opinion_parse(content, strlen(content), ret_opinion);
	else
		set(ret_opinion, JUDGE_UNCLEAR, "the endpoint did not answer with one message");
	json_decref(root);
}
