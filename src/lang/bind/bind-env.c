/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "lang/bind/bind.h"

bool bind_variable_is_valid(const char *text, size_t length)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return length && !(text[0] >= '0' && text[0] <= '9') && strspn(text, letters) >= length;
}

static void bind_pass(struct binder *binder, const struct key *key, const struct node *node)
{
	size_t length = strlen(node->text);
	struct draft_named *named;

	if (length && node->text[length - 1] == '*')
		length--;
	if (!bind_variable_is_valid(node->text, length) || node->text[length + (node->text[length] == '*')]) {
		bind_expected(binder, node, "the name of a variable, or a beginning with * such as LC_*");
		return;
	}
	named = bind_add(binder, &binder->draft->env_pass, sizeof *named, node);
	if (named)
		named->name = named->from.text = node->text;
}

static void bind_set(struct binder *binder, const struct key *key, const struct node *node)
{
	binder->list = key->name;
	binder->index = 0;
	for (const struct node *at = node->first; at; at = at->next, binder->index++) {
		struct draft_named *named;

		if (at->kind != NODE_SCALAR || !bind_variable_is_valid(at->text, strlen(at->text))) {
			bind_expected(binder, at, "the name of a variable");
			continue;
		}
		if (at->value->kind != NODE_SCALAR) {
			bind_expected(binder, at->value, "the value of a variable");
			continue;
		}
		for (const struct node *other = node->first; other != at; other = other->next)
			if (other->kind == NODE_SCALAR && str_equal(other->text, at->text))
				diag_add(binder->diags, at->place,
					 "\"%.60s\" stands here twice; the first is in line %u", at->text,
					 other->place.line);
		named = bind_add(binder, &binder->draft->env_set, sizeof *named, at);
		if (named) {
			named->name = named->from.text = at->text;
			named->value = at->value->text;
		}
	}
}

const struct key env_keys[] = {
	{ "pass", KEY_SCALARS, bind_pass },
	{ "set", KEY_FREE, bind_set },
};
const size_t env_key_count = ARRAY_SIZE(env_keys);
