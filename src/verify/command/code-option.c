/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/code-option.h"

#include <string.h>

#include "base/str.h"
#include "verify/model/argv.h"

/*
 * option: the word before, or, with a "=" behind it, how the word itself begins; NULL: any place. begins: what the
 * code begins with there, and is none of it. The first row that fits decides.
 */
static const struct code_row {
	const char *program, *option, *begins;
	enum verify_language language;
} rows[] = {
	{ "ftp", NULL, "!", LANGUAGE_SHELL },
	{ "gdb", "-ex", "!", LANGUAGE_SHELL },
	{ "gdb", "-ex", "shell ", LANGUAGE_SHELL },
	{ "gdb", "-ex", "python ", LANGUAGE_PYTHON },
	{ "gdb", "-ex", "py ", LANGUAGE_PYTHON },
	{ "gimp", "-b", "", LANGUAGE_PYTHON },
	{ "gimp", "--batch", "", LANGUAGE_PYTHON },
	{ "less", NULL, "+!", LANGUAGE_SHELL },
	{ "lldb", "-o", "platform shell ", LANGUAGE_SHELL },
	{ "lldb", "-o", "script ", LANGUAGE_PYTHON },
	{ "man", "-P", "", LANGUAGE_SHELL },
	{ "mysql", "-e", "\\! ", LANGUAGE_SHELL },
	{ "mariadb", "-e", "\\! ", LANGUAGE_SHELL },
	{ "psql", "-c", "\\! ", LANGUAGE_SHELL },
	{ "rsync", "--rsh", "", LANGUAGE_SHELL },
	{ "rsync", "-e", "", LANGUAGE_SHELL },
	{ "split", "--filter", "", LANGUAGE_SHELL },
	{ "sqlite3", NULL, ".shell ", LANGUAGE_SHELL },
	{ "sqlite3", NULL, ".system ", LANGUAGE_SHELL },
	{ "ssh", "-o", "LocalCommand=", LANGUAGE_SHELL },
	{ "ssh", "-o", "ProxyCommand=", LANGUAGE_SHELL },
	{ "ssh", NULL, "-oProxyCommand=", LANGUAGE_SHELL },
	{ "sftp", "-o", "ProxyCommand=", LANGUAGE_SHELL },
	{ "scp", "-o", "ProxyCommand=", LANGUAGE_SHELL },
	{ "tar", "--to-command", "", LANGUAGE_SHELL },
	{ "tar", "-I", "", LANGUAGE_SHELL },
	{ "tar", "--use-compress-program", "", LANGUAGE_SHELL },
	{ "tar", NULL, "--checkpoint-action=exec=", LANGUAGE_SHELL },
	{ "zip", "-TT", "", LANGUAGE_SHELL },
	{ "zip", "--unzip-command", "", LANGUAGE_SHELL },
};

/* Editors of one family: what stands behind -c, --cmd or + is a line of theirs. */
static const char *const editors[] = { "ex", "gvim", "nvim", "rview", "rvim", "vi", "view", "vim", "vimdiff" };
static const char *const editor_options[] = { "-c", "--cmd" };

static const struct {
	const char *begins;
	enum verify_language language;
} editor_lines[] = {
	{ "!", LANGUAGE_SHELL }, { "lua ", LANGUAGE_OTHER }, { "perl ", LANGUAGE_OTHER }, { "py ", LANGUAGE_PYTHON },
	{ "py3 ", LANGUAGE_PYTHON }, { "python ", LANGUAGE_PYTHON }, { "python3 ", LANGUAGE_PYTHON },
	{ "pyx ", LANGUAGE_PYTHON }, { "ruby ", LANGUAGE_OTHER }, { "tcl ", LANGUAGE_OTHER },
};

static void take(const struct word *word, const char *text, struct word *ret_code)
{
	*ret_code = *word;
	ret_code->text = text;
	ret_code->size = word->size - (uint32_t)(text - word->text);
}

static bool is_one_of(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(names[i], name))
			return true;
	return false;
}

static bool find_editor_line(const struct word *words, size_t at, struct word *ret_code,
			     enum verify_language *ret_language)
{
	const char *text = words[at].text;

	if (*text != '+' && !is_one_of(editor_options, ARRAY_SIZE(editor_options), words[at - 1].text))
		return false;
	text += *text == '+';
	text += strspn(text, ": ");
	for (size_t i = 0; i < ARRAY_SIZE(editor_lines); i++) {
		if (!str_has_prefix(text, editor_lines[i].begins))
			continue;
		take(&words[at], text + strlen(editor_lines[i].begins), ret_code);
		*ret_language = editor_lines[i].language;
		return true;
	}
	return false;
}

/* Behind the option and what the code begins with; NULL: the row is about something else. */
static const char *code_behind(const struct code_row *row, const struct word *words, size_t at)
{
	const char *text = words[at].text;
	size_t size = row->option ? strlen(row->option) : 0;

	if (row->option && !strncmp(text, row->option, size) && text[size] == '=')
		text += size + 1;
	else if (row->option && !str_equal(words[at - 1].text, row->option))
		return NULL;
	return str_has_prefix(text, row->begins) ? text + strlen(row->begins) : NULL;
}

bool code_option(const struct word *words, size_t count, size_t at, struct word *ret_code,
		 enum verify_language *ret_language)
{
	const char *name = program_name(words, count), *code;

	if (is_one_of(editors, ARRAY_SIZE(editors), name))
		return find_editor_line(words, at, ret_code, ret_language);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!str_equal(rows[i].program, name) || !(code = code_behind(&rows[i], words, at)))
			continue;
		take(&words[at], code, ret_code);
		*ret_language = rows[i].language;
		return true;
	}
	return false;
}
