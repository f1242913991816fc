/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/request-path.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/url-path.h"
#include "policy/glob.h"

enum { PATH_MAX_SIZE = 8192, ROUNDS_MAX = 3 };

/* Whether a pattern matches, in one of four senses. */
typedef bool matcher(const char *pattern, const char *path);

/* With the other end: a slash or none. */
static bool match_refusing(const char *pattern, const char *path)
{
	char other[PATH_MAX_SIZE + 2];
	size_t size = strlen(path);

	if (size >= PATH_MAX_SIZE || glob_match_caseless(pattern, path))
		return true;
	if (size < 2)
		return false;
	memcpy(other, path, size);
	if (other[size - 1] == '/')
		size--;
	else
		other[size++] = '/';
	other[size] = 0;
	return glob_match_caseless(pattern, other);
}

/*
 * A rule that has an escape or a parameter means the path with it, and for a server that undoes or drops it the path
 * without: the steps of base/url-path.h that say so. What they bring out is no sign of a glob.
 */
static bool decode(char *pattern, unsigned classes)
{
	bool is_changed = false;
	char *to = pattern;

	for (const char *from = pattern; *from; from++) {
		int byte = url_escape_at(from);

		if (byte <= 0 || !(url_class_of(byte) & classes)) {
			*to++ = *from;
			continue;
		}
		if (strchr("*?[]\\", byte))
			*to++ = '\\';
		*to++ = (char)byte;
		from += 2;
		is_changed = true;
	}
	*to = 0;
	return is_changed;
}

static bool decode_slash(char *pattern)
{
	return decode(pattern, URL_SLASH);
}

static bool decode_semicolon(char *pattern)
{
	return decode(pattern, URL_SEMICOLON);
}

static bool decode_others(char *pattern)
{
	return decode(pattern, URL_ALL & ~(URL_SLASH | URL_SEMICOLON | URL_PERCENT));
}

static bool decode_percent(char *pattern)
{
	return decode(pattern, URL_PERCENT);
}

static bool cut_parameters(char *pattern)
{
	return url_path_cut(pattern, ";");
}

static bool (*const steps[])(char *pattern) = {
	decode_slash, decode_semicolon, decode_others, url_path_drop_parameters, cut_parameters, decode_percent,
};

/* The pattern as it is, or after some of the steps from first on; what %25 hid is undone in the next round. */
static bool match_read(matcher *matches, const char *pattern, const char *path, size_t first, unsigned rounds)
{
	char next[GLOB_SIZE_MAX + 1];

	if (matches(pattern, path))
		return true;
	for (size_t i = first; strpbrk(pattern, "%;") && i < ARRAY_SIZE(steps) && rounds; i++) {
		bool is_percent = steps[i] == decode_percent;

		if (str_copy(next, sizeof next, pattern) < 0)
			return false;
		if (steps[i](next) && match_read(matches, next, path, is_percent ? 0 : i + 1, rounds - is_percent))
			return true;
	}
	return false;
}

bool request_path_matches(const struct action *request, const char *pattern, bool is_refusing)
{
	if (!request->path)
		return false;
	if (request->path_kind == REQUEST_PATH_BEGINS)
		return match_read(is_refusing ? glob_may_match_inside : glob_covers_below, pattern, request->path, 0,
				  ROUNDS_MAX);
	if (is_refusing)
		return match_read(match_refusing, pattern, request->path, 0, ROUNDS_MAX);
	return request->path_kind == REQUEST_PATH_SENT ? glob_match(pattern, request->path)
						       : match_read(glob_match, pattern, request->path, 0, ROUNDS_MAX);
}
