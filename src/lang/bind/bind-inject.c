/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/secret-name.h"
#include "base/header-name.h"
#include "base/str.h"
#include "lang/bind/bind.h"

/*
 * network.allow: inject. A credential goes to one exact host over TLS, or it goes to whoever answers: what could send
 * it anywhere else is no policy.
 */

enum { QUERY_NAME_MAX = 128, SCOPE_NAME_MAX = 64 };

static struct draft_inject *inject_of(struct binder *binder)
{
	return &((struct draft_net *)binder->rule)->inject;
}

static void bind_header(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!header_name_is_valid(node->text))
		bind_expected(binder, node, "the name of a header");
	else if (header_name_is_framing(node->text))
		diag_add(binder->diags, node->place, "\"%.60s\" is a header that no secret goes into", node->text);
	else
		inject_of(binder)->header = node->text;
}

static void bind_query(struct binder *binder, const struct key *key, const struct node *node)
{
	static const char unreserved[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

	if (!node->text[0] || strlen(node->text) > QUERY_NAME_MAX || node->text[strspn(node->text, unreserved)])
		bind_expected(binder, node, "the name of a query parameter");
	else
		inject_of(binder)->query = node->text;
}

static void bind_kind(struct binder *binder, const struct key *key, const struct node *node)
{
	static const enum inject_kind kinds[] = { INJECT_RAW, INJECT_BEARER, INJECT_BASIC };

	inject_of(binder)->has_kind = true;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_equal(node->text, inject_kind_names[kinds[i]])) {
			inject_of(binder)->kind = kinds[i];
			return;
		}
	bind_expected(binder, node, "one of raw, bearer, basic");
}

static void bind_scope_name(struct binder *binder, const struct key *key, const struct node *node)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	struct draft_inject *inject = inject_of(binder);

	if (!node->text[0] || strlen(node->text) > SCOPE_NAME_MAX || node->text[strspn(node->text, letters)])
		bind_expected(binder, node, "a name in small letters such as s3 or eu-central-1");
	else
		*(str_equal(key->name, "service") ? &inject->service : &inject->region) = node->text;
}

static const struct key aws_keys[] = {
	{ "service", KEY_SCALAR, bind_scope_name },
	{ "region", KEY_SCALAR, bind_scope_name },
};

static void bind_aws(struct binder *binder, const struct key *key, const struct node *node)
{
	inject_of(binder)->is_aws = true;
	bind_map(binder, aws_keys, ARRAY_SIZE(aws_keys), node);
}

static void bind_secret(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!secret_name_is_valid(node->text))
		bind_expected(binder, node, "the name of a secret (letters, digits, dots, dashes, underscores)");
	else
		inject_of(binder)->secret = node->text;
}

static void bind_env(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!bind_variable_is_valid(node->text, strlen(node->text)) || str_has_prefix(node->text, "ATOLL_"))
		bind_expected(binder, node, "the name of a variable that is not atoll's own");
	else
		inject_of(binder)->env = node->text;
}

static const struct key inject_keys[] = {
	{ "header", KEY_SCALAR, bind_header }, { "kind", KEY_SCALAR, bind_kind },
	{ "query", KEY_SCALAR, bind_query },   { "aws", KEY_FREE, bind_aws },
	{ "secret", KEY_SCALAR, bind_secret }, { "env", KEY_SCALAR, bind_env },
};

void bind_inject(struct binder *binder, const struct key *key, const struct node *node)
{
	*inject_of(binder) = (struct draft_inject){ .place = node->place, .is_given = true, .kind = INJECT_RAW };
	bind_map(binder, inject_keys, ARRAY_SIZE(inject_keys), node);
}

/* Where nothing speaks TLS: a secret on such a port is a mistake, and would never be put in. */
static bool is_plain_port(uint16_t port)
{
	static const uint16_t ports[] = { 21, 23, 25, 80, 110, 143, 8008, 8080 };

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
		if (ports[i] == port)
			return true;
	return false;
}

static void check_place(struct binder *binder, const struct draft_net *net)
{
	const uint16_t *ports = net->ports.items;

	if (net->verdict != VERDICT_ALLOW)
		diag_add(binder->diags, net->inject.place, "a secret is injected by a rule under network.allow only");
	if (net->cidr || (net->host && net->host[0] == '*'))
		diag_add(binder->diags, net->from.place,
			 "a secret is injected for one exact host only, not for \"%.80s\"", net->from.text);
	if (!net->ports.count)
		diag_add(binder->diags, net->inject.place,
			 "a secret needs the ports that it goes to: say them, such as \"ports: [443]\"");
	for (size_t i = 0; i < net->ports.count; i++)
		if (is_plain_port(ports[i]))
			diag_add(binder->diags, net->from.place,
				 "a secret is not injected without TLS, and port %u has none", ports[i]);
}

void inject_check(struct binder *binder, const struct draft_net *net)
{
	const struct draft_inject *inject = &net->inject;
	int places = (inject->header != NULL) + (inject->query != NULL) + inject->is_aws;

	if (!inject->is_given)
		return;
	check_place(binder, net);
	if (!inject->secret)
		diag_add(binder->diags, inject->place,
			 "\"inject\" needs the name of a secret, which `atoll secret set NAME` keeps");
	if (places != 1)
		diag_add(binder->diags, inject->place,
			 "\"inject\" says where the secret goes, once: \"header\", \"query\" or \"aws\"");
	if (inject->has_kind && !inject->header)
		diag_add(binder->diags, inject->place, "\"kind\" is about a header, and there is none");
	if (inject->is_aws && (!inject->service || !inject->region))
		diag_add(binder->diags, inject->place, "\"aws\" needs a service and a region");
}

static void bind_canary_file(struct binder *binder, const struct node *node)
{
	struct pattern pattern;
	const char *problem = pattern_resolve(binder->arena, &binder->scope, PATTERN_BELOW_PROJECT, node->text,
					      &pattern);
	struct draft_path *canary;

	if (!problem && pattern.is_glob)
		problem = "a canary is one file, and no glob";
	if (!problem && pattern.text && (strlen(pattern.text) > POLICY_CANARY_PATH_MAX || !pattern.text[1]))
		problem = "a canary is a file with a path of at most 512 bytes";
	if (problem) {
		diag_add(binder->diags, node->place, "\"%.80s\": %s", node->text, problem);
		return;
	}
	canary = pattern.text ? bind_add(binder, &binder->draft->canary_files, sizeof *canary, node) : NULL;
	if (canary) {
		canary->pattern = pattern.text;
		canary->from.text = node->text;
	}
}

void bind_canary(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_named *canary;

	if (strchr(node->text, '/')) {
		bind_canary_file(binder, node);
		return;
	}
	if (!secret_name_is_valid(node->text)) {
		bind_expected(binder, node, "the name of a secret (letters, digits, dots, dashes, underscores), or "
						    "the path of a file to plant (with a slash)");
		return;
	}
	canary = bind_add(binder, &binder->draft->canaries, sizeof *canary, node);
	if (canary)
		canary->name = canary->from.text = node->text;
}
