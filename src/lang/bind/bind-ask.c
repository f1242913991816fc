/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/num.h"
#include "base/secret-name.h"
#include "base/str.h"
#include "lang/bind/bind.h"

/*
 * How people are asked. A webhook is set whole: what is written of one replaces all that was inherited, or a key of one
 * place would sign for another.
 */

static struct draft_scalar *set(struct binder *binder, unsigned kind, const struct node *node,
				const char *text, uint64_t value)
{
	struct draft_scalar *scalar = &binder->scalars[kind];

	*scalar = (struct draft_scalar){ .is_set = true, .value = value, .place = node->place, .id = "ask.webhook",
					 .text = text };
	return scalar;
}

/* Whether the URL begins with this, and goes on with the end of the host. */
static bool is_on_host(const char *url, const char *beginning)
{
	const char *rest = str_has_prefix(url, beginning) ? url + strlen(beginning) : "?";

	return !*rest || *rest == ':' || *rest == '/';
}

bool bind_url_is_safe(const char *url)
{
	bool is_good = (str_has_prefix(url, "https://") && url[strlen("https://")]) ||
		       is_on_host(url, "http://127.0.0.1") || is_on_host(url, "http://[::1]");

	for (const char *at = url; *at; at++)
		is_good &= *at > ' ' && *at < 0x7f;
	return is_good && strlen(url) <= ASK_WEBHOOK_MAX;
}

static void bind_url(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!bind_url_is_safe(node->text))
		bind_expected(binder, node, BIND_URL_EXPECTED);
	else
		set(binder, SCALAR_ASK_WEBHOOK, node, node->text, true);
}

static void bind_key(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!secret_name_is_valid(node->text))
		bind_expected(binder, node, "the name of a secret (`atoll secret list`)");
	else
		set(binder, SCALAR_ASK_WEBHOOK_KEY, node, node->text, true);
}

static void bind_key_file(struct binder *binder, const struct key *key, const struct node *node)
{
	struct pattern pattern;
	const char *problem = pattern_resolve(binder->arena, &binder->scope, PATTERN_ANYWHERE, node->text, &pattern);

	if (problem || !pattern.text || pattern.is_glob || pattern.is_relative)
		bind_expected(binder, node, "the path of a file, absolute or below ~");
	else
		set(binder, SCALAR_ASK_WEBHOOK_KEY_FILE, node, pattern.text, true);
}

static const struct key webhook_keys[] = {
	{ "url", KEY_SCALAR, bind_url },
	{ "key", KEY_SCALAR, bind_key },
	{ "key_file", KEY_SCALAR, bind_key_file },
	{ "may_answer", KEY_SCALAR, bind_row, .value = SCALAR_ASK_WEBHOOK_ANSWERS },
};

static void check_webhook(struct binder *binder, const struct node *node)
{
	const struct draft_scalar *scalars = binder->scalars;
	bool has_key = scalars[SCALAR_ASK_WEBHOOK_KEY].text, has_file = scalars[SCALAR_ASK_WEBHOOK_KEY_FILE].text;

	if (!scalars[SCALAR_ASK_WEBHOOK].text)
		diag_add(binder->diags, node->place, "a webhook has a \"url\"");
	else if (has_key && has_file)
		diag_add(binder->diags, node->place, "a webhook has a \"key\" or a \"key_file\", not both");
	/* Whoever listens there first, of all users of the machine, is whom we would believe. */
	else if (scalars[SCALAR_ASK_WEBHOOK_ANSWERS].value && !has_key && !has_file &&
		 str_has_prefix(scalars[SCALAR_ASK_WEBHOOK].text, "http:"))
		diag_add(binder->diags, node->place,
			 "\"may_answer\" over http: needs a \"key\" or a \"key_file\", with which answers are signed");
}

static void bind_webhook(struct binder *binder, const struct key *key, const struct node *node)
{
	static const unsigned all[] = { SCALAR_ASK_WEBHOOK, SCALAR_ASK_WEBHOOK_KEY,
						      SCALAR_ASK_WEBHOOK_KEY_FILE, SCALAR_ASK_WEBHOOK_ANSWERS };
	size_t before = binder->diags->count;

	if (node->kind == NODE_LIST) {
		bind_expected(binder, node, "a URL or a mapping");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		set(binder, all[i], node, NULL, false);
	if (node->kind == NODE_SCALAR)
		bind_url(binder, key, node);
	else
		bind_map(binder, webhook_keys, ARRAY_SIZE(webhook_keys), node);
	if (binder->diags->count == before)
		check_webhook(binder, node);
}

const struct key ask_keys[] = {
	{ .kind = KEY_ROWS, .value = SCALAR_ASK_TIMEOUT, .last = SCALAR_ASK_DESKTOP },
	{ "webhook", KEY_ANY, bind_webhook },
};
const size_t ask_key_count = ARRAY_SIZE(ask_keys);
