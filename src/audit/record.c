/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/record.h"

#include <string.h>

#include "os/clock.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool audit_hash_from_hex(struct hash *ret_hash, const char *hex)
{
	struct hash hash;

	for (int i = 0; i < HASH_SIZE; i++) {
		int high = hex_digit(hex[2 * i]), low = high < 0 ? -1 : hex_digit(hex[2 * i + 1]);

		if (low < 0)
			return false;
		hash.bytes[i] = (uint8_t)(high << 4 | low);
	}
	*ret_hash = hash;
	return true;
}

struct cursor {
	const char *at, *end;
};

static bool skip_text(struct cursor *cursor, const char *text)
{
	size_t size = strlen(text);

	if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, text, size) != 0)
		return false;
	cursor->at += size;
	return true;
}

static bool take_number(struct cursor *cursor, uint64_t *ret_value)
{
	const char *start = cursor->at;
	uint64_t value = 0;

	for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*cursor->at - '0'), &value))
			return false;
	*ret_value = value;
	return cursor->at > start && (*start != '0' || cursor->at == start + 1);
}

/* One member's bytes: in a pattern '0' stands for a digit, '*' for one of [a-z0-9], all else for itself. */
static bool take_pattern(struct cursor *cursor, const char *pattern)
{
	size_t size = strlen(pattern);

	if ((size_t)(cursor->end - cursor->at) < size)
		return false;
	for (size_t i = 0; i < size; i++) {
		char c = cursor->at[i];
		bool is_digit = c >= '0' && c <= '9', is_letter = c >= 'a' && c <= 'z';

		if (pattern[i] == '0' ? !is_digit : pattern[i] == '*' ? !is_digit && !is_letter : c != pattern[i])
			return false;
	}
	cursor->at += size;
	return true;
}

static const char link_key[] = ",\"prev\":\"", link_end[] = "\"}";

/* Moves the end of the cursor before the last member, which holds the link. */
static bool take_link(struct cursor *cursor, struct hash *ret_prev)
{
	size_t size = strlen(link_key) + 2 * HASH_SIZE + strlen(link_end);
	struct cursor tail;

	if ((size_t)(cursor->end - cursor->at) < size)
		return false;
	tail = (struct cursor){ cursor->end - size, cursor->end };
	cursor->end = tail.at;
	if (!skip_text(&tail, link_key) || !audit_hash_from_hex(ret_prev, tail.at))
		return false;
	tail.at += 2 * HASH_SIZE;
	return skip_text(&tail, link_end);
}

static bool has_control_bytes(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f)
			return true;
	return false;
}

enum audit_fault audit_record_parse(struct audit_record *ret_record, const char *line, size_t size)
{
	struct cursor cursor = { line, line + size };
	uint64_t version;

	if (has_control_bytes(line, size) || !skip_text(&cursor, "{\"v\":") || !take_number(&cursor, &version))
		return AUDIT_FAULT_SHAPE;
	if (version != 1)
		return AUDIT_FAULT_VERSION;
	if (!skip_text(&cursor, ",\"seq\":") || !take_number(&cursor, &ret_record->seq) ||
	    !skip_text(&cursor, ",\"ts\":") ||
	    !take_pattern(&cursor, "\"0000-00-00T00:00:00.000000000Z\"") || !skip_text(&cursor, ",\"session\":\""))
		return AUDIT_FAULT_SHAPE;
	ret_record->session = cursor.at;
	if (!take_pattern(&cursor, "************") || !skip_text(&cursor, "\",\"type\":\""))
		return AUDIT_FAULT_SHAPE;
	ret_record->type = cursor.at;
	while (cursor.at < cursor.end && ((*cursor.at >= 'a' && *cursor.at <= 'z') || *cursor.at == '.'))
		cursor.at++;
	ret_record->type_size = (size_t)(cursor.at - ret_record->type);
	if (!ret_record->type_size || !skip_text(&cursor, "\"") || !take_link(&cursor, &ret_record->prev))
		return AUDIT_FAULT_SHAPE;
	hash_bytes(&ret_record->own, line, size);
	return AUDIT_FAULT_NONE;
}
