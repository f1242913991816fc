/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/bind.h"
#include "lang/external.h"

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
	case KEY_MAP:
		bind_map(binder, key->keys, key->key_count, node);
		return;
	}
}

void bind_map(struct binder *binder, const struct key *keys, size_t count, const struct node *node)
{
	const struct node *seen[KEYS_MAX] = { 0 };

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

static void bind_version(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!str_equal(node->text, "1"))
		diag_add(binder->diags, node->place, "this is schema \"%.20s\"; this atoll reads schema 1",
			 node->text);
}

static void bind_named(struct binder *binder, const struct key *key, const struct node *node)
{
	struct vec *vec = (struct vec *)((char *)binder->draft + key->value);
	struct draft_named *named;

	if (!node->text[0]) {
		bind_expected(binder, node, "a name");
		return;
	}
	binder->list = key->name;
	named = bind_add(binder, vec, sizeof *named, node);
	if (named)
		named->name = named->from.text = node->text;
}

static void bind_device(struct binder *binder, const struct key *key, const struct node *node)
{
	const char *text = str_has_prefix(node->text, "/dev/") ? node->text + 5 : node->text;
	char normal[4096];

	/* The name becomes a path below /dev: nothing in it may lead out. */
	if (path_join(normal, sizeof normal, "/", text) < 0 || !str_equal(normal + 1, text))
		bind_expected(binder, node, "the name of a device below /dev");
	else
		bind_named(binder, key, node);
}

static void bind_degrade(struct binder *binder, const struct key *key, const struct node *node)
{
	const char *nearest = names_nearest(wall_names, WALL_COUNT, node->text);

	if (names_find(wall_names, WALL_COUNT, node->text) >= 0)
		bind_named(binder, key, node);
	else
		diag_add(binder->diags, node->place, "\"%.60s\" is no wall%s%s%s", node->text,
			 nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

static void bind_section(struct binder *binder, const struct key *key, const struct node *node)
{
	binder->section = key->name;
	bind_map(binder, key->keys, key->key_count, node);
	binder->section = "";
}

#define OFFSET(field) .value = (int)offsetof(struct draft, field)

static const struct key top_keys[] = {
	{ "atoll", KEY_SCALAR, bind_version },
	{ "extends", KEY_ONE_OR_MORE, bind_named, OFFSET(extends) },
	{ "drop", KEY_SCALARS, bind_named, OFFSET(drop) },
	{ "degrade", KEY_SCALARS, bind_degrade, OFFSET(degrade) },
	{ "devices", KEY_SCALARS, bind_device, OFFSET(devices) },
};

/* The tables have sizes of their own files, so this one is filled when it is used. */
void bind_policy(struct binder *binder, const struct node *root)
{
	const struct key sections[] = {
		{ "files", KEY_FREE, bind_section, files_keys, files_key_count },
		{ "network", KEY_FREE, bind_section, network_keys, network_key_count },
		{ "exec", KEY_FREE, bind_section, exec_keys, exec_key_count },
		{ "resources", KEY_FREE, bind_section, resources_keys, resources_key_count },
		{ "time", KEY_FREE, bind_section, time_keys, time_key_count },
		{ "env", KEY_FREE, bind_section, env_keys, env_key_count },
		{ "data", KEY_FREE, bind_section, data_keys, data_key_count },
		{ "audit", KEY_FREE, bind_section, audit_keys, audit_key_count },
		{ "stage", KEY_FREE, bind_section, stage_keys, stage_key_count },
		{ "ask", KEY_FREE, bind_section, ask_keys, ask_key_count },
		{ "monitor", KEY_FREE, bind_section, monitor_keys, monitor_key_count },
		{ "trust", KEY_FREE, bind_section, trust_keys, trust_key_count },
		{ "verify", KEY_FREE, bind_section, verify_keys, verify_key_count },
	};
	struct key keys[ARRAY_SIZE(top_keys) + ARRAY_SIZE(sections)];
	bool has_version = false;

	memcpy(keys, top_keys, sizeof top_keys);
	memcpy(keys + ARRAY_SIZE(top_keys), sections, sizeof sections);
	binder->section = binder->list = "";
	binder->scalars = binder->draft->scalars;
	bind_map(binder, keys, ARRAY_SIZE(keys), root);
	if (root->kind != NODE_MAP)
		return;
	for (const struct node *at = root->first; at; at = at->next)
		has_version |= at->kind == NODE_SCALAR && str_equal(at->text, "atoll");
	if (!has_version)
		diag_add(binder->diags, root->place,
			 "the key \"atoll\" is missing; a policy begins with \"atoll: 1\"");
}
