/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/bind/bind-external.h"

#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "base/secret-name.h"
#include "base/str.h"

enum { ARGUMENTS_MAX = 64, MODEL_MAX = 200, BREAKER_DENIALS = 5, BREAKER_WITHIN_MS = 600000 };

static struct draft_external *external_of(struct binder *binder)
{
	return binder->draft->external;
}

static void bind_argument(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_external *external = external_of(binder);
	struct pattern pattern = { .text = node->text };
	const char *problem = NULL;

	/* The first is a program: by its path, whatever PATH says at that time. */
	if (!external->command.count)
		problem = pattern_resolve(binder->arena, &binder->scope, PATTERN_ANYWHERE, node->text, &pattern);
	if (problem || !pattern.text || pattern.is_glob || pattern.is_relative)
		bind_expected(binder, node, "the path of a program, absolute or below ~");
	else if (external->command.count == ARGUMENTS_MAX)
		bind_expected(binder, node, "at most 64 words");
	else
		vec_add_text(binder->arena, &external->command, pattern.text);
}

static void bind_verifier_url(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!bind_url_is_safe(node->text))
		bind_expected(binder, node, BIND_URL_EXPECTED);
	else
		external_of(binder)->verifier.url = node->text;
}

static void bind_model(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!node->text[0] || strlen(node->text) > MODEL_MAX)
		bind_expected(binder, node, "the name of a model");
	else
		external_of(binder)->verifier.model = node->text;
}

static void bind_secret(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!secret_name_is_valid(node->text))
		bind_expected(binder, node, "the name of a secret (`atoll secret list`)");
	else
		external_of(binder)->verifier.secret = node->text;
}

static void bind_when(struct binder *binder, const struct key *key, const struct node *node)
{
	int when = names_find(verify_when_names, VERIFY_WHEN_COUNT, node->text);

	if (when < 0)
		bind_expected(binder, node, "asked or all");
	else
		external_of(binder)->verifier.when = (enum verify_when)when;
}

static void bind_narrow(struct binder *binder, const struct key *key, const struct node *node)
{
	int mode = names_find(narrow_names, NARROW_COUNT, node->text);

	if (mode < 0)
		bind_expected(binder, node, "off, ask, auto or try");
	else
		external_of(binder)->verifier.narrow = (enum narrow_mode)mode;
}

static void bind_patience(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t ms;

	if (num_parse_duration(node->text, &ms) < 0 || !ms || ms > VERIFY_TIMEOUT_MAX_MS)
		bind_expected(binder, node, "a time with its unit, 2m at most");
	else
		external_of(binder)->verifier.timeout_ms = ms;
}

static void bind_denials(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t denials;

	if (num_parse_u64(node->text, &denials) < 0 || !denials || denials > COOLDOWN_DENIALS_MAX)
		bind_expected(binder, node, "a number from 1 to 256");
	else
		external_of(binder)->verifier.breaker.denials = denials;
}

static void bind_within(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t ms;

	if (num_parse_duration(node->text, &ms) < 0 || !ms || ms > ASK_TIMEOUT_MAX_MS)
		bind_expected(binder, node, "a time with its unit, 24h at most");
	else
		external_of(binder)->verifier.breaker.within_ms = ms;
}

static void bind_action(struct binder *binder, const struct key *key, const struct node *node)
{
	int action = names_find(breaker_action_names, BREAKER_ACTION_COUNT, node->text);

	if (action < 0)
		bind_expected(binder, node, "freeze or end");
	else
		external_of(binder)->verifier.breaker_action = (enum breaker_action)action;
}

static const struct key breaker_keys[] = {
	{ "denials", KEY_SCALAR, bind_denials },
	{ "within", KEY_SCALAR, bind_within },
	{ "action", KEY_SCALAR, bind_action },
};

static const struct key external_keys[] = {
	{ "command", KEY_SCALARS, bind_argument }, { "url", KEY_SCALAR, bind_verifier_url },
	{ "model", KEY_SCALAR, bind_model },	   { "secret", KEY_SCALAR, bind_secret },
	{ "when", KEY_SCALAR, bind_when },	   { "timeout", KEY_SCALAR, bind_patience },
	{ "narrow", KEY_SCALAR, bind_narrow },	   { "breaker", KEY_MAP, NULL, breaker_keys, ARRAY_SIZE(breaker_keys) },
};

void bind_external(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_external *external = arena_alloc(binder->arena, sizeof *external);
	size_t before = binder->diags->count;
	const char *problem = NULL;

	if (!external)
		return;
	external->place = node->place;
	external->verifier = (struct external_verifier){
		.timeout_ms = VERIFY_TIMEOUT_MS, .breaker = { BREAKER_DENIALS, BREAKER_WITHIN_MS, 0 },
	};
	binder->draft->external = external;
	bind_map(binder, external_keys, ARRAY_SIZE(external_keys), node);
	if (!external->command.count == !external->verifier.url)
		problem = "a verifier is a \"command\" or has a \"url\"";
	else if (!external->verifier.url != !external->verifier.model)
		problem = "\"url\" and \"model\" go together";
	else if (external->verifier.secret && !external->verifier.url)
		problem = "a \"secret\" goes with a \"url\"";
	if (problem && binder->diags->count == before)
		diag_add(binder->diags, node->place, "%s", problem);
}

struct external_verifier external_finish(struct arena *arena, const struct draft_external *draft)
{
	struct external_verifier verifier = draft ? draft->verifier : (struct external_verifier){ 0 };

	verifier.command = draft ? vec_strings(arena, &draft->command) : NULL;
	return verifier;
}
