/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/pressure.h"

#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"

enum { TEXT_MAX = 4096, SHARE_MAX = 10000 };

int pressure_parse(const char *text, uint32_t *ret_share)
{
	static const char before[] = "some avg10=";
	const char *c = text + sizeof before - 1;
	uint32_t share = 0, decimals = 0;

	if (!str_has_prefix(text, before) || *c < '0' || *c > '9')
		return -EBADMSG;
	for (; *c >= '0' && *c <= '9' && share <= SHARE_MAX; c++)
		share = share * 10 + (uint32_t)(*c - '0');
	if (*c++ != '.')
		return -EBADMSG;
	for (; *c >= '0' && *c <= '9' && decimals < 2; c++, decimals++)
		share = share * 10 + (uint32_t)(*c - '0');
	if (decimals != 2 || share > SHARE_MAX)
		return -EBADMSG;
	*ret_share = share;
	return 0;
}

int pressure_memory(uint32_t *ret_share)
{
	cleanup_free char *text = NULL;
	size_t size;
	int r = fd_read_file_at(AT_FDCWD, "/proc/pressure/memory", TEXT_MAX, &text, &size);

	return r < 0 ? r : pressure_parse(text, ret_share);
}
