/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/proposal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "judge/opinion.h"

/* Between characters, where it is too long. */
static void set_reason(struct proposal *proposal, const char *reason)
{
	size_t size = strnlen(reason, sizeof proposal->reason - 1);

	while (size && ((unsigned char)reason[size] & 0xc0) == 0x80)
		size--;
	memcpy(proposal->reason, reason, size);
	proposal->reason[size] = 0;
}

/* NULL: *ret_proposal is what it says; else why it says nothing. */
static const char *read_object(const json_t *root, struct proposal *ret_proposal)
{
	const json_t *narrow = json_object_get(root, "narrow"), *reason = json_object_get(root, "reason");
	char *text;

	if (!json_is_object(root))
		return "the verifier did not answer with a JSON object";
	if (!json_is_object(narrow))
		return "the verifier's answer has no object \"narrow\"";
	if (json_object_size(root) != (reason ? 2 : 1) || (reason && !json_is_string(reason)))
		return "the verifier's answer has other members than \"narrow\" and \"reason\"";
	/* A line for each word, so that an error has the place of one. */
	text = json_dumps(narrow, JSON_INDENT(1));
	if (!text || strlen(text) > JUDGE_PROPOSAL_MAX) {
		free(text);
		return "the verifier's proposal is too long";
	}
	ret_proposal->text = text;
	set_reason(ret_proposal, reason ? json_string_value(reason) : "");
	return NULL;
}

void proposal_parse(const void *bytes, size_t size, struct proposal *ret_proposal)
{
	json_error_t error;
	json_t *root = size <= OPINION_MAX ? json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error) : NULL;
	const char *why;

	*ret_proposal = (struct proposal){ 0 };
	why = read_object(root, ret_proposal);
	if (why)
		set_reason(ret_proposal, why);
	json_decref(root);
}

void proposal_parse_completion(const void *bytes, size_t size, struct proposal *ret_proposal)
{
	json_error_t error;
	json_t *root = size <= OPINION_MAX ? json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error) : NULL;
	const char *content = opinion_content(root);

	*ret_proposal = (struct proposal){ 0 };
	if (content)
		proposal_parse(content, strlen(content), ret_proposal);
	else
		set_reason(ret_proposal, "the endpoint did not answer with one message");
	json_decref(root);
}

void proposal_done(struct proposal *proposal)
{
	free(proposal->text);
	proposal->text = NULL;
}
