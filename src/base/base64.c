/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>

enum { GROUP_BYTES = 3, GROUP_CHARS = 4, BITS = 6 };

void base64_put(struct buf *out, const void *bytes, size_t size)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *at = bytes;
	size_t groups = size / GROUP_BYTES, rest = size % GROUP_BYTES;
	char *to = buf_reserve(out, (groups + (rest != 0)) * GROUP_CHARS);

	if (!to)
		return;
	for (size_t i = 0; i < groups; i++, at += GROUP_BYTES) {
		uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];

		*to++ = alphabet[bits >> 18];
		*to++ = alphabet[bits >> 12 & 63];
		*to++ = alphabet[bits >> 6 & 63];
		*to++ = alphabet[bits & 63];
	}
	if (rest) {
		uint32_t bits = (uint32_t)at[0] << 16 | (rest > 1 ? (uint32_t)at[1] << 8 : 0);

		*to++ = alphabet[bits >> 18];
		*to++ = alphabet[bits >> 12 & 63];
		*to++ = rest > 1 ? alphabet[bits >> 6 & 63] : '=';
		*to = '=';
	}
}

static int digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

int base64_read(struct buf *out, const char *text, size_t size)
{
	uint32_t bits = 0;
	unsigned count = 0;
	uint8_t *to;

	if (size && size % GROUP_CHARS == 0 && text[size - 1] == '=')
		size -= text[size - 2] == '=' ? 2 : 1;
	if (size % GROUP_CHARS == 1)
		return -EINVAL;
	for (size_t i = 0; i < size; i++)
		if (digit_of(text[i]) < 0)
			return -EINVAL;
	to = buf_reserve(out, size * BITS / 8);
	if (!to)
		return buf_error(out);
	for (size_t i = 0; i < size; i++) {
		bits = bits << BITS | (uint32_t)digit_of(text[i]);
		count += BITS;
		if (count >= 8) {
			count -= 8;
			*to++ = (uint8_t)(bits >> count);
		}
	}
	return 0;
}
