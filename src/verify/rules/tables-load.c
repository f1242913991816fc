/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/rules/tables.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"

/*
 * The tables of files of rules (doc/format/verify-tables.md). A row of a name that is there already is an error, so
 * that a file adds to what is known and never changes it.
 */

static const char *const effect_names[EFFECT_KIND_COUNT] = {
	[EFFECT_NONE] = "none", [EFFECT_SHELL] = "shell", [EFFECT_PROGRAM] = "program", [EFFECT_SPAWN] = "spawn",
	[EFFECT_EXEC] = "exec", [EFFECT_EXEC_WORDS] = "exec-words", [EFFECT_SELF_AGAIN] = "self-again",
	[EFFECT_OPEN] = "open", [EFFECT_READ] = "read", [EFFECT_WRITE] = "write", [EFFECT_REMOVE] = "remove",
	[EFFECT_PERMISSION] = "permission", [EFFECT_COPY] = "copy", [EFFECT_MOVE] = "move", [EFFECT_LINK] = "link",
	[EFFECT_LIST] = "list", [EFFECT_GLOB] = "glob", [EFFECT_ARCHIVE] = "archive", [EFFECT_NETWORK] = "network",
	[EFFECT_REQUEST] = "request", [EFFECT_DOWNLOAD] = "download", [EFFECT_UPLOAD] = "upload",
	[EFFECT_SENDTO] = "sendto", [EFFECT_CONNECT] = "connect", [EFFECT_LISTEN] = "listen",
	[EFFECT_RECEIVE] = "receive", [EFFECT_FEED] = "feed", [EFFECT_FEED_LAST] = "feed-last", [EFFECT_PIPE] = "pipe",
	[EFFECT_PIPELINE] = "pipeline", [EFFECT_WIRE] = "wire", [EFFECT_RETURNED] = "returned",
	[EFFECT_EVALUATE] = "evaluate", [EFFECT_LOAD] = "load", [EFFECT_IMPORT] = "import", [EFFECT_CALL] = "call",
	[EFFECT_ESCAPE] = "escape", [EFFECT_PARTIAL_CALL] = "partial-call", [EFFECT_PARTIAL] = "partial",
	[EFFECT_ATTRIBUTE] = "attribute", [EFFECT_LATER] = "later", [EFFECT_PROMISE] = "promise",
	[EFFECT_RESOLVE] = "resolve", [EFFECT_THEN] = "then", [EFFECT_ENVIRONMENT] = "environment",
	[EFFECT_SET_ENVIRONMENT] = "set-environment", [EFFECT_PROCESS] = "process", [EFFECT_PRINT] = "print",
	[EFFECT_INPUT] = "input", [EFFECT_ALLOCATE] = "allocate", [EFFECT_APPLY] = "apply", [EFFECT_BIND] = "bind",
	[EFFECT_SAME] = "same", [EFFECT_REMOTE] = "remote", [EFFECT_ENTER] = "enter", [EFFECT_TOOL] = "tool",
	[EFFECT_VALUES] = "values", [EFFECT_JSON] = "json", [EFFECT_DUMP] = "dump", [EFFECT_MODULE] = "module",
	[EFFECT_INSTALL] = "install",
};

/* A row under construction, with what "!name" would set behind its bits. */
struct program_draft {
	struct program_effect row;
	uint32_t traits[2];
	bool has_kind;
};

struct wrapper_draft {
	struct wrapper row;
	uint32_t context[2];
};

struct effect_draft {
	struct effect row;
	uint32_t traits[2];
	bool has_kind;
};

static const char no_options[] = "";

static void *add_row(struct loader *loader, const struct node *node, struct vec *rows, size_t size)
{
	if (rows->count < TABLE_ROWS_MAX)
		return vec_add(&loader->rules->arena, rows, size);
	diag_add(loader->diags, node->place, "more than %d rows", TABLE_ROWS_MAX);
	return NULL;
}

/* A table has bits that are set, and none that must not be. */
static uint32_t plain_bits(struct loader *loader, const struct node *node, const uint32_t bits[2])
{
	if (bits[1])
		diag_add(loader->diags, node->place, "\"!\" is for conditions of rules");
	return bits[0];
}

static void read_letter(struct loader *loader, const struct node *node, void *target)
{
	if (!read_want(loader, node, NODE_SCALAR, "a letter"))
		return;
	if (!isalnum((unsigned char)node->text[0]) || node->text[1])
		diag_add(loader->diags, node->place, "one letter or digit is wanted here");
	else
		*(char *)target = node->text[0];
}

/* ---- programs ---- */

static void read_program_kind(struct loader *loader, const struct node *node, void *target)
{
	static const char *const names[] = { "read", "write", "remove", "permission" };
	static const enum operation_kind kinds[] = { OP_READ, OP_WRITE, OP_REMOVE, OP_PERMISSION };
	struct program_draft *draft = target;
	int at = read_choice(loader, node, "effect of a program", names, ARRAY_SIZE(names));

	draft->has_kind = true;
	if (at >= 0)
		draft->row.kind = kinds[at];
}

static void read_operand_choice(struct loader *loader, const struct node *node, void *target)
{
	static const char *const names[OPERAND_CHOICE_COUNT] = { "all", "first", "last", "but-first", "but-last" };
	int at = read_choice(loader, node, "choice of operands", names, OPERAND_CHOICE_COUNT);

	if (at >= 0)
		*(enum operand_choice *)target = (enum operand_choice)at;
}

static void read_program_like(struct loader *loader, const struct node *node, void *target)
{
	static const char *const names[PROGRAM_LIKE_COUNT] = {
		"none", "dd", "find", "git", "kill", "tar", "unpacker", "connection", "copy", "curl", "httpie",
		"lookup", "mail", "openssl", "server", "ssh", "wget",
	};
	struct program_draft *draft = target;
	int at = read_choice(loader, node, "program that others are like", names + 1, PROGRAM_LIKE_COUNT - 1);

	draft->has_kind = true;
	if (at >= 0)
		draft->row.like = (enum program_like)(at + 1);
}

static const struct key program_keys[] = {
	{ "does", 0, read_program_kind },
	{ "like", 0, read_program_like },
	{ "only-with", offsetof(struct program_draft, row.only_with), read_text },
	{ "recursive", offsetof(struct program_draft, row.recursive), read_letter },
	{ "to", offsetof(struct program_draft, row.choice), read_operand_choice },
	{ "traits", offsetof(struct program_draft, traits), read_traits },
	{ "valued", offsetof(struct program_draft, row.valued), read_text },
};

static void read_program_row(struct loader *loader, const struct node *node, const char *name, void *target)
{
	struct program_draft draft = { .row = { .name = name, .valued = no_options } };
	struct program_effect *row;

	(void)target;
	read_map(loader, node, program_keys, ARRAY_SIZE(program_keys), &draft);
	draft.row.traits = plain_bits(loader, node, draft.traits);
	if (!draft.has_kind)
		diag_add(loader->diags, node->place, "a row of a program needs does or like");
	row = add_row(loader, node, &loader->rules->tables.programs, sizeof *row);
	if (row)
		*row = draft.row;
}

typedef void row_reader(struct loader *loader, const struct node *node, const char *name, void *target);

/* A name has one row, or a list of them. */
static void read_row_or_rows(struct loader *loader, const struct node *node, const char *name, void *target,
			     row_reader *read)
{
	if (node->kind != NODE_LIST)
		read(loader, node, name, target);
	for (const struct node *item = node->kind == NODE_LIST ? node->first : NULL; item; item = item->next)
		read(loader, item, name, target);
}

static void read_program(struct loader *loader, const struct node *node, const char *name, void *target)
{
	read_row_or_rows(loader, node, name, target, read_program_row);
}

/* Calls what reads a row for each key of a mapping: its name. */
static void read_rows(struct loader *loader, const struct node *node, void *target, row_reader *read)
{
	if (!read_want(loader, node, NODE_MAP, "a mapping of names"))
		return;
	for (const struct node *key = node->first; key; key = key->next) {
		if (!key->text[0] || strlen(key->text) > READ_TEXT_MAX)
			diag_add(loader->diags, key->place, "a name has 1 to %d bytes", READ_TEXT_MAX);
		else if (key->value)
			read(loader, key->value, read_copy(loader, key->text), target);
	}
}

void tables_read_programs(struct loader *loader, const struct node *node, void *target)
{
	read_rows(loader, node, target, read_program);
}

/* ---- transfers ---- */

struct transfer_target {
	struct vec *rows;
	enum transfer_use use;
};

static void take_transfer_option(struct loader *loader, const struct node *item, void *target)
{
	const struct transfer_target *to = target;
	struct transfer_option *row;

	if (item->text[0] != '-' || !item->text[1] || strlen(item->text) > TABLE_OPTION_MAX) {
		diag_add(loader->diags, item->place, "an option begins with \"-\" and has at most %d bytes",
			 TABLE_OPTION_MAX);
		return;
	}
	row = add_row(loader, item, to->rows, sizeof *row);
	if (row)
		*row = (struct transfer_option){ read_copy(loader, item->text), to->use };
}

static void read_transfer(struct loader *loader, const struct node *node, void *target)
{
	static const char *const names[TRANSFER_USE_COUNT] = { "other", "sent", "sent-file", "header", "written",
							       "target", "folder" };
	struct transfer_target to = { .rows = target };

	if (!read_want(loader, node, NODE_MAP, "a mapping of uses to options"))
		return;
	for (const struct node *key = node->first; key; key = key->next) {
		int use = names_find(names, TRANSFER_USE_COUNT, key->text);

		to.use = (enum transfer_use)use;
		if (use < 0)
			read_unknown(loader, key, "use of an option", names, TRANSFER_USE_COUNT);
		else if (key->value)
			read_each(loader, key->value, &to, take_transfer_option);
	}
}

void tables_read_transfers(struct loader *loader, const struct node *node, void *target)
{
	static const struct key keys[TRANSFER_PROGRAM_COUNT] = {
		{ "curl", offsetof(struct tables, transfers[TRANSFER_CURL]), read_transfer },
		{ "wget", offsetof(struct tables, transfers[TRANSFER_WGET]), read_transfer },
	};

	(void)target;
	read_map(loader, node, keys, ARRAY_SIZE(keys), &loader->rules->tables);
}

/* ---- wrappers ---- */

static void read_skips(struct loader *loader, const struct node *node, void *target)
{
	if (!read_want(loader, node, NODE_SCALAR, "a number"))
		return;
	if (node->text[0] < '0' || node->text[0] > '0' + TABLE_SKIPS_MAX || node->text[1])
		diag_add(loader->diags, node->place, "a number from 0 to %d is wanted here", TABLE_SKIPS_MAX);
	else
		*(uint32_t *)target = (uint32_t)(node->text[0] - '0');
}

static const struct key wrapper_keys[] = {
	{ "assignments", offsetof(struct wrapper_draft, row.has_assignments), read_bool },
	{ "context", offsetof(struct wrapper_draft, context), read_context },
	{ "input", offsetof(struct wrapper_draft, row.takes_input), read_bool },
	{ "shell", offsetof(struct wrapper_draft, row.is_shell), read_bool },
	{ "skips", offsetof(struct wrapper_draft, row.skips), read_skips },
	{ "subcommand", offsetof(struct wrapper_draft, row.subcommand), read_text },
	{ "valued", offsetof(struct wrapper_draft, row.valued), read_text },
};

static void read_wrapper(struct loader *loader, const struct node *node, const char *name, void *target)
{
	struct wrapper_draft draft = { .row = { .name = name, .valued = no_options } };
	struct wrapper *row;

	(void)target;
	read_map(loader, node, wrapper_keys, ARRAY_SIZE(wrapper_keys), &draft);
	draft.row.context = plain_bits(loader, node, draft.context);
	row = add_row(loader, node, &loader->rules->tables.wrappers, sizeof *row);
	if (row)
		*row = draft.row;
}

void tables_read_wrappers(struct loader *loader, const struct node *node, void *target)
{
	read_rows(loader, node, target, read_wrapper);
}

/* ---- trials ---- */

static const struct key trial_keys[] = {
	{ "letters", offsetof(struct trial, letters), read_text },
	{ "options", offsetof(struct trial, options), read_text },
	{ "valued", offsetof(struct trial, valued), read_text },
	{ "verbs", offsetof(struct trial, verbs), read_text },
};

static void read_trial(struct loader *loader, const struct node *node, const char *name, void *target)
{
	struct trial draft = { name, no_options, no_options, no_options, NULL }, *row;

	(void)target;
	read_map(loader, node, trial_keys, ARRAY_SIZE(trial_keys), &draft);
	if (!*draft.letters && !*draft.options)
		diag_add(loader->diags, node->place, "a trial needs options or letters");
	row = add_row(loader, node, &loader->rules->tables.trials, sizeof *row);
	if (row)
		*row = draft;
}

void tables_read_trials(struct loader *loader, const struct node *node, void *target)
{
	read_rows(loader, node, target, read_trial);
}

static void take_name(struct loader *loader, const struct node *item, void *target)
{
	const char **row = add_row(loader, item, target, sizeof *row);

	if (!row)
		return;
	*row = no_options;
	read_text(loader, item, row);
}

static void read_names(struct loader *loader, const struct node *node, void *target)
{
	read_each(loader, node, target, take_name);
}

void tables_read_verbs_first(struct loader *loader, const struct node *node, void *target)
{
	(void)target;
	read_names(loader, node, &loader->rules->tables.verbs_first);
}

/* ---- code in options ---- */

static void read_code_language(struct loader *loader, const struct node *node, void *target)
{
	static const char *const names[] = { "shell", "python", "javascript", "other" };
	static const enum verify_language languages[] = { LANGUAGE_SHELL, LANGUAGE_PYTHON, LANGUAGE_JAVASCRIPT,
							  LANGUAGE_OTHER };
	int at = read_choice(loader, node, "language", names, ARRAY_SIZE(names));

	*(enum verify_language *)target = at < 0 ? LANGUAGE_OTHER : languages[at];
}

static const struct key code_option_keys[] = {
	{ "begins", offsetof(struct code_option, begins), read_text },
	{ "language", offsetof(struct code_option, language), read_code_language },
	{ "option", offsetof(struct code_option, option), read_text },
};

static void read_code_option_row(struct loader *loader, const struct node *node, const char *name, void *target)
{
	struct code_option draft = { name, no_options, NULL, LANGUAGE_UNKNOWN }, *row;

	(void)target;
	read_map(loader, node, code_option_keys, ARRAY_SIZE(code_option_keys), &draft);
	if (!draft.language || (!draft.option && !*draft.begins))
		diag_add(loader->diags, node->place, "code needs a language, and option or begins");
	row = add_row(loader, node, &loader->rules->tables.code_options, sizeof *row);
	if (row)
		*row = draft;
}

static void read_code_option(struct loader *loader, const struct node *node, const char *name, void *target)
{
	read_row_or_rows(loader, node, name, target, read_code_option_row);
}

void tables_read_code_options(struct loader *loader, const struct node *node, void *target)
{
	read_rows(loader, node, target, read_code_option);
}

static void read_editor_line(struct loader *loader, const struct node *node, const char *name, void *target)
{
	struct editor_line *row = add_row(loader, node, target, sizeof *row);

	if (!row)
		return;
	row->name = name;
	read_code_language(loader, node, &row->language);
}

static void read_editor_lines(struct loader *loader, const struct node *node, void *target)
{
	read_rows(loader, node, target, read_editor_line);
}

void tables_read_editors(struct loader *loader, const struct node *node, void *target)
{
	static const struct key keys[] = {
		{ "lines", offsetof(struct editor_tables, lines), read_editor_lines },
		{ "names", offsetof(struct editor_tables, names), read_names },
		{ "options", offsetof(struct editor_tables, options), read_names },
	};

	(void)target;
	read_map(loader, node, keys, ARRAY_SIZE(keys), &loader->rules->tables.editors);
}

/* ---- languages ---- */

static void read_effect_kind(struct loader *loader, const struct node *node, void *target)
{
	struct effect_draft *draft = target;
	int at = read_choice(loader, node, "effect of a call", effect_names, EFFECT_KIND_COUNT);

	draft->has_kind = true;
	if (at >= 0)
		draft->row.kind = (enum effect_kind)at;
}

/* "0", "0/path", "/path", "self", "last" */
static void read_place(struct loader *loader, const struct node *node, int8_t *place, const char **keyword)
{
	char *rest;
	unsigned long at;

	if (!read_want(loader, node, NODE_SCALAR, "an argument"))
		return;
	if (str_equal(node->text, "self") || str_equal(node->text, "last")) {
		*place = *node->text == 's' ? TARGET_SELF : TARGET_LAST;
		return;
	}
	at = isdigit((unsigned char)*node->text) ? strtoul(node->text, &rest, 10) : 0;
	if (!isdigit((unsigned char)*node->text))
		rest = (char *)node->text;
	if (at > TABLE_PLACE_MAX || (*rest && (*rest != '/' || !rest[1])) || !*node->text ||
	    strlen(rest) > READ_TEXT_MAX) {
		diag_add(loader->diags, node->place,
			 "an argument is a number up to %d, with \"/NAME\" behind it or alone, self or last",
			 TABLE_PLACE_MAX);
		return;
	}
	if (rest != node->text)
		*place = (int8_t)at;
	if (*rest)
		*keyword = read_copy(loader, rest + 1);
}

static void read_target(struct loader *loader, const struct node *node, void *target)
{
	struct effect *row = target;

	read_place(loader, node, &row->target, &row->keyword);
}

static void read_second(struct loader *loader, const struct node *node, void *target)
{
	struct effect *row = target;

	read_place(loader, node, &row->second, &row->second_keyword);
}

static const struct key effect_keys[] = {
	{ "detail", offsetof(struct effect_draft, row.detail), read_text },
	{ "does", 0, read_effect_kind },
	{ "second", offsetof(struct effect_draft, row), read_second },
	{ "target", offsetof(struct effect_draft, row), read_target },
	{ "traits", offsetof(struct effect_draft, traits), read_traits },
};

static void read_call(struct loader *loader, const struct node *node, const char *name, void *target)
{
	struct effect_draft draft = { .row = { .name = name, .target = TARGET_NONE, .second = TARGET_NONE } };
	struct effect *row;

	read_map(loader, node, effect_keys, ARRAY_SIZE(effect_keys), &draft);
	draft.row.traits = plain_bits(loader, node, draft.traits);
	if (!draft.has_kind)
		diag_add(loader->diags, node->place, "a call needs does");
	row = add_row(loader, node, target, sizeof *row);
	if (row)
		*row = draft.row;
}

static void read_calls(struct loader *loader, const struct node *node, void *target)
{
	read_rows(loader, node, target, read_call);
}

static void read_alias(struct loader *loader, const struct node *node, const char *name, void *target)
{
	struct name_alias *row = add_row(loader, node, target, sizeof *row);

	if (!row)
		return;
	*row = (struct name_alias){ name, no_options };
	read_text(loader, node, &row->means);
}

static void read_aliases(struct loader *loader, const struct node *node, void *target)
{
	read_rows(loader, node, target, read_alias);
}

static const struct key language_keys[] = {
	{ "aliases", offsetof(struct language_tables, aliases), read_aliases },
	{ "calls", offsetof(struct language_tables, calls), read_calls },
	{ "grave", offsetof(struct language_tables, grave), read_names },
	{ "quiet", offsetof(struct language_tables, quiet), read_names },
};

static void read_language(struct loader *loader, const struct node *node, void *target)
{
	read_map(loader, node, language_keys, ARRAY_SIZE(language_keys), target);
}

void tables_read_languages(struct loader *loader, const struct node *node, void *target)
{
	static const struct key keys[] = {
		{ "javascript", offsetof(struct tables, languages[LANGUAGE_JAVASCRIPT]), read_language },
		{ "python", offsetof(struct tables, languages[LANGUAGE_PYTHON]), read_language },
	};

	(void)target;
	read_map(loader, node, keys, ARRAY_SIZE(keys), &loader->rules->tables);
}

/* ---- all files are there ---- */

/* What is known already is not known otherwise: the first row of a name would hide the others. */
static void finish_rows(struct diags *diags, struct vec *rows, size_t size)
{
	tables_sort(rows, size);
	for (size_t i = 1; i < rows->count; i++) {
		const char *const *row = (const void *)((const char *)rows->items + i * size);
		const char *const *before = (const void *)((const char *)rows->items + (i - 1) * size);

		if (str_equal(*row, *before))
			diag_add(diags, (struct place){ .file = "tables" }, "there are two rows of \"%.60s\"", *row);
	}
}

/* A program may do several things, but be like another one only alone. */
static void finish_programs(struct diags *diags, struct vec *rows)
{
	const struct program_effect *items;

	tables_sort(rows, sizeof *items);
	items = rows->items;
	for (size_t i = 1; i < rows->count; i++)
		if ((items[i].like || items[i - 1].like) && str_equal(items[i].name, items[i - 1].name))
			diag_add(diags, (struct place){ .file = "tables" },
				 "\"%.60s\" is like another program and more", items[i].name);
}

void tables_finish(struct tables *tables, struct diags *diags)
{
	finish_programs(diags, &tables->programs);
	finish_rows(diags, &tables->wrappers, sizeof(struct wrapper));
	finish_rows(diags, &tables->trials, sizeof(struct trial));
	finish_rows(diags, &tables->verbs_first, sizeof(const char *));
	tables_sort(&tables->code_options, sizeof(struct code_option));
	finish_rows(diags, &tables->editors.names, sizeof(const char *));
	finish_rows(diags, &tables->editors.options, sizeof(const char *));
	finish_rows(diags, &tables->editors.lines, sizeof(struct editor_line));
	for (size_t i = 0; i < TRANSFER_PROGRAM_COUNT; i++)
		finish_rows(diags, &tables->transfers[i], sizeof(struct transfer_option));
	for (size_t i = 0; i < LANGUAGE_COUNT; i++) {
		finish_rows(diags, &tables->languages[i].calls, sizeof(struct effect));
		finish_rows(diags, &tables->languages[i].aliases, sizeof(struct name_alias));
	}
}
