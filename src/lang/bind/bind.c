/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/bind/bind.h"

#include <assert.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"

enum { KEYS_MAX = 32 };

void bind_expected(struct binder *binder, const struct node *node, const char *what)
{
	char found[80];

	diag_add(binder->diags, node->place, "expected %s, found %s", what, node_describe(node, found));
}

static void unknown_key(struct binder *binder, const struct key *keys, size_t count, const struct node *node)
{
	const char *names[KEYS_MAX] = { 0 }, *nearest;

	for (size_t i = 0; i < count && i < KEYS_MAX; i++)
		names[i] = keys[i].name;
	nearest = names_nearest(names, count, node->text);
	if (nearest)
		diag_add(binder->diags, node->place, "unknown key \"%.60s\"; did you mean \"%s\"?",
			 node->text, nearest);
	else
		diag_add(binder->diags, node->place, "unknown key \"%.60s\" %s%s", node->text,
			 binder->section[0] ? "in " : "of a policy", binder->section);
}

static void bind_list(struct binder *binder, const struct key *key, const struct node *node)
{
	binder->index = 0;
	for (const struct node *item = node->first; item; item = item->next) {
		if (key->kind != KEY_LIST && item->kind != NODE_SCALAR)
			bind_expected(binder, item, "a text");
		else
			key->bind(binder, key, item);
		binder->index++;
	}
}

/* Rules have lists of their own (except, ports): the place in the outer list is kept. */
static void bind_in_list(struct binder *binder, const struct key *key, const struct node *node)
{
	const char *list = binder->list;
	size_t index = binder->index;

	binder->list = key->name;
	bind_list(binder, key, node);
	binder->list = list;
	binder->index = index;
}

static void bind_value(struct binder *binder, const struct key *key, const struct node *node)
{
	switch (key->kind) {
	case KEY_ONE_OR_MORE:
		if (node->kind == NODE_SCALAR) {
			key->bind(binder, key, node);
			return;
		}
		__attribute__((fallthrough));
	case KEY_LIST:
	case KEY_SCALARS:
		if (node->kind == NODE_LIST)
			bind_in_list(binder, key, node);
		else
			bind_expected(binder, node, "a list");
		return;
	case KEY_SCALAR:
		if (node->kind == NODE_SCALAR)
			key->bind(binder, key, node);
		else
			bind_expected(binder, node, "a single value");
		return;
	case KEY_ANY:
		key->bind(binder, key, node);
		return;
	case KEY_FREE:
		if (node->kind == NODE_MAP)
			key->bind(binder, key, node);
		else
			bind_expected(binder, node, "a mapping");
		return;
	case KEY_ROWS: /* is expanded */
		return;
	case KEY_MAP:
		bind_map(binder, key->keys, key->key_count, node);
		return;
	}
}

/* The table with a key for each row that its first one stands for. */
static size_t expand_rows(const struct key *keys, size_t count, struct key out[KEYS_MAX])
{
	size_t rows = (size_t)(keys->last - keys->value) + 1;

	assert(rows + count - 1 <= KEYS_MAX);
	for (size_t i = 0; i < rows; i++)
		out[i] = (struct key){ scalar_rows[keys->value + (int)i].name, KEY_SCALAR, bind_row,
				       .value = keys->value + (int)i };
	memcpy(out + rows, keys + 1, (count - 1) * sizeof *keys);
	return rows + count - 1;
}

void bind_map(struct binder *binder, const struct key *keys, size_t count, const struct node *node)
{
	const struct node *seen[KEYS_MAX] = { 0 };
	struct key expanded[KEYS_MAX];

	if (keys->kind == KEY_ROWS) {
		count = expand_rows(keys, count, expanded);
		keys = expanded;
	}
	if (node->kind != NODE_MAP) {
		bind_expected(binder, node, "a mapping");
		return;
	}
	for (const struct node *at = node->first; at; at = at->next) {
		size_t i = 0;

		if (at->kind != NODE_SCALAR) {
			bind_expected(binder, at, "a key");
			continue;
		}
		while (i < count && !str_equal(keys[i].name, at->text))
			i++;
		if (i == count) {
			unknown_key(binder, keys, count, at);
		} else if (seen[i]) {
			diag_add(binder->diags, at->place,
				 "\"%s\" stands here twice; the first is in line %u", at->text,
				 seen[i]->place.line);
		} else {
			seen[i] = at;
			bind_value(binder, &keys[i], at->value);
		}
	}
}

void bind_item(struct binder *binder, const struct key *keys, size_t count, const struct node *node)
{
	if (node->kind == NODE_SCALAR)
		keys[0].bind(binder, &keys[0], node);
	else if (node->kind == NODE_MAP)
		bind_map(binder, keys, count, node);
	else
		bind_expected(binder, node, "a text or a mapping");
}

void *bind_add(struct binder *binder, struct vec *vec, size_t item_size, const struct node *node)
{
	struct draft_rule *rule;

	if (vec->count == DRAFT_RULES_MAX) {
		diag_add(binder->diags, node->place, "too many rules; a list has at most %d",
			 DRAFT_RULES_MAX);
		return NULL;
	}
	rule = vec_add(binder->arena, vec, item_size);
	if (!rule)
		return NULL;
	rule->place = node->place;
	rule->is_shipped = binder->is_shipped;
	rule->text = "";
	if (binder->section[0])
		rule->id = arena_format(binder->arena, "%s.%s[%zu]", binder->section, binder->list,
					binder->index);
	else
		rule->id = arena_format(binder->arena, "%s[%zu]", binder->list, binder->index);
	return rule;
}
