/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/rules/read.h"

#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/model/operation-text.h"

enum { KEYS_MAX = 24 };

bool read_want(struct loader *loader, const struct node *node, enum node_kind kind, const char *what)
{
	char described[80];

	if (node && node->kind == kind)
		return true;
	if (node)
		diag_add(loader->diags, node->place, "%s is wanted here, not %s", what, node_describe(node, described));
	return false;
}

void read_unknown(struct loader *loader, const struct node *node, const char *what, const char *const *names,
			 size_t count)
{
	const char *nearest = names_nearest(names, count, node->text);

	diag_add(loader->diags, node->place, "\"%.60s\" is no %s%s%s%s", node->text, what,
		 nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

const char *read_copy(struct loader *loader, const char *text)
{
	const char *kept = arena_text(&loader->rules->arena, text);

	return kept ? kept : "";
}

/* One text or a list of them. */
void read_each(struct loader *loader, const struct node *node, void *target,
		      void (*take)(struct loader *loader, const struct node *item, void *target))
{
	if (node->kind == NODE_SCALAR) {
		take(loader, node, target);
		return;
	}
	if (!read_want(loader, node, NODE_LIST, "a text or a list of texts"))
		return;
	for (const struct node *item = node->first; item; item = item->next) {
		if (read_want(loader, item, NODE_SCALAR, "a text"))
			take(loader, item, target);
	}
}

/* Bits by name; "!name" goes into the word behind, which has those that must not be. */
void read_bit(struct loader *loader, const struct node *item, uint32_t *bits, const char *what,
		     const char *const *names, size_t count)
{
	struct node name = *item;
	int bit;

	name.text += item->text[0] == '!';
	bit = names_find(names, count, name.text);
	if (bit < 0)
		read_unknown(loader, &name, what, names, count);
	else
		bits[item->text[0] == '!'] |= (uint32_t)1 << bit;
}

static void take_context(struct loader *loader, const struct node *item, void *target)
{
	size_t count;
	const char *const *names = operation_context_names(&count);

	read_bit(loader, item, target, "context", names, count);
}

void read_context(struct loader *loader, const struct node *node, void *target)
{
	read_each(loader, node, target, take_context);
}

static void take_trait(struct loader *loader, const struct node *item, void *target)
{
	size_t count;
	const char *const *names = operation_trait_names(&count);

	read_bit(loader, item, target, "trait", names, count);
}

void read_traits(struct loader *loader, const struct node *node, void *target)
{
	read_each(loader, node, target, take_trait);
}

void read_bool(struct loader *loader, const struct node *node, void *target)
{
	static const char *const names[] = { "false", "true" };
	int value = node->kind == NODE_SCALAR ? names_find(names, 2, node->text) : -1;

	if (value < 0)
		diag_add(loader->diags, node->place, "true or false is wanted here");
	else
		*(bool *)target = value == 1;
}

/* Calls what reads each key of a mapping; unknown and double ones are errors. */
void read_map(struct loader *loader, const struct node *node, const struct key *keys, size_t count, void *target)
{
	const char *names[KEYS_MAX];
	uint64_t seen = 0;

	if (!read_want(loader, node, NODE_MAP, "a mapping"))
		return;
	for (size_t i = 0; i < count; i++)
		names[i] = keys[i].name;
	for (const struct node *key = node->first; key; key = key->next) {
		int at = names_find(names, count, key->text);

		if (at < 0)
			read_unknown(loader, key, "key here", names, count);
		else if (seen & (uint64_t)1 << at)
			diag_add(loader->diags, key->place, "\"%s\" stands here twice", key->text);
		else if (key->value)
			keys[at].read(loader, key->value, (char *)target + keys[at].offset);
		if (at >= 0)
			seen |= (uint64_t)1 << at;
	}
}

int read_choice(struct loader *loader, const struct node *node, const char *what, const char *const *names,
		size_t count)
{
	char described[80];
	int at = node->kind == NODE_SCALAR ? names_find(names, count, node->text) : -1;

	if (node->kind != NODE_SCALAR)
		diag_add(loader->diags, node->place, "a%s %s is wanted here, not %s", *what == 'e' ? "n" : "", what,
			 node_describe(node, described));
	else if (at < 0)
		read_unknown(loader, node, what, names, count);
	return at;
}

void read_text(struct loader *loader, const struct node *node, void *target)
{
	if (!read_want(loader, node, NODE_SCALAR, "a text"))
		return;
	if (strlen(node->text) > READ_TEXT_MAX)
		diag_add(loader->diags, node->place, "more than %d bytes", READ_TEXT_MAX);
	else
		*(const char **)target = read_copy(loader, node->text);
}
