/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/run/detach-keys.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/str.h"

/* One key of length bytes; -1: it is none. */
static int parse_key(const char *text, size_t length)
{
	static const char prefix[] = "ctrl-";
	char named;

	if (length == 1)
		return (unsigned char)text[0];
	if (length != sizeof prefix || strncmp(text, prefix, sizeof prefix - 1) != 0)
		return -1;
	named = text[sizeof prefix - 1];
	if (named >= 'a' && named <= 'z')
		return named - 'a' + 1;
	return named >= '@' && named <= '_' && !(named >= 'A' && named <= 'Z') ? named - '@' : -1;
}

int detach_keys_parse(struct detach_keys *keys, const char *text)
{
	struct detach_keys parsed = { 0 };

	while (*text) {
		size_t length = strcspn(text, ",");
		int key = parse_key(text, length);

		if (key < 0 || parsed.count == DETACH_KEYS_MAX || str_equal(text + length, ","))
			return -EINVAL;
		parsed.keys[parsed.count++] = (uint8_t)key;
		text += length + (text[length] == ',');
	}
	*keys = parsed;
	return 0;
}

/* The longest beginning of the sequence with which what was held ends, when this byte is behind it. */
static size_t longest_match(const struct detach_keys *keys, uint8_t byte)
{
	for (size_t skip = 0; skip <= keys->held; skip++) {
		size_t kept = keys->held - skip;

		if (keys->keys[kept] == byte && memcmp(keys->keys, keys->keys + skip, kept) == 0)
			return kept + 1;
	}
	return 0;
}

/* What was typed, as it begins with what was held. */
static size_t pass(const struct detach_keys *keys, uint8_t byte, size_t matched, uint8_t *out)
{
	size_t count = keys->held + 1 - matched;

	for (size_t i = 0; i < count; i++)
		out[i] = i < keys->held ? keys->keys[i] : byte;
	return count;
}

size_t detach_keys_sift(struct detach_keys *keys, uint8_t *bytes, size_t n, size_t room)
{
	size_t offset = room - n, used = 0;

	/* A terminal gives no more than 4 KiB at a time. */
	assert(room >= n + DETACH_KEYS_MAX);
	if (!keys->count)
		return n;
	/* Out of the way of what comes in its place. */
	memmove(bytes + offset, bytes, n);
	for (size_t i = 0; i < n && !keys->is_complete; i++) {
		uint8_t byte = bytes[offset + i];
		size_t matched = longest_match(keys, byte);

		used += pass(keys, byte, matched, bytes + used);
		keys->held = matched;
		keys->is_complete = matched == keys->count;
	}
	return used;
}
