/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "base/str.h"
#include "lang/bind.h"

/* Sections of single values: resources, time, data, audit, stage, trust; and env. */

static struct draft_scalar *set_scalar(struct binder *binder, const struct key *key, const struct node *node,
				       uint64_t value)
{
	struct draft_scalar *scalar = &binder->scalars[key->value];

	*scalar = (struct draft_scalar){
		.is_set = true,
		.value = value,
		.place = node->place,
		.id = arena_format(binder->arena, "%s.%s", binder->section, key->name),
		.text = node->text,
	};
	return scalar;
}

static void bind_number(struct binder *binder, const struct key *key, const struct node *node,
			int (*parse)(const char *, uint64_t *), const char *what)
{
	uint64_t value;
	int r = parse(node->text, &value);

	if (r == -ERANGE)
		diag_add(binder->diags, node->place, "\"%.40s\" is too large for %s", node->text, key->name);
	else if (r < 0)
		bind_expected(binder, node, what);
	else if (value == 0)
		diag_add(binder->diags, node->place, "%s cannot be 0; \"unlimited\" sets no limit",
			 key->name);
	else
		set_scalar(binder, key, node, value);
}

void bind_size(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_number(binder, key, node, num_parse_size, "a size such as 512MiB or 4GiB, or \"unlimited\"");
}

void bind_count(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_number(binder, key, node, num_parse_count, "a number such as 512 or 200k, or \"unlimited\"");
}

void bind_duration(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_number(binder, key, node, num_parse_duration,
		    "a time with its unit such as 90s, 15m or 2h, or \"unlimited\"");
}

static void bind_cpus(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_number(binder, key, node, num_parse_cpus, "a number of CPUs such as 2 or 0.5, or \"unlimited\"");
}

void bind_rate(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t amount, period;
	int r = num_parse_rate(node->text, &amount, &period);

	if (r < 0 || !amount)
		bind_expected(binder, node, "an amount per time such as 10MiB/s or 600/min");
	else
		set_scalar(binder, key, node, amount)->value2 = period;
}

void bind_bool(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!node->is_quoted && (str_equal(node->text, "true") || str_equal(node->text, "false")))
		set_scalar(binder, key, node, node->text[0] == 't');
	else
		bind_expected(binder, node, "true or false");
}

void bind_choice(struct binder *binder, const struct key *key, const struct node *node)
{
	int value = names_find(key->names, key->name_count, node->text);
	char choices[120] = "";

	if (value >= 0) {
		set_scalar(binder, key, node, (uint64_t)value);
		return;
	}
	for (size_t i = 0; i < key->name_count; i++) {
		size_t used = strlen(choices);

		if (key->names[i] && str_format(choices + used, sizeof choices - used, "%s%s",
						used ? ", " : "", key->names[i]) < 0)
			break;
	}
	diag_add(binder->diags, node->place, "expected one of %s, found \"%.60s\"", choices, node->text);
}

#define RESOURCE(name, kind, bind)                                                                           \
	{                                                                                                    \
		name, KEY_SCALAR, bind, .value = SCALAR_RESOURCES + (kind)                                   \
	}
#define CHOICE(name, kind, table, count)                                                                     \
	{                                                                                                    \
		name, KEY_SCALAR, bind_choice, .value = (kind), .names = (table), .name_count = (count)      \
	}

const struct key resources_keys[] = {
	RESOURCE("memory", RESOURCE_MEMORY, bind_size),
	RESOURCE("cpus", RESOURCE_CPUS, bind_cpus),
	RESOURCE("processes", RESOURCE_PROCESSES, bind_count),
	RESOURCE("disk", RESOURCE_DISK, bind_size),
	RESOURCE("inodes", RESOURCE_INODES, bind_count),
	RESOURCE("open_files", RESOURCE_OPEN_FILES, bind_count),
	RESOURCE("output", RESOURCE_OUTPUT, bind_size),
	RESOURCE("file_size", RESOURCE_FILE_SIZE, bind_size),
};
const size_t resources_key_count = ARRAY_SIZE(resources_keys);

const struct key time_keys[] = {
	RESOURCE("wall", RESOURCE_WALL_MS, bind_duration),
	RESOURCE("cpu", RESOURCE_CPU_MS, bind_duration),
	RESOURCE("idle", RESOURCE_IDLE_MS, bind_duration),
	RESOURCE("command", RESOURCE_COMMAND_MS, bind_duration),
	{ "rate", KEY_FREE, bind_time_rate },
	{ "cooldown", KEY_FREE, bind_time_cooldown },
};
const size_t time_key_count = ARRAY_SIZE(time_keys);

const struct key data_keys[] = {
	CHOICE("secrets", SCALAR_DATA_SECRETS, data_action_names, DATA_ACTION_COUNT),
	CHOICE("pii", SCALAR_DATA_PII, data_action_names, DATA_ACTION_COUNT),
	CHOICE("injection", SCALAR_DATA_INJECTION, data_action_names, DATA_ACTION_COUNT),
	CHOICE("outgoing", SCALAR_DATA_OUTGOING, data_action_names, DATA_ACTION_COUNT),
	{ "canaries", KEY_SCALARS, bind_canary },
};
const size_t data_key_count = ARRAY_SIZE(data_keys);

const struct key audit_keys[] = {
	CHOICE("files", SCALAR_AUDIT_FILES, audit_depth_names, AUDIT_DEPTH_COUNT),
	CHOICE("exec", SCALAR_AUDIT_EXEC, audit_depth_names, AUDIT_DEPTH_COUNT),
	CHOICE("network", SCALAR_AUDIT_NETWORK, audit_depth_names, AUDIT_DEPTH_COUNT),
};
const size_t audit_key_count = ARRAY_SIZE(audit_keys);

const struct key stage_keys[] = {
	CHOICE("auto", SCALAR_STAGE_AUTO, stage_auto_names, STAGE_AUTO_COUNT),
	CHOICE("backend", SCALAR_STAGE_BACKEND, stage_backend_names, STAGE_BACKEND_COUNT),
};
const size_t stage_key_count = ARRAY_SIZE(stage_keys);

/* "1/100". */
static void bind_budget(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t sessions;

	if (!str_has_prefix(node->text, "1/") || num_parse_u64(node->text + 2, &sessions) < 0 ||
	    sessions < MONITOR_SESSIONS_MIN || sessions > MONITOR_SESSIONS_MAX)
		bind_expected(binder, node, "one false alarm in so many sessions, such as 1/100 (1/10 to 1/10000)");
	else
		set_scalar(binder, key, node, sessions);
}

static void bind_learn(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t sessions;

	if (num_parse_u64(node->text, &sessions) < 0 || sessions < MONITOR_LEARN_MIN || sessions > MONITOR_LEARN_MAX)
		bind_expected(binder, node, "a number of sessions, 5 to 64");
	else
		set_scalar(binder, key, node, sessions);
}

const struct key monitor_keys[] = {
	{ "baseline", KEY_SCALAR, bind_bool, .value = SCALAR_MONITOR_BASELINE },
	{ "budget", KEY_SCALAR, bind_budget, .value = SCALAR_MONITOR_BUDGET },
	{ "learn", KEY_SCALAR, bind_learn, .value = SCALAR_MONITOR_LEARN },
	CHOICE("unusual", SCALAR_MONITOR_UNUSUAL, monitor_reaction_names, MONITOR_REACTION_COUNT),
	CHOICE("canary", SCALAR_MONITOR_CANARY, monitor_reaction_names, MONITOR_REACTION_COUNT),
};
const size_t monitor_key_count = ARRAY_SIZE(monitor_keys);

static void bind_agent(struct binder *binder, const struct key *key, const struct node *node)
{
	if (trust_agent_is_valid(node->text))
		set_scalar(binder, key, node, true);
	else
		bind_expected(binder, node, "the name of an agent: up to 64 letters, digits, '.', '_' and '-'");
}

static void bind_half_life(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t ms;

	if (num_parse_duration(node->text, &ms) < 0 || ms < 1000 || ms > TRUST_HALF_LIFE_MAX_MS)
		bind_expected(binder, node, "a time with its unit, from 1s to 23d");
	else
		set_scalar(binder, key, node, ms);
}

static void bind_sessions(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t count;

	if (num_parse_u64(node->text, &count) < 0 || !count || count > TRUST_SESSIONS_MAX)
		bind_expected(binder, node, "a number of sessions, 1 to 1000");
	else
		set_scalar(binder, key, node, count);
}

static const struct key probation_keys[] = {
	{ "sessions", KEY_SCALAR, bind_sessions, .value = SCALAR_TRUST_SESSIONS },
	CHOICE("at", SCALAR_TRUST_AT, trust_level_names, TRUST_COUNT),
};

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

const struct key trust_keys[] = {
	{ "agent", KEY_SCALAR, bind_agent, .value = SCALAR_TRUST_AGENT },
	CHOICE("start", SCALAR_TRUST_START, trust_level_names, TRUST_COUNT),
	CHOICE("ceiling", SCALAR_TRUST_CEILING, trust_level_names, TRUST_COUNT),
	CHOICE("floor", SCALAR_TRUST_FLOOR, trust_level_names, TRUST_COUNT),
	CHOICE("raise", SCALAR_TRUST_RAISE, trust_level_names, TRUST_COUNT),
	CHOICE("on_fall", SCALAR_TRUST_ON_FALL, trust_on_fall_names, TRUST_FALL_COUNT),
	{ "half_life", KEY_SCALAR, bind_half_life, .value = SCALAR_TRUST_HALF_LIFE },
	{ "probation", KEY_FREE, bind_probation },
};
const size_t trust_key_count = ARRAY_SIZE(trust_keys);

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
