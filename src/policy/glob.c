/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/glob.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "policy/decide.h"

/*
 * A pattern is matched component by component as a nondeterministic automaton whose states are the
 * components, one bit each: hostile text cannot make it backtrack over "**". Within one component
 * only the last star is ever retried.
 */

enum { TEXT_SIZE_MAX = 8 << 10 };

struct component {
	const char *text;
	uint16_t length;
	bool is_any; /* "**" */
};

struct compiled {
	struct component components[GLOB_COMPONENTS_MAX];
	unsigned count;
	bool is_absolute;
};

static bool compile(const char *pattern, struct compiled *ret_compiled)
{
	ret_compiled->count = 0;
	ret_compiled->is_absolute = *pattern == '/';
	pattern += ret_compiled->is_absolute;
	for (;;) {
		size_t length = strcspn(pattern, "/");
		struct component *component = &ret_compiled->components[ret_compiled->count];

		if (ret_compiled->count == GLOB_COMPONENTS_MAX || length > GLOB_SIZE_MAX)
			return false;
		component->text = pattern;
		component->length = (uint16_t)length;
		component->is_any = length == 2 && pattern[0] == '*' && pattern[1] == '*';
		ret_compiled->count++;
		if (!pattern[length])
			return true;
		pattern += length + 1;
	}
}

/* The set at *at (behind "["): whether it has c; *at moves behind "]". An unclosed set matches nothing. */
static bool match_set(const char **at, const char *end, unsigned char c)
{
	const char *p = *at;
	bool negated = p < end && (*p == '!' || *p == '^');
	bool found = false;

	p += negated;
	for (const char *first = p; p < end && (*p != ']' || p == first);) {
		unsigned char low, high;

		if (*p == '\\' && p + 1 < end)
			p++;
		low = high = (unsigned char)*p++;
		if (p + 1 < end && *p == '-' && p[1] != ']') {
			p++;
			if (*p == '\\' && p + 1 < end)
				p++;
			high = (unsigned char)*p++;
		}
		found |= low <= c && c <= high;
	}
	if (p >= end) {
		*at = end;
		return false;
	}
	*at = p + 1;
	return found != negated;
}

/* One element of the pattern that is no star against c; *at moves behind it. */
static bool match_one(const char **at, const char *end, unsigned char c)
{
	const char *p = *at;

	if (*p == '?') {
		*at = p + 1;
		return true;
	}
	if (*p == '[') {
		*at = p + 1;
		return match_set(at, end, c);
	}
	if (*p == '\\' && p + 1 < end)
		p++;
	*at = p + 1;
	return (unsigned char)*p == c;
}

/* A character that is in the set at *at (behind "["), letters first; *at moves behind "]". 0: none is. */
static char member(const char **at)
{
	const char *end = *at + strlen(*at), *behind = end;

	for (unsigned i = 'a'; i < 'a' + UINT8_MAX; i++) {
		unsigned char c = (unsigned char)i;

		behind = *at;
		if (c && c != '/' && match_set(&behind, end, c)) {
			*at = behind;
			return (char)c;
		}
	}
	return 0;
}

bool glob_sample(const char *pattern, char *out)
{
	while (*pattern) {
		bool is_escaped = *pattern == '\\' && pattern[1];
		bool is_wild = *pattern == '*' || *pattern == '?';

		if (*pattern == '[') {
			pattern++;
			*out = member(&pattern);
			if (!*out++)
				return false;
			continue;
		}
		pattern += is_escaped;
		*out++ = is_wild ? 'x' : *pattern;
		pattern += is_wild && pattern[0] == '*' && pattern[1] == '*' ? 2 : 1;
	}
	*out = 0;
	return true;
}

static bool match_component(const struct component *component, const char *text, size_t length)
{
	const char *p = component->text, *end = p + component->length;
	const char *text_end = text + length, *star = NULL, *star_text = NULL;

	while (text < text_end) {
		if (p < end && *p == '*') {
			star = ++p;
			star_text = text;
		} else if (p < end && match_one(&p, end, (unsigned char)*text)) {
			text++;
		} else if (star) {
			p = star;
			text = ++star_text;
		} else {
			return false;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}

/* "**" may stand for no component at all: its successor state is reached with it. */
static uint64_t close_states(const struct compiled *compiled, uint64_t states)
{
	for (unsigned i = 0; i < compiled->count; i++)
		if (compiled->components[i].is_any && states >> i & 1)
			states |= 2ULL << i;
	return states;
}

static uint64_t step(const struct compiled *compiled, uint64_t states, const char *text, size_t length)
{
	uint64_t next = 0;

	for (unsigned i = 0; i < compiled->count; i++) {
		if (!(states >> i & 1))
			continue;
		if (compiled->components[i].is_any)
			next |= 1ULL << i;
		else if (match_component(&compiled->components[i], text, length))
			next |= 2ULL << i;
	}
	return close_states(compiled, next);
}

static bool starts_alike(const struct compiled *compiled, const char *text)
{
	if (compiled->is_absolute)
		return *text == '/';
	return *text != '/' || compiled->components[0].is_any;
}

bool glob_match(const char *pattern, const char *text)
{
	struct compiled compiled;
	uint64_t states;

	if (!compile(pattern, &compiled) || !starts_alike(&compiled, text))
		return false;
	text += *text == '/';
	states = close_states(&compiled, 1);
	for (;;) {
		size_t length = strcspn(text, "/");

		states = step(&compiled, states, text, length);
		if (!states)
			return false;
		if (!text[length])
			return states >> compiled.count & 1;
		text += length + 1;
	}
}

int glob_match_below(const char *pattern, const char *path)
{
	struct compiled compiled;
	uint64_t states;
	int depth = 0, best = -1;

	if (!compile(pattern, &compiled) || !starts_alike(&compiled, path))
		return -1;
	while (compiled.count && compiled.components[compiled.count - 1].is_any)
		compiled.count--;
	states = close_states(&compiled, 1);
	path += *path == '/';
	for (;;) {
		size_t length = strcspn(path, "/");

		if (states >> compiled.count & 1)
			best = depth;
		if (!length && !path[length])
			return best;
		states = step(&compiled, states, path, length);
		depth++;
		if (!path[length])
			break;
		if (!states)
			return best;
		path += length + 1;
	}
	return states >> compiled.count & 1 ? depth : best;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool lower_all(char *out, size_t size, const char *text)
{
	size_t i = 0;

	for (; text[i] && i + 1 < size; i++)
		out[i] = lower(text[i]);
	out[i] = 0;
	return !text[i];
}

/* A pattern for which the case of letters makes no difference but in what it is compared with. */
static bool is_low(const char *pattern)
{
	for (; *pattern; pattern++)
		if (*pattern == '[' || lower(*pattern) != *pattern)
			return false;
	return true;
}

bool glob_matches_caseless(const char *pattern, const char *path)
{
	char low_pattern[GLOB_SIZE_MAX + 1], low_path[PATH_MAX + 1];

	/* As it stands first: a set like [A-Z] means something else in lower case. */
	if (!is_low(pattern)) {
		if (glob_match_below(pattern, path) >= 0)
			return true;
		if (!lower_all(low_pattern, sizeof low_pattern, pattern))
			return false;
		pattern = low_pattern;
	}
	return glob_match_below(pattern, lower_all(low_path, sizeof low_path, path) ? low_path : path) >= 0;
}

bool glob_match_caseless(const char *pattern, const char *text)
{
	char low_pattern[GLOB_SIZE_MAX + 1], low_text[TEXT_SIZE_MAX + 1];

	if (glob_match(pattern, text))
		return true;
	return lower_all(low_pattern, sizeof low_pattern, pattern) && lower_all(low_text, sizeof low_text, text) &&
	       glob_match(low_pattern, low_text);
}

bool glob_covers_below(const char *pattern, const char *directory)
{
	bool is_open = str_equal(pattern, "**") || str_has_suffix(pattern, "/**");

	return is_open && glob_match_below(pattern, directory) >= 0;
}

/* The states after path; *ret_is_final: it, or something above it, is matched. */
static uint64_t states_after(const struct compiled *compiled, const char *path, bool *ret_is_final)
{
	uint64_t states = close_states(compiled, 1);

	*ret_is_final = false;
	for (path += *path == '/'; *path;) {
		size_t length = strcspn(path, "/");

		*ret_is_final |= states >> compiled->count & 1;
		states = step(compiled, states, path, length);
		path += length + (path[length] == '/');
	}
	*ret_is_final |= states >> compiled->count & 1;
	return states;
}

bool glob_keeps_below(const char *pattern, const char *from, const char *to)
{
	char low_pattern[GLOB_SIZE_MAX + 1], low_from[PATH_MAX + 1], low_to[PATH_MAX + 1];
	bool is_from_final, is_to_final;
	struct compiled compiled;
	uint64_t before, after;

	if (!lower_all(low_pattern, sizeof low_pattern, pattern) || !lower_all(low_from, sizeof low_from, from) ||
	    !lower_all(low_to, sizeof low_to, to) || !compile(low_pattern, &compiled))
		return false;
	while (compiled.count && compiled.components[compiled.count - 1].is_any)
		compiled.count--;
	before = states_after(&compiled, low_from, &is_from_final);
	after = states_after(&compiled, low_to, &is_to_final);
	return is_to_final || (!is_from_final && !(before & ~after));
}

bool glob_may_match_inside(const char *pattern, const char *directory)
{
	char low_pattern[GLOB_SIZE_MAX + 1], low_directory[TEXT_SIZE_MAX + 1];
	struct compiled compiled;
	bool is_final;

	if (!lower_all(low_pattern, sizeof low_pattern, pattern) ||
	    !lower_all(low_directory, sizeof low_directory, directory))
		return true;
	/* A set such as [A-Z] means something else in lower case. */
	if (strchr(pattern, '[') && compile(pattern, &compiled) && states_after(&compiled, directory, &is_final))
		return true;
	return compile(low_pattern, &compiled) && states_after(&compiled, low_directory, &is_final);
}

/* Long enough to tell ".env" from "key", and so many bits that a path sets few of them. */
enum { ENDING_MAX = 4 };

/* An ending that has one byte more before it. */
static unsigned hash_before(unsigned hash, char before)
{
	return (hash + (unsigned char)lower(before) + 1) * 0x9e3779b1u;
}

static unsigned ending_bit(unsigned hash)
{
	return hash >> 20;
}

_Static_assert(GLOB_ENDING_BITS == 1 << (32 - 20), "the upper bits of a hash are the bit of an ending");

void glob_endings_of(const char *path, struct glob_endings *ret_endings)
{
	const char *start = path;

	memset(ret_endings, 0, sizeof *ret_endings);
	for (;; path++) {
		unsigned hash = 0;

		if (*path && *path != '/')
			continue;
		for (size_t n = 1; n <= ENDING_MAX && path - n >= start && path[-(ptrdiff_t)n] != '/'; n++) {
			hash = hash_before(hash, path[-(ptrdiff_t)n]);
			ret_endings->bits[ending_bit(hash) / 64] |= 1ULL << ending_bit(hash) % 64;
		}
		if (!*path)
			return;
	}
}

unsigned glob_ending(const char *pattern)
{
	const char *end = pattern + strlen(pattern);
	unsigned hash = 0;
	size_t length = 0;

	/* Two stars at the end match the directory before them. */
	while (end - pattern >= 3 && memcmp(end - 3, "/**", 3) == 0)
		end -= 3;
	for (; length < ENDING_MAX && end - length > pattern; length++) {
		char before = end[-(ptrdiff_t)length - 1];

		if (strchr("*?[]\\/", before))
			break;
		hash = hash_before(hash, before);
	}
	return length ? ending_bit(hash) + 1 : 0;
}

bool glob_is_pattern(const char *text)
{
	return text[strcspn(text, "*?[\\")] != 0;
}

static const char *component_problem(const struct component *component)
{
	const char *p = component->text, *end = p + component->length;

	if (component->is_any)
		return NULL;
	while (p < end) {
		if (p[0] == '*' && p + 1 < end && p[1] == '*')
			return "\"**\" must stand alone between slashes";
		if (*p == '[') {
			const char *close = p + 1;

			close += close < end && (*close == '!' || *close == '^');
			close += close < end && *close == ']';
			while (close < end && *close != ']')
				close += *close == '\\' && close + 1 < end ? 2 : 1;
			if (close >= end)
				return "\"[\" without \"]\"";
			p = close;
		} else if (*p == '\\' && ++p >= end) {
			return "a backslash at the end quotes nothing";
		}
		p++;
	}
	return NULL;
}

const char *glob_problem(const char *pattern)
{
	struct compiled compiled;

	if (strlen(pattern) > GLOB_SIZE_MAX || !compile(pattern, &compiled))
		return "the pattern is too long";
	for (unsigned i = 0; i < compiled.count; i++) {
		const char *problem = component_problem(&compiled.components[i]);

		if (problem)
			return problem;
	}
	return NULL;
}
