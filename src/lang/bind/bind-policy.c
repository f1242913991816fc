/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "lang/bind/bind.h"

/* A whole policy: its sections, of which those of rules have tables of their own, and what stands beside them. */

#define ROWS(first, end) { .kind = KEY_ROWS, .value = (first), .last = (end) }

const struct key resources_keys[] = {
	ROWS(SCALAR_RESOURCES + RESOURCE_MEMORY, SCALAR_RESOURCES + RESOURCE_FILE_SIZE),
};
const size_t resources_key_count = ARRAY_SIZE(resources_keys);

const struct key time_keys[] = {
	ROWS(SCALAR_RESOURCES + RESOURCE_WALL_MS, SCALAR_RESOURCES + RESOURCE_COMMAND_MS),
	{ "rate", KEY_FREE, bind_time_rate },
	{ "cooldown", KEY_FREE, bind_time_cooldown },
};
const size_t time_key_count = ARRAY_SIZE(time_keys);

static const struct key data_keys[] = {
	ROWS(SCALAR_DATA_SECRETS, SCALAR_DATA_OUTGOING),
	{ "canaries", KEY_SCALARS, bind_canary },
};
static const struct key audit_keys[] = { ROWS(SCALAR_AUDIT_FILES, SCALAR_AUDIT_NETWORK) };
static const struct key stage_keys[] = { ROWS(SCALAR_STAGE_AUTO, SCALAR_STAGE_BACKEND) };
static const struct key monitor_keys[] = { ROWS(SCALAR_MONITOR_BASELINE, SCALAR_MONITOR_CANARY) };

static const struct key probation_keys[] = { ROWS(SCALAR_TRUST_SESSIONS, SCALAR_TRUST_AT) };

static void bind_probation(struct binder *binder, const struct key *key, const struct node *node)
{
	const char *section = binder->section;

	binder->section = "trust.probation";
	bind_map(binder, probation_keys, ARRAY_SIZE(probation_keys), node);
	if (!binder->scalars[SCALAR_TRUST_SESSIONS].is_set)
		diag_add(binder->diags, node->place,
			 "a probation needs its number of sessions: {sessions: 5, at: low}");
	binder->section = section;
}

static const struct key trust_keys[] = {
	ROWS(SCALAR_TRUST_AGENT, SCALAR_TRUST_HALF_LIFE),
	{ "probation", KEY_FREE, bind_probation },
};

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

/* Some tables have sizes of their own files, so this one is filled when it is used. */
void bind_policy(struct binder *binder, const struct node *root)
{
	const struct key sections[] = {
		{ "files", KEY_FREE, bind_section, files_keys, files_key_count },
		{ "network", KEY_FREE, bind_section, network_keys, network_key_count },
		{ "exec", KEY_FREE, bind_section, exec_keys, exec_key_count },
		{ "resources", KEY_FREE, bind_section, resources_keys, resources_key_count },
		{ "time", KEY_FREE, bind_section, time_keys, time_key_count },
		{ "env", KEY_FREE, bind_section, env_keys, env_key_count },
		{ "data", KEY_FREE, bind_section, data_keys, ARRAY_SIZE(data_keys) },
		{ "audit", KEY_FREE, bind_section, audit_keys, ARRAY_SIZE(audit_keys) },
		{ "stage", KEY_FREE, bind_section, stage_keys, ARRAY_SIZE(stage_keys) },
		{ "ask", KEY_FREE, bind_section, ask_keys, ask_key_count },
		{ "monitor", KEY_FREE, bind_section, monitor_keys, ARRAY_SIZE(monitor_keys) },
		{ "trust", KEY_FREE, bind_section, trust_keys, ARRAY_SIZE(trust_keys) },
		{ "verify", KEY_FREE, bind_section, verify_keys, verify_key_count },
		{ "agent", KEY_FREE, bind_section, agent_keys, agent_key_count },
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
