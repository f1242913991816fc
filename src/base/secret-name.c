/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret-name.h"

#include <string.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

bool secret_name_is_valid(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length < SECRET_NAME_SIZE && !strchr("._-", name[0]) && strspn(name, letters) == length;
}
