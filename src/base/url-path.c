/* SPDX-License-Identifier: Apache-2.0 */
#include "base/url-path.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int url_escape_at(const char *text)
{
	int high, low;

	if (text[0] != '%' || (high = digit_of(text[1])) < 0 || (low = digit_of(text[2])) < 0)
		return -1;
	return high << 4 | low;
}

unsigned url_class_of(int byte)
{
	if (byte < 0x20 || byte == 0x7f)
		return URL_CONTROL;
	switch (byte) {
	case '.':
		return URL_DOT;
	case '/':
		return URL_SLASH;
	case '\\':
		return URL_BACKSLASH;
	case ';':
		return URL_SEMICOLON;
	case '?':
	case '#':
		return URL_END;
	case '%':
		return URL_PERCENT;
	default:
		return strchr(":[]@!$&'()*+,=", byte) ? URL_DELIMITER : URL_FREE;
	}
}

bool url_path_decode(char *path, unsigned classes)
{
	static const char hex[] = "0123456789ABCDEF";
	bool is_changed = false;
	char *to = path;

	for (const char *from = path; *from; from++) {
		int byte = url_escape_at(from);

		if (byte <= 0 || !(classes & url_class_of(byte))) {
			*to++ = *from;
			if (byte < 0)
				continue;
			*to++ = hex[byte >> 4];
			*to++ = hex[byte & 15];
		} else {
			*to++ = (char)byte;
			is_changed = true;
		}
		from += 2;
	}
	*to = 0;
	return is_changed;
}

/* In at most three bytes; what UTF-8 gives no code for as well. */
static char *put_rune(char *to, unsigned rune)
{
	if (rune >= 0x800)
		*to++ = (char)(0xe0 | rune >> 12);
	if (rune >= 0x80)
		*to++ = (char)(rune >= 0x800 ? 0x80 | (rune >> 6 & 0x3f) : 0xc0 | rune >> 6);
	*to++ = (char)(rune >= 0x80 ? 0x80 | (rune & 0x3f) : rune);
	return to;
}

static int u_escape_at(const char *text)
{
	int value = 0;

	if (text[0] != '%' || (text[1] | 0x20) != 'u')
		return 0;
	for (int i = 2; i < 6; i++) {
		int digit = digit_of(text[i]);

		if (digit < 0)
			return 0;
		value = value << 4 | digit;
	}
	return value;
}

bool url_path_decode_u(char *path)
{
	bool is_changed = false;
	char *to = path;

	for (const char *from = path; *from; from++) {
		int rune = u_escape_at(from);

		if (rune) {
			to = put_rune(to, (unsigned)rune);
			from += 5;
			is_changed = true;
		} else {
			*to++ = *from;
		}
	}
	*to = 0;
	return is_changed;
}

bool url_path_drop_parameters(char *path)
{
	bool is_dropping = false, is_changed = false;
	char *to = path;

	for (const char *from = path; *from; from++) {
		is_dropping = *from != '/' && (is_dropping || *from == ';');
		if (!is_dropping)
			*to++ = *from;
		is_changed = is_changed || is_dropping;
	}
	*to = 0;
	return is_changed;
}

bool url_path_drop_first_parameters(char *path)
{
	char *at = path + strcspn(path, ";");
	size_t size = strcspn(at, "/");

	memmove(at, at + size, strlen(at + size) + 1);
	return size > 0;
}

bool url_path_drop_last_parameter(char *path)
{
	bool is_changed = false;
	char *to = path;

	while (*path) {
		size_t length = 1 + strcspn(path + 1, "/"), left = length;

		while (left > 1 && path[left - 1] != ';')
			left--;
		left = left > 1 ? left - 1 : length;
		memmove(to, path, left);
		to += left;
		path += length;
		is_changed = is_changed || left != length;
	}
	*to = 0;
	return is_changed;
}

bool url_path_cut(char *path, const char *set)
{
	size_t size = strcspn(path, set);
	bool is_changed = path[size] != 0;

	path[size] = 0;
	return is_changed;
}

bool url_path_turn_backslashes(char *path)
{
	bool is_changed = false;

	for (; *path; path++)
		if (*path == '\\') {
			*path = '/';
			is_changed = true;
		}
	return is_changed;
}

bool url_path_merge_slashes(char *path)
{
	bool is_changed = false;
	char *to = path;

	for (const char *from = path; *from; from++) {
		if (from[0] == '/' && from[1] == '/')
			is_changed = true;
		else
			*to++ = *from;
	}
	*to = 0;
	return is_changed;
}

bool url_path_merge_first_slashes(char *path)
{
	size_t count = strspn(path, "/");

	if (count > 1)
		memmove(path, path + count - 1, strlen(path + count - 1) + 1);
	return count > 1;
}

bool url_path_merge_later_slashes(char *path)
{
	return path[0] == '/' && path[1] == '/' && path[2] != '/' && url_path_merge_slashes(path + 1);
}

static bool is_dots(const char *segment, size_t length)
{
	return length > 0 && length <= 2 && segment[0] == '.' && segment[length - 1] == '.';
}

bool url_path_remove_dots(char *path)
{
	bool is_changed = false;
	const char *from = path;
	char *to = path;

	while (*from) {
		size_t length = strcspn(from + 1, "/");

		if (is_dots(from + 1, length)) {
			is_changed = true;
			/* The segment before, with its slash. */
			while (length == 2 && to > path && *--to != '/')
				;
			if (!from[length + 1])
				*to++ = '/';
		} else {
			memmove(to, from, length + 1);
			to += length + 1;
		}
		from += length + 1;
	}
	if (to == path)
		*to++ = '/';
	*to = 0;
	return is_changed;
}

bool url_path_remove_later_dots(char *path)
{
	return path[0] == '/' && path[1] == '/' && url_path_remove_dots(path + 1);
}

/* slashes: how many stand before the authority. */
static bool drop_authority(char *path, size_t slashes)
{
	size_t size;

	if (slashes < 2)
		return false;
	size = slashes + strcspn(path + slashes, "/");
	if (path[size])
		memmove(path, path + size, strlen(path + size) + 1);
	else
		path[1] = 0;
	return true;
}

bool url_path_drop_authority(char *path)
{
	return drop_authority(path, path[0] == '/' && path[1] == '/' ? 2 : 0);
}

bool url_path_drop_far_authority(char *path)
{
	return drop_authority(path, strspn(path, "/"));
}

static size_t trimmed(const char *segment, size_t length)
{
	size_t left = length;

	while (left > 0 && segment[left - 1] == ' ')
		left--;
	if (strspn(segment, ".") >= left)
		return left;
	while (left > 0 && (segment[left - 1] == ' ' || segment[left - 1] == '.'))
		left--;
	return left;
}

bool url_path_trim(char *path)
{
	bool is_changed = false;
	char *to = path;

	while (*path) {
		size_t length = strcspn(path + 1, "/"), left = trimmed(path + 1, length);

		memmove(to, path, left + 1);
		to += left + 1;
		path += length + 1;
		is_changed = is_changed || left != length;
	}
	*to = 0;
	return is_changed;
}

bool url_path_trim_end(char *path)
{
	size_t size = strlen(path), left = size;

	while (left > 0 && path[left - 1] == ' ')
		left--;
	path[left] = 0;
	return left != size;
}

struct look_alike {
	uint16_t rune;
	char text[4];
};

/* Beside the full width forms (U+FF01 to U+FF5E). */
static const struct look_alike compatible[] = {
	{ 0x037e, ";" },   { 0x2024, "." },   { 0x2025, ".." }, { 0x2026, "..." }, { 0x2047, "??" }, { 0x2048, "?!" },
	{ 0x2049, "!?" },  { 0x2100, "a/c" }, { 0x2101, "a/s" }, { 0x2105, "c/o" }, { 0x2106, "c/u" }, { 0xfe16, "?" },
	{ 0xfe19, "..." }, { 0xfe14, ";" },   { 0xfe30, ".." }, { 0xfe52, "." },   { 0xfe54, ";" },  { 0xfe56, "?" },
	{ 0xfe5f, "#" },   { 0xfe68, "\\" }, { 0xfe6a, "%" },
};

static const struct look_alike similar[] = {
	{ 0x2044, "/" },  { 0x2215, "/" }, { 0x2216, "\\" }, { 0x29f5, "\\" }, { 0x29f8, "/" }, { 0x29f9, "\\" },
	{ 0x3002, "." },  { 0xfe12, "." }, { 0xff61, "." },
};

/* What the character stands for; "": only for itself. */
static void find_compatible(uint32_t rune, char out[4])
{
	if (rune > 0xff00 && rune < 0xff5f)
		out[0] = (char)(rune - 0xff00 + 0x20);
	for (size_t i = 0; i < ARRAY_SIZE(compatible); i++)
		if (compatible[i].rune == rune)
			memcpy(out, compatible[i].text, sizeof compatible[i].text);
}

static void find_similar(uint32_t rune, char out[4])
{
	for (size_t i = 0; i < ARRAY_SIZE(similar); i++)
		if (similar[i].rune == rune)
			memcpy(out, similar[i].text, sizeof similar[i].text);
}

/*
 * The number of bytes of a character of ASCII that is written in more of them than it needs; 0: it is none. In two, any
 * second byte: who does not check the form does not check the byte.
 */
static size_t overlong_size(const char *text, unsigned *ret_byte)
{
	static const struct {
		unsigned char mask, lead;
	} leads[] = { { 0xe0, 0xc0 }, { 0xf0, 0xe0 }, { 0xf8, 0xf0 }, { 0xfc, 0xf8 }, { 0xfe, 0xfc } };
	unsigned char first = (unsigned char)*text;

	for (size_t i = 0; i < ARRAY_SIZE(leads); i++) {
		unsigned value = first & (unsigned char)~leads[i].mask;
		size_t size = 1;

		if ((first & leads[i].mask) != leads[i].lead)
			continue;
		for (; size < i + 2 && text[size] && (i == 0 || (text[size] & 0xc0) == 0x80); size++)
			value = value << 6 | (unsigned)(text[size] & 0x3f);
		*ret_byte = value;
		return size == i + 2 && value < 0x80 ? size : 0;
	}
	return 0;
}

/* How many bytes from text on are one character that stands for out; 0: the first stands for itself. */
typedef size_t fold_one(const char *text, char out[4]);

static size_t fold_overlong(const char *text, char out[4])
{
	unsigned byte = 0;
	uint32_t rune;
	size_t size = utf8_decode((const uint8_t *)text, strnlen(text, 4), &rune) ? 0 : overlong_size(text, &byte);

	out[0] = size && url_class_of((int)byte) == URL_CONTROL ? '\1' : (char)byte;
	return size;
}

static size_t fold_compatible(const char *text, char out[4])
{
	uint32_t rune;
	size_t size = utf8_decode((const uint8_t *)text, strnlen(text, 4), &rune);

	if (size)
		find_compatible(rune, out);
	return *out ? size : 0;
}

static size_t fold_similar(const char *text, char out[4])
{
	uint32_t rune;
	size_t size = utf8_decode((const uint8_t *)text, strnlen(text, 4), &rune);

	if (size)
		find_similar(rune, out);
	return *out ? size : 0;
}

static bool fold(char *path, fold_one *one)
{
	bool is_changed = false;
	char *to = path;

	while (*path) {
		char text[4] = { 0 };
		size_t size = *path & 0x80 ? one(path, text) : 0;

		if (size) {
			memcpy(to, text, strlen(text));
			to += strlen(text);
			path += size;
			is_changed = true;
		} else {
			*to++ = *path++;
		}
	}
	*to = 0;
	return is_changed;
}

bool url_path_fold_compatible(char *path)
{
	return fold(path, fold_compatible);
}

bool url_path_fold_similar(char *path)
{
	return fold(path, fold_similar);
}

bool url_path_fold_overlong(char *path)
{
	return fold(path, fold_overlong);
}
