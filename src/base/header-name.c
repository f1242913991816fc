/* SPDX-License-Identifier: Apache-2.0 */
#include "base/header-name.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

bool header_name_is_valid(const char *name)
{
	static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

	return name[0] && !name[strspn(name, token)];
}

bool header_name_is_framing(const char *name)
{
	static const char *const framing[] = {
		"host", "content-length", "transfer-encoding", "connection", "proxy-connection", "keep-alive", "te",
		"trailer", "upgrade", "expect",
	};

	for (size_t i = 0; i < ARRAY_SIZE(framing); i++)
		if (strcasecmp(framing[i], name) == 0)
			return true;
	return false;
}
