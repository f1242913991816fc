/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/argv.h"

#include <string.h>

#include "base/str.h"
#include "verify/model/words.h"

const char *program_name(const struct word *words, size_t count)
{
	const char *slash;

	if (!count)
		return "";
	slash = strrchr(words[0].text, '/');
	return slash ? slash + 1 : words[0].text;
}

bool names_have(const char *list, const char *name, size_t size)
{
	while (*list) {
		size_t length = strcspn(list, " ");

		if (length == size && memcmp(list, name, size) == 0)
			return true;
		list += length + (list[length] == ' ');
	}
	return false;
}

size_t option_size(const struct word *words, size_t count, size_t at, const char *valued)
{
	const char *text = words[at].text;

	if (text[0] != '-' || !text[1])
		return 0;
	if (text[1] == '-')
		return names_have(valued, text, strlen(text)) && at + 1 < count ? 2 : 1;
	for (const char *letter = text + 1; *letter; letter++) {
		if (names_have(valued, letter, 1))
			return letter[1] || at + 1 >= count ? 1 : 2;
	}
	return 1;
}

bool option_given(const struct word *words, size_t count, char letter, const char *long_option)
{
	for (size_t i = 1; i < count; i++) {
		const char *text = words[i].text;

		if (text[0] != '-')
			continue;
		if (word_is(&words[i], "--"))
			return false;
		if (letter && text[1] != '-' && strchr(text + 1, letter))
			return true;
		if (long_option && str_has_prefix(text, long_option) &&
		    (!text[strlen(long_option)] || text[strlen(long_option)] == '='))
			return true;
	}
	return false;
}
