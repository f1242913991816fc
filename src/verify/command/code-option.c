/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/code-option.h"

#include <string.h>

#include "base/str.h"
#include "verify/model/argv.h"

static void cut_code(const struct word *word, const char *text, struct word *ret_code)
{
	*ret_code = *word;
	ret_code->text = text;
	ret_code->size = word->size - (uint32_t)(text - word->text);
}

static bool find_editor_line(const struct editor_tables *editors, const struct word *words, size_t at,
			     struct word *ret_code, enum verify_language *ret_language)
{
	const struct editor_line *lines = editors->lines.items;
	const char *text = words[at].text;

	if (*text != '+' && !TABLES_FIND(char *, &editors->options, words[at - 1].text))
		return false;
	text += *text == '+';
	text += strspn(text, ": ");
	for (size_t i = 0; i < editors->lines.count; i++) {
		if (!str_has_prefix(text, lines[i].name))
			continue;
		cut_code(&words[at], text + strlen(lines[i].name), ret_code);
		*ret_language = lines[i].language;
		return true;
	}
	return false;
}

/* Behind the option and what the code begins with; NULL: the row is about something else. */
static const char *code_behind(const struct code_option *row, const struct word *words, size_t at)
{
	const char *text = words[at].text;
	size_t size = row->option ? strlen(row->option) : 0;

	if (row->option && !strncmp(text, row->option, size) && text[size] == '=')
		text += size + 1;
	else if (row->option && !str_equal(words[at - 1].text, row->option))
		return NULL;
	return str_has_prefix(text, row->begins) ? text + strlen(row->begins) : NULL;
}

bool code_option(const struct tables *tables, const struct word *words, size_t at, struct word *ret_code,
		 enum verify_language *ret_language)
{
	const struct vec *rows = &tables->code_options;
	const char *name = program_name(words, at + 1), *code;
	const struct code_option *row, *end;

	if (TABLES_FIND(char *, &tables->editors.names, name))
		return find_editor_line(&tables->editors, words, at, ret_code, ret_language);
	row = TABLES_FIND(struct code_option, rows, name);
	if (!row)
		return false;
	end = (const struct code_option *)rows->items + rows->count;
	for (; row < end && str_equal(row->name, name); row++) {
		code = code_behind(row, words, at);
		if (!code)
			continue;
		cut_code(&words[at], code, ret_code);
		*ret_language = row->language;
		return true;
	}
	return false;
}
