/* SPDX-License-Identifier: Apache-2.0 */
#include "session/env-additions.h"

#include <string.h>

extern char **environ;

static bool is_variable_name(const char *text, size_t length)
{
	if (!length || (text[0] >= '0' && text[0] <= '9'))
		return false;
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") >= length;
}

/* The caller's NAME=value entry for name, or NULL. */
static char *caller_entry(const char *name)
{
	size_t length = strlen(name);

	for (char **entry = environ; *entry; entry++)
		if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
			return *entry;
	return NULL;
}

int env_additions_make(const struct option_list *list, char *out[ENV_ADDITIONS_MAX], struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		const char *text = list->values[i];
		size_t length = strcspn(text, "=");

		if (!is_variable_name(text, length)) {
			err_set(err, ERR_USAGE, EINVAL, "options", "--env %s names no variable",
				err_quote(shown, text));
			err_hint(err, "write NAME or NAME=VALUE");
			return -EINVAL;
		}
		out[count] = text[length] ? (char *)text : caller_entry(text);
		count += out[count] ? 1 : 0;
	}
	out[count] = NULL;
	return 0;
}
