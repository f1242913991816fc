/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

size_t utf8_decode(const uint8_t *bytes, size_t size, uint32_t *ret_rune)
{
	static const uint32_t minimum[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t rune;
	size_t length;

	if (!size)
		return 0;
	if (bytes[0] < 0x80) {
		*ret_rune = bytes[0];
		return 1;
	}
	if (bytes[0] >= 0xc2 && bytes[0] <= 0xdf)
		length = 2, rune = bytes[0] & 0x1f;
	else if ((bytes[0] & 0xf0) == 0xe0)
		length = 3, rune = bytes[0] & 0x0f;
	else if (bytes[0] >= 0xf0 && bytes[0] <= 0xf4)
		length = 4, rune = bytes[0] & 0x07;
	else
		return 0;
	if (size < length)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		rune = rune << 6 | (bytes[i] & 0x3f);
	}
	if (rune < minimum[length] || rune > 0x10ffff || (rune >= 0xd800 && rune <= 0xdfff))
		return 0;
	*ret_rune = rune;
	return length;
}

bool utf8_is_unsafe(uint32_t rune)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x80, 0xa0 },     { 0xad, 0xad },     { 0x34f, 0x34f },   { 0x61c, 0x61c },
		{ 0x115f, 0x1160 }, { 0x1680, 0x1680 }, { 0x17b4, 0x17b5 }, { 0x180b, 0x180f },
		{ 0x2000, 0x200f }, { 0x2028, 0x202f }, { 0x205f, 0x206f }, { 0x2800, 0x2800 },
		{ 0x3000, 0x3000 }, { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	if (rune < ranges[0].first)
		return false;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (rune >= ranges[i].first && rune <= ranges[i].last)
			return true;
	return false;
}

bool utf8_is_valid(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	while (size) {
		uint32_t rune;
		size_t used = utf8_decode(at, size, &rune);

		if (!used)
			return false;
		at += used;
		size -= used;
	}
	return true;
}
