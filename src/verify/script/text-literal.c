/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "verify/script/text.h"

enum { HIDING_MIN = 4 };

/* A rune as UTF-8. */
static void put_rune(struct buf *buf, uint32_t rune)
{
	if (rune < 0x80) {
		buf_put_char(buf, (char)rune);
	} else if (rune < 0x800) {
		buf_put_char(buf, (char)(0xc0 | rune >> 6));
		buf_put_char(buf, (char)(0x80 | (rune & 0x3f)));
	} else if (rune < 0x10000) {
		buf_put_char(buf, (char)(0xe0 | rune >> 12));
		buf_put_char(buf, (char)(0x80 | (rune >> 6 & 0x3f)));
		buf_put_char(buf, (char)(0x80 | (rune & 0x3f)));
	} else if (rune < 0x110000) {
		buf_put_char(buf, (char)(0xf0 | rune >> 18));
		buf_put_char(buf, (char)(0x80 | (rune >> 12 & 0x3f)));
		buf_put_char(buf, (char)(0x80 | (rune >> 6 & 0x3f)));
		buf_put_char(buf, (char)(0x80 | (rune & 0x3f)));
	}
}

/* Up to max digits of base at bytes; how many there were. */
static size_t take_digits(const char *bytes, size_t size, size_t max, unsigned base, uint32_t *ret_value)
{
	size_t used = 0;

	*ret_value = 0;
	for (; used < size && used < max; used++) {
		char c = bytes[used];
		unsigned digit = isdigit((unsigned char)c) ? (unsigned)(c - '0')
				 : isxdigit((unsigned char)c)
					 ? (unsigned)(tolower((unsigned char)c) - 'a') + 10
					 : 16;

		if (digit >= base)
			break;
		*ret_value = *ret_value * base + digit;
	}
	return used;
}

/* One escape behind the backslash. The bytes used; *hidden counts those that stand for what could have been
 * written. */
static size_t put_escape(struct buf *buf, const char *bytes, size_t size, unsigned *hidden)
{
	static const char letters[] = "n\nt\tr\rb\bf\fv\va\a0";
	const char *letter = strchr(letters, bytes[0]);
	size_t digits = bytes[0] == 'x' ? 2 : bytes[0] == 'u' ? 4 : bytes[0] == 'U' ? 8 : 0, used = 1;
	uint32_t rune;

	if (bytes[0] >= '0' && bytes[0] <= '7') {
		used = take_digits(bytes, size, 3, 8, &rune);
	} else if (digits && size > 2 && bytes[1] == '{') {
		used = 2 + take_digits(bytes + 2, size - 2, 6, 16, &rune);
		used += used < size && bytes[used] == '}';
	} else if (digits) {
		used = 1 + take_digits(bytes + 1, size - 1, digits, 16, &rune);
	} else if (bytes[0] == '\n') {
		return 1;
	} else {
		buf_put_char(buf, letter && (letter - letters) % 2 == 0 && letter[1] ? letter[1] : bytes[0]);
		return 1;
	}
	*hidden += rune > ' ' && rune < 0x7f;
	put_rune(buf, rune);
	return used;
}

static const struct value *unescape(struct script *script, const char *bytes, size_t size)
{
	struct buf buf;
	const struct value *value;
	unsigned hidden = 0;

	if (!memchr(bytes, '\\', size))
		return value_text(script->arena, bytes, size, 0);
	buf_init(&buf, size * 2 + 16);
	for (size_t at = 0; at < size;) {
		if (bytes[at] == '\\' && at + 1 < size)
			at += 1 + put_escape(&buf, bytes + at + 1, size - at - 1, &hidden);
		else
			buf_put_char(&buf, bytes[at++]);
	}
	value = buf_error(&buf) ? &value_nothing
				: value_text(script->arena, (const char *)buf.bytes, buf.size,
					     hidden >= HIDING_MIN ? WORD_OBSCURED : 0);
	buf_done(&buf);
	return value;
}

const struct value *text_literal(struct script *script, uint32_t node, uint32_t start, uint32_t end,
				 bool is_raw)
{
	const struct syntax *syntax = &script->syntax;
	const struct value *all = NULL, *one;

	if (end > syntax->size)
		end = (uint32_t)syntax->size;
	for (uint32_t part = syntax->nodes[node].first; start < end || part;
	     part = syntax->nodes[part].next) {
		uint32_t until = part ? syntax->nodes[part].start : end;

		if (until > start) {
			one = is_raw ? value_text(script->arena, syntax->text + start, until - start, 0)
				     : unescape(script, syntax->text + start, until - start);
			all = all ? value_concat(script->arena, all, one) : one;
		}
		if (!part)
			break;
		one = script_value(script, part);
		all = value_concat(script->arena, all ? all : value_text(script->arena, "", 0, 0), one);
		start = syntax->nodes[part].end;
	}
	return all ? all : value_text(script->arena, "", 0, 0);
}

const struct value *text_number(struct script *script, const char *text)
{
	char digits[40];
	size_t count = 0;
	char *end;
	long long number;
	double real;

	for (; *text && count < sizeof digits - 1; text++)
		if (*text != '_')
			digits[count++] = *text;
	digits[count] = '\0';
	if (str_has_prefix(digits, "0b") || str_has_prefix(digits, "0B"))
		number = strtoll(digits + 2, &end, 2);
	else if (str_has_prefix(digits, "0o") || str_has_prefix(digits, "0O"))
		number = strtoll(digits + 2, &end, 8);
	else if (digits[0] == '0' && isdigit((unsigned char)digits[1]))
		number = strtoll(digits, &end, 8);
	else
		number = strtoll(digits, &end, 0);
	if (end != digits && (!*end || ((*end == 'n' || *end == 'L') && !end[1])))
		return value_number(script->arena, number);
	real = strtod(digits, &end);
	if (end != digits && !*end && real > -9e18 && real < 9e18 && real == (double)(long long)real)
		return value_number(script->arena, (long long)real);
	return &value_nothing;
}

/* The value that a conversion of "%" takes: the next of a list, the item of a map, or the only one. */
static const struct value *percent_argument(struct script *script, const struct value *arguments,
					    const char *key, uint32_t place)
{
	const struct value *item = key ? value_item(arguments, key) : NULL;

	if (item)
		return item;
	if (arguments->kind == VALUE_LIST && place < arguments->count)
		return arguments->items[place];
	return arguments->kind == VALUE_LIST || arguments->kind == VALUE_MAP
		       ? value_taint(script->arena, arguments)
		       : arguments;
}

static const struct value *append(struct script *script, const struct value *all, const char *bytes,
				  size_t size)
{
	return size ? value_concat(script->arena, all, value_text_holes(script->arena, bytes, size, 0)) : all;
}

const struct value *text_percent(struct script *script, const struct value *text,
				 const struct value *arguments)
{
	const struct value *all =
		value_also_from(script->arena, value_text(script->arena, "", 0, text->flags), text);
	const char *bytes = text->text;
	uint32_t start = 0, place = 0, size = text->size;

	for (uint32_t at = 0; at + 1 < size; at++) {
		const char *key = NULL;
		uint32_t behind = at + 1;

		if (bytes[at] != '%')
			continue;
		all = append(script, all, bytes + start, at - start);
		if (bytes[behind] == '(') {
			const char *end = memchr(bytes + behind, ')', size - behind);
			uint32_t close = end ? (uint32_t)(end - bytes) : size - 1;

			key = arena_text_n(script->arena, bytes + behind + 1, close - behind - 1);
			behind = close + 1;
		}
		while (behind < size && strchr("0123456789.-+# ", bytes[behind]) && bytes[behind])
			behind++;
		if (behind < size && bytes[behind] == '%')
			all = append(script, all, "%", 1);
		else
			all = value_concat(script->arena, all,
					   percent_argument(script, arguments, key, place++));
		start = behind < size ? behind + 1 : size;
		at = start ? start - 1 : 0;
	}
	return start < size ? append(script, all, bytes + start, size - start) : all;
}

/* The argument that "{…}" names: by place, by name, or the next one. */
static const struct value *format_argument(struct script *script, const struct call *call, const char *name,
					   uint32_t *place)
{
	size_t length = strcspn(name, ":!.[");
	char *key = arena_text_n(script->arena, name, length);
	const struct value *value;

	if (!key)
		return &value_nothing;
	if (!*key)
		value = call_argument(call, (int)(*place)++, NULL);
	else if (isdigit((unsigned char)*key) && length < 4)
		value = call_argument(call, (int)strtol(key, NULL, 10), NULL);
	else
		value = call_argument(call, -1, key);
	return value ? value : &value_nothing;
}

const struct value *text_format(struct script *script, const struct value *text, const struct call *call)
{
	const struct value *all =
		value_also_from(script->arena, value_text(script->arena, "", 0, text->flags), text);
	const char *bytes = text->text;
	uint32_t start = 0, place = 0, size = text->size;

	for (uint32_t at = 0; at < size; at++) {
		const char *end;

		if (bytes[at] != '{' && bytes[at] != '}')
			continue;
		all = append(script, all, bytes + start, at - start);
		end = bytes[at] == '{' ? memchr(bytes + at, '}', size - at) : NULL;
		if (at + 1 < size && bytes[at + 1] == bytes[at]) {
			all = append(script, all, bytes + at, 1);
			start = ++at + 1;
			continue;
		}
		if (!end) {
			start = at;
			break;
		}
		all = value_concat(script->arena, all,
				   format_argument(script, call,
						   arena_format(script->arena, "%.*s",
								(int)(end - bytes - at - 1), bytes + at + 1),
						   &place));
		at = (uint32_t)(end - bytes);
		start = at + 1;
	}
	return start < size ? append(script, all, bytes + start, size - start) : all;
}
