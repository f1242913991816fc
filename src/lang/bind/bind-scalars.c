/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "base/str.h"
#include "lang/bind/bind.h"

/* Single values: by their rows, and of the kinds that limits are. */

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

/* "1/100". */
static int parse_one_in(const char *text, uint64_t *ret_value)
{
	return str_has_prefix(text, "1/") ? num_parse_u64(text + 2, ret_value) : -EINVAL;
}

static const struct {
	int (*parse)(const char *text, uint64_t *ret_value);
	const char *what;
} units[SCALAR_UNIT_COUNT] = {
	[SCALAR_BYTES] = { num_parse_size, "a size such as 512MiB or 4GiB, or \"unlimited\"" },
	[SCALAR_AMOUNT] = { num_parse_count, "a number such as 512 or 200k, or \"unlimited\"" },
	[SCALAR_CPUS] = { num_parse_cpus, "a number of CPUs such as 2 or 0.5, or \"unlimited\"" },
	[SCALAR_MS] = { num_parse_duration, "a time with its unit such as 90s, 15m or 2h, or \"unlimited\"" },
	[SCALAR_ONE_IN] = { parse_one_in, NULL },
	[SCALAR_NUMBER] = { num_parse_u64, NULL },
};

static void bind_number(struct binder *binder, const struct key *key, const struct node *node, enum scalar_unit unit)
{
	uint64_t value;
	int r = units[unit].parse(node->text, &value);

	if (r == -ERANGE)
		diag_add(binder->diags, node->place, "\"%.40s\" is too large for %s", node->text, key->name);
	else if (r < 0)
		bind_expected(binder, node, units[unit].what);
	else if (value == 0)
		diag_add(binder->diags, node->place, "%s cannot be 0; \"unlimited\" sets no limit", key->name);
	else
		set_scalar(binder, key, node, value);
}

void bind_size(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_number(binder, key, node, SCALAR_BYTES);
}

void bind_count(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_number(binder, key, node, SCALAR_AMOUNT);
}

void bind_duration(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_number(binder, key, node, SCALAR_MS);
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

static void bind_switch(struct binder *binder, const struct key *key, const struct node *node)
{
	if (!node->is_quoted && (str_equal(node->text, "true") || str_equal(node->text, "false")))
		set_scalar(binder, key, node, node->text[0] == 't');
	else
		bind_expected(binder, node, "true or false");
}

static void bind_choice(struct binder *binder, const struct key *key, const struct node *node)
{
	const struct scalar_row *row = &scalar_rows[key->value];
	int value = names_find(row->names, row->name_count, node->text);
	char choices[120] = "";

	if (value >= 0) {
		set_scalar(binder, key, node, (uint64_t)value);
		return;
	}
	for (size_t i = 0; i < row->name_count; i++) {
		size_t used = strlen(choices);

		if (row->names[i] && str_format(choices + used, sizeof choices - used, "%s%s", used ? ", " : "",
						row->names[i]) < 0)
			break;
	}
	diag_add(binder->diags, node->place, "expected one of %s, found \"%.60s\"", choices, node->text);
}

static void bind_bounded(struct binder *binder, const struct key *key, const struct node *node)
{
	const struct scalar_row *row = &scalar_rows[key->value];
	uint64_t value;

	if (units[row->unit].parse(node->text, &value) < 0 || value < row->min || value > row->max)
		bind_expected(binder, node, row->expected);
	else
		set_scalar(binder, key, node, value);
}

static void bind_agent(struct binder *binder, const struct key *key, const struct node *node)
{
	if (trust_agent_is_valid(node->text))
		set_scalar(binder, key, node, true);
	else
		bind_expected(binder, node, "the name of an agent: up to 64 letters, digits, '.', '_' and '-'");
}

void bind_row(struct binder *binder, const struct key *key, const struct node *node)
{
	const struct scalar_row *row = &scalar_rows[key->value];

	if (row->unit == SCALAR_SWITCH)
		bind_switch(binder, key, node);
	else if (row->unit == SCALAR_CHOICE)
		bind_choice(binder, key, node);
	else if (row->unit == SCALAR_TEXT)
		bind_agent(binder, key, node); /* the others of that unit are read by bind-ask.c */
	else if (row->max)
		bind_bounded(binder, key, node);
	else
		bind_number(binder, key, node, row->unit);
}
