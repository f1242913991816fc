/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/language.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

static const char *const languages[LANGUAGE_COUNT] = { "unknown", "shell", "python", "javascript", "other" };

/* Program names without their version, and suffixes of files. */
static const struct {
	const char *name;
	enum verify_language language;
} interpreters[] = {
	{ "sh", LANGUAGE_SHELL }, { "bash", LANGUAGE_SHELL }, { "dash", LANGUAGE_SHELL }, { "ash", LANGUAGE_SHELL },
	{ "zsh", LANGUAGE_SHELL }, { "ksh", LANGUAGE_SHELL }, { "mksh", LANGUAGE_SHELL }, { "rbash", LANGUAGE_SHELL },
	{ "python", LANGUAGE_PYTHON }, { "python.exe", LANGUAGE_PYTHON },
	{ "pypy", LANGUAGE_PYTHON }, { "node", LANGUAGE_JAVASCRIPT },
	{ "nodejs", LANGUAGE_JAVASCRIPT }, { "bun", LANGUAGE_JAVASCRIPT }, { "deno", LANGUAGE_JAVASCRIPT },
	{ "perl", LANGUAGE_OTHER }, { "ruby", LANGUAGE_OTHER }, { "php", LANGUAGE_OTHER }, { "lua", LANGUAGE_OTHER },
	{ "tclsh", LANGUAGE_OTHER }, { "fish", LANGUAGE_OTHER }, { "Rscript", LANGUAGE_OTHER },
	{ "osascript", LANGUAGE_OTHER }, { "pwsh", LANGUAGE_OTHER }, { "luajit", LANGUAGE_OTHER },
	{ "julia", LANGUAGE_OTHER }, { "groovy", LANGUAGE_OTHER }, { "elixir", LANGUAGE_OTHER },
	{ "jjs", LANGUAGE_OTHER }, { "jrunscript", LANGUAGE_OTHER }, { "wish", LANGUAGE_OTHER },
	{ "expect", LANGUAGE_OTHER }, { "guile", LANGUAGE_OTHER }, { "crystal", LANGUAGE_OTHER },
	{ "irb", LANGUAGE_OTHER }, { "R", LANGUAGE_OTHER }, { "ocaml", LANGUAGE_OTHER }, { "scala", LANGUAGE_OTHER },
	{ "iex", LANGUAGE_OTHER }, { "jshell", LANGUAGE_OTHER }, { "psysh", LANGUAGE_OTHER },
}, suffixes[] = {
	{ ".sh", LANGUAGE_SHELL }, { ".bash", LANGUAGE_SHELL }, { ".zsh", LANGUAGE_SHELL }, { ".ksh", LANGUAGE_SHELL },
	{ ".py", LANGUAGE_PYTHON }, { ".pyw", LANGUAGE_PYTHON }, { ".js", LANGUAGE_JAVASCRIPT },
	{ ".mjs", LANGUAGE_JAVASCRIPT }, { ".cjs", LANGUAGE_JAVASCRIPT }, { ".jsx", LANGUAGE_JAVASCRIPT },
	{ ".pl", LANGUAGE_OTHER }, { ".rb", LANGUAGE_OTHER }, { ".php", LANGUAGE_OTHER }, { ".lua", LANGUAGE_OTHER },
	{ ".tcl", LANGUAGE_OTHER }, { ".jl", LANGUAGE_OTHER }, { ".groovy", LANGUAGE_OTHER },
};

const char *language_name(enum verify_language language)
{
	return languages[(unsigned)language < LANGUAGE_COUNT ? language : LANGUAGE_UNKNOWN];
}

int language_from_name(const char *text)
{
	for (int i = LANGUAGE_SHELL; i < LANGUAGE_OTHER; i++) {
		if (str_equal(languages[i], text))
			return i;
	}
	return -1;
}

enum verify_language language_of_interpreter(const char *program)
{
	const char *name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
	size_t size = strlen(name);

	if (*name == '-')
		name++, size--;
	if (size > strlen(".exe") && str_equal(name + size - strlen(".exe"), ".exe"))
		size -= strlen(".exe");
	while (size && (isdigit((unsigned char)name[size - 1]) || name[size - 1] == '.'))
		size--;
	for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++) {
		if (strlen(interpreters[i].name) == size && memcmp(interpreters[i].name, name, size) == 0)
			return interpreters[i].language;
	}
	return LANGUAGE_UNKNOWN;
}

/* The program of a `#!` line; behind env, the next word that is neither an option nor an assignment. */
static enum verify_language guess_interpreter(const char *text, size_t size)
{
	const char *end = memchr(text, '\n', size);
	char line[256];
	char *rest = line, *word;

	size = end ? (size_t)(end - text) : size;
	if (size >= sizeof line)
		size = sizeof line - 1;
	memcpy(line, text, size);
	line[size] = '\0';
	while ((word = strsep(&rest, " \t\r"))) {
		const char *name = strrchr(word, '/') ? strrchr(word, '/') + 1 : word;

		if (!*word || *word == '-' || strchr(word, '=') || str_equal(name, "env") || str_equal(name, "busybox"))
			continue;
		return language_of_interpreter(name) == LANGUAGE_UNKNOWN ? LANGUAGE_OTHER :
									   language_of_interpreter(name);
	}
	return LANGUAGE_OTHER;
}

static bool begins_a_line(const char *text, size_t size, const char *const *marks, size_t count)
{
	const char *end = text + size;

	while (text < end) {
		const char *next = memchr(text, '\n', (size_t)(end - text));

		for (size_t i = 0; i < count; i++) {
			size_t length = strlen(marks[i]);

			if ((size_t)(end - text) >= length && memcmp(text, marks[i], length) == 0)
				return true;
		}
		if (!next)
			break;
		text = next + 1;
	}
	return false;
}

/* Only for a text without a name: what a person pastes. The shell is what most of it is. */
static enum verify_language guess_content(const char *text, size_t size)
{
	static const char *const python[] = { "import ", "from ", "def ", "print(", "class ", "with open(",
					      "async def " };
	static const char *const javascript[] = { "const ", "let ", "var ", "function ", "require(", "import {",
						  "async function", "export default", "console.log(", "(() =>",
						  "(async () =>", "fetch(" };
	bool is_python, is_javascript;

	if (size > 64 << 10)
		size = 64 << 10;
	is_javascript = begins_a_line(text, size, javascript, ARRAY_SIZE(javascript));
	is_python = begins_a_line(text, size, python, ARRAY_SIZE(python));
	if (is_javascript)
		return LANGUAGE_JAVASCRIPT;
	return is_python ? LANGUAGE_PYTHON : LANGUAGE_SHELL;
}

enum verify_language language_guess(const char *name, const void *bytes, size_t size)
{
	const char *text = bytes;

	if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3, size -= 3;
	if (size >= 4 && memcmp(text, "\x7f" "ELF", 4) == 0)
		return LANGUAGE_OTHER;
	if (size >= 2 && text[0] == '#' && text[1] == '!')
		return guess_interpreter(text + 2, size - 2);
	for (size_t i = 0; name && i < ARRAY_SIZE(suffixes); i++) {
		if (str_has_suffix(name, suffixes[i].name))
			return suffixes[i].language;
	}
	return guess_content(text, size);
}

size_t language_interpreters(const char **names, size_t max)
{
	/* Versions: python3.11. */
	static const char *const versioned[] = { "python[0-9]*", "pypy[0-9]*", "perl[0-9]*", "ruby[0-9]*", "php[0-9]*",
						 "lua[0-9]*" };
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(interpreters) && count < max; i++)
		names[count++] = interpreters[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(versioned) && count < max; i++)
		names[count++] = versioned[i];
	return count;
}
