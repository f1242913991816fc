/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/str.h"
#include "lang/bind/bind.h"

/* What a rule of network.simulate answers. Framing is the gate's, so that one answer serves every version of HTTP. */

enum { FIELDS_MAX = 64, STATUS_FIRST = 200, STATUS_LAST = 599 };

static struct draft_answer *answer_of(const struct binder *binder)
{
	return ((struct draft_net *)binder->rule)->answer;
}

static void bind_status(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t status;

	if (num_parse_u64(node->text, &status) < 0 || status < STATUS_FIRST || status > STATUS_LAST)
		bind_expected(binder, node, "a status from 200 to 599");
	else
		answer_of(binder)->status = status;
}

/* NULL, or why no answer may have this field. */
static const char *field_problem(const char *name, const char *value)
{
	static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
	static const char *const framing[] = { "content-length", "transfer-encoding", "connection", "keep-alive",
					       "proxy-connection", "upgrade", "te", "trailer" };

	if (!*name || name[strspn(name, token)])
		return "this is no name of a header";
	for (size_t i = 0; i < ARRAY_SIZE(framing); i++)
		if (strcasecmp(name, framing[i]) == 0)
			return "atoll sets this header itself";
	for (; *value; value++)
		if ((unsigned char)*value < 0x20 || *value == 0x7f)
			return "the value has a control character";
	return NULL;
}

static void add_field(struct binder *binder, const struct node *name)
{
	struct draft_answer *answer = answer_of(binder);
	const char *problem = field_problem(name->text, name->value->text);
	char *lower;

	if (!problem && answer->fields.count == 2 * FIELDS_MAX)
		problem = "an answer has at most 64 headers";
	if (problem) {
		diag_add(binder->diags, name->place, "\"%.60s\": %s", name->text, problem);
		return;
	}
	lower = arena_text(binder->arena, name->text);
	for (char *at = lower; at && *at; at++)
		*at = (char)tolower((unsigned char)*at);
	vec_add_text(binder->arena, &answer->fields, lower);
	vec_add_text(binder->arena, &answer->fields, name->value->text);
}

static void bind_headers(struct binder *binder, const struct key *key, const struct node *node)
{
	for (const struct node *at = node->first; at; at = at->next) {
		if (at->kind != NODE_SCALAR)
			bind_expected(binder, at, "the name of a header");
		else if (at->value->kind != NODE_SCALAR)
			bind_expected(binder, at->value, "the value of a header");
		else
			add_field(binder, at);
	}
}

static void bind_body(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_answer *answer = answer_of(binder);

	if (answer->body_place.line)
		diag_add(binder->diags, node->place, "an answer has a \"body\" or a \"body_file\", not both");
	answer->body_place = node->place;
	if (key->value) {
		answer->body_file = node->text;
		if (!node->text[0])
			bind_expected(binder, node, "the path of a file");
		return;
	}
	answer->body = node->text;
	answer->body_size = strlen(node->text);
	if (answer->body_size > NET_ANSWER_BODY_MAX)
		bind_expected(binder, node, "at most 1 MiB");
}

static const struct key answer_keys[] = {
	{ "status", KEY_SCALAR, bind_status },
	{ "headers", KEY_FREE, bind_headers },
	{ "body", KEY_SCALAR, bind_body },
	{ "body_file", KEY_SCALAR, bind_body, .value = true },
};

void bind_answer(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_net *net = (struct draft_net *)binder->rule;

	net->answer = arena_alloc(binder->arena, sizeof *net->answer);
	if (!net->answer)
		return;
	net->answer->place = node->place;
	net->answer->status = STATUS_FIRST;
	bind_map(binder, answer_keys, ARRAY_SIZE(answer_keys), node);
	/* Neither has a body, and a client that took one for the next answer would be led astray. */
	if ((net->answer->status == 204 || net->answer->status == 304) && net->answer->body_place.line)
		diag_add(binder->diags, net->answer->body_place, "an answer with status %u has no body",
			 (unsigned)net->answer->status);
}
