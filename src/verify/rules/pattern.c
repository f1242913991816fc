/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/rules/pattern.h"

#include <ctype.h>
#include <string.h>

static unsigned char folded(char c, bool folds_case)
{
	return folds_case ? (unsigned char)tolower((unsigned char)c) : (unsigned char)c;
}

/* The end of the set that begins at "["; NULL: it has none, so that "[" is a byte as any other. */
static const char *set_end(const char *pattern)
{
	const char *at = pattern + 1;

	at += *at == '!' || *at == '^';
	at += *at == ']';
	for (; *at && *at != ']'; at++)
		at += *at == '\\' && at[1];
	return *at ? at : NULL;
}

static bool set_has(const char *pattern, const char *end, char c, bool folds_case)
{
	const char *at = pattern + 1;
	bool is_negated = *at == '!' || *at == '^', found = false;
	unsigned char byte = folded(c, folds_case);

	for (at += is_negated; at < end; at++) {
		unsigned char first, last;

		at += *at == '\\';
		first = last = folded(*at, folds_case);
		if (at[1] == '-' && at + 2 < end) {
			at += 2 + (at[2] == '\\');
			last = folded(*at, folds_case);
		}
		found |= byte >= first && byte <= last;
	}
	return found != is_negated;
}

/* What stands behind the one element at the pattern where it is c; NULL: it is not. */
static const char *match_one(const char *pattern, char c, bool folds_case)
{
	const char *end;

	if (*pattern == '?')
		return pattern + 1;
	if (*pattern == '[' && (end = set_end(pattern)))
		return set_has(pattern, end, c, folds_case) ? end + 1 : NULL;
	pattern += *pattern == '\\' && pattern[1];
	return *pattern && folded(*pattern, folds_case) == folded(c, folds_case) ? pattern + 1 : NULL;
}

/* The next place where what stands behind a "*" may begin. */
static const char *next_begin(const char *pattern, const char *text, bool folds_case)
{
	char either[3] = { *pattern, *pattern, '\0' };

	if (strchr("?[\\", *pattern))
		return text;
	if (folds_case) {
		either[0] = (char)tolower((unsigned char)*pattern);
		either[1] = (char)toupper((unsigned char)*pattern);
	}
	return text + strcspn(text, either);
}

bool pattern_match(const char *pattern, const char *text, bool folds_case)
{
	const char *star = NULL, *begin = NULL, *next;

	while (*text) {
		if (*pattern == '*') {
			star = pattern += strspn(pattern, "*");
			if (!*pattern)
				return true;
			text = begin = next_begin(pattern, text, folds_case);
		} else if ((next = match_one(pattern, *text, folds_case))) {
			pattern = next;
			text++;
		} else if (star) {
			/* What an earlier "*" takes could only be less: the last one alone is moved. */
			pattern = star;
			text = begin = next_begin(pattern, begin + 1, folds_case);
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}
