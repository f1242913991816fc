/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/str.h"

void words_done(struct words *words)
{
	strv_free(words->list);
	*words = (struct words){ 0 };
}

static int grow(struct words *words)
{
	size_t size = words->size ? 2 * words->size : 32;
	char **list;

	if (words->error || words->count == WORDS_MAX)
		return words->error ? words->error : -E2BIG;
	if (words->count + 1 < words->size)
		return 0;
	list = realloc(words->list, size * sizeof *list);
	if (!list)
		return -ENOMEM;
	words->list = list;
	words->size = size;
	return 0;
}

/* Takes the text. */
static void append(struct words *words, char *text)
{
	words->error = text ? grow(words) : -ENOMEM;
	if (words->error < 0) {
		free(text);
		return;
	}
	words->list[words->count++] = text;
	words->list[words->count] = NULL;
}

void words_add(struct words *words, const char *text)
{
	append(words, str_dup(text));
}

void words_add_all(struct words *words, const char *const *strv)
{
	for (; strv && *strv; strv++)
		words_add(words, *strv);
}

void words_add_option(struct words *words, const char *option, const char *value)
{
	if (!value)
		return;
	words_add(words, option);
	words_add(words, value);
}

void words_add_flag(struct words *words, bool is_given, const char *option)
{
	if (is_given)
		words_add(words, option);
}

static void add_given(struct words *words, const struct option *option, const void *field)
{
	char *name = str_printf("--%s", option->long_name);
	const struct option_list *list = field;
	const char *text = option->kind == OPTION_FLAG ? NULL : *(const char *const *)field;

	if (!name)
		words->error = -ENOMEM;
	else if (option->kind == OPTION_FLAG)
		words_add_flag(words, *(const bool *)field, name);
	else if (option->kind == OPTION_TEXT)
		words_add_option(words, name, text);
	else if (option->kind == OPTION_MAYBE && text)
		append(words, *text ? str_printf("%s=%s", name, text) : str_dup(name));
	for (size_t i = 0; name && option->kind == OPTION_LIST && i < list->count; i++)
		words_add_option(words, name, list->values[i]);
	free(name);
}

static bool is_alias(const struct option *options, const struct option *option)
{
	for (; options < option; options++)
		if (options->offset == option->offset)
			return true;
	return false;
}

void words_add_options(struct words *words, const struct option *options, size_t count, const void *target)
{
	for (const struct option *option = options; option < options + count; option++)
		if (!is_alias(options, option))
			add_given(words, option, (const char *)target + option->offset);
}

int words_error(const struct words *words)
{
	return words->error;
}
