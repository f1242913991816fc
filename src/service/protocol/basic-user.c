/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/basic-user.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/str.h"

enum { HEADER_MAX = 512 };

int basic_user_read(const char *header, char out[BASIC_USER_SIZE])
{
	static const char scheme[] = "Basic ";
	uint8_t memory[HEADER_MAX];
	struct buf text;
	const char *name;

	if (!header || strncasecmp(header, scheme, sizeof scheme - 1) != 0)
		return 0;
	header += sizeof scheme - 1;
	header += strspn(header, " ");
	buf_init_fixed(&text, memory, sizeof memory);
	if (base64_read(&text, header, strcspn(header, " ")) < 0)
		return -EINVAL;
	name = buf_text(&text);
	if (strlen(name) != text.size || !strchr(name, ':'))
		return -EINVAL;
	*strchr((char *)name, ':') = 0;
	for (const char *c = name; *c; c++)
		if (!(*c > ' ' && *c < 0x7f) || strchr("/:,\\", *c))
			return -EINVAL;
	if (*name == '-' || str_copy(out, BASIC_USER_SIZE, name) < 0)
		return -EINVAL;
	return *name ? 1 : 0;
}
