/* SPDX-License-Identifier: Apache-2.0 */
#include "http/readings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/url-path.h"

/*
 * All states that the steps lead to from the path, each once. Most paths have one: no step changes them. A path that
 * has more than this, or longer ones, is no path of a program that means well; the bounds are what a request may cost.
 */
enum { STATES_MAX = 96, STATES_BYTES_MAX = 96 << 10, FLATTEN_ROUNDS_MAX = 8, CLIMBS_MAX = 1 << 30 };

struct states {
	char *texts[STATES_MAX]; /* owned */
	size_t count, bytes;
	bool is_over;            /* there are more */
	bool is_wild;            /* some have a control character: where the path ends, nobody knows */
};

static bool decode_dot(char *path)
{
	return url_path_decode(path, URL_DOT);
}

static bool decode_slash(char *path)
{
	return url_path_decode(path, URL_SLASH);
}

static bool decode_backslash(char *path)
{
	return url_path_decode(path, URL_BACKSLASH);
}

static bool decode_semicolon(char *path)
{
	return url_path_decode(path, URL_SEMICOLON);
}

static bool decode_end(char *path)
{
	return url_path_decode(path, URL_END);
}

static bool decode_delimiter(char *path)
{
	return url_path_decode(path, URL_DELIMITER);
}

static bool decode_percent(char *path)
{
	return url_path_decode(path, URL_PERCENT);
}

static bool cut_parameters(char *path)
{
	return url_path_cut(path, ";");
}

static bool cut_query(char *path)
{
	return url_path_cut(path, "?");
}

static bool cut_fragment(char *path)
{
	return url_path_cut(path, "#");
}

/* A decoder that undoes escapes of some kinds in one pass is the same as one for each kind, that of % last. */
static bool (*const steps[])(char *path) = {
	decode_dot,
	decode_slash,
	decode_backslash,
	decode_semicolon,
	decode_end,
	decode_delimiter,
	decode_percent,
	url_path_decode_u,
	url_path_fold_compatible,
	url_path_fold_similar,
	url_path_fold_overlong,
	url_path_turn_backslashes,
	url_path_drop_parameters,
	url_path_drop_first_parameters,
	url_path_drop_last_parameter,
	cut_parameters,
	cut_query,
	cut_fragment,
	url_path_merge_slashes,
	url_path_merge_first_slashes,
	url_path_merge_later_slashes,
	url_path_remove_dots,
	url_path_remove_later_dots,
	url_path_drop_authority,
	url_path_drop_far_authority,
	url_path_trim,
	url_path_trim_end,
};

static bool has_control(const char *path)
{
	for (; *path; path++) {
		int byte = url_escape_at(path);

		if (byte < 0)
			byte = (unsigned char)*path;
		if (url_class_of(byte) == URL_CONTROL)
			return true;
	}
	return false;
}

static bool has_state(const struct states *states, const char *path)
{
	for (size_t i = 0; i < states->count; i++)
		if (str_equal(states->texts[i], path))
			return true;
	return false;
}

/* path is changed: free escapes in it are undone, which are the same to everybody. */
static int add_state(struct states *states, char *path)
{
	size_t size;

	(void)url_path_decode(path, URL_FREE);
	if (has_state(states, path))
		return 0;
	size = strlen(path) + 1;
	if (states->count == STATES_MAX || (states->count && states->bytes + size > STATES_BYTES_MAX)) {
		states->is_over = true;
		return 0;
	}
	states->texts[states->count] = str_dup(path);
	if (!states->texts[states->count])
		return -ENOMEM;
	states->count++;
	states->bytes += size;
	states->is_wild = states->is_wild || has_control(path);
	return 0;
}

/* Everything that hides a slash or a dot is gone: no step finds another one. False: it goes on for too long. */
static bool flatten(char *text)
{
	for (int round = 0; round < FLATTEN_ROUNDS_MAX; round++) {
		bool is_changed = url_path_decode(text, URL_ALL);

		is_changed = url_path_decode_u(text) || is_changed;
		is_changed = url_path_fold_compatible(text) || is_changed;
		is_changed = url_path_fold_similar(text) || is_changed;
		is_changed = url_path_fold_overlong(text) || is_changed;
		is_changed = url_path_turn_backslashes(text) || is_changed;
		if (!is_changed)
			return true;
	}
	return false;
}

/*
 * Who resolves dot segments before he takes the query off leaves the last one of the path alone, which ends at the ?:
 * the path with that.
 */
static int add_before_query(struct states *states, const char *path)
{
	cleanup_free char *flat = str_dup(path), *whole = str_printf("%s?", path);
	const char *last;

	if (!flat || !whole)
		return -ENOMEM;
	last = flatten(flat) ? strrchr(flat, '/') : NULL;
	return str_equal(last, "/.") || str_equal(last, "/..") ? add_state(states, whole) : 0;
}

static int find_states(const char *path, struct states *states)
{
	size_t size = strlen(path) + 2;
	cleanup_free char *next = str_printf("%s?", path);
	int r = next ? str_copy(next, size, path) : -ENOMEM;

	if (r == 0)
		r = add_state(states, next);
	if (r == 0)
		r = add_before_query(states, states->texts[0]);
	for (size_t i = 0; r == 0 && i < states->count && !states->is_over; i++)
		for (size_t s = 0; r == 0 && s < ARRAY_SIZE(steps); s++) {
			/* No step makes a text longer. */
			r = str_copy(next, size, states->texts[i]);
			if (r == 0 && steps[s](next))
				r = add_state(states, next);
		}
	return r;
}

static void free_states(struct states *states)
{
	for (size_t i = 0; i < states->count; i++)
		free(states->texts[i]);
}

/* Dots that are escaped are the same in a rule: they were a state of their own for what removes dot segments. */
static bool add_reading(struct readings *readings, char **state)
{
	(void)url_path_decode(*state, URL_DOT);
	for (size_t i = 0; i < readings->count; i++)
		if (str_equal(readings->texts[i], *state))
			return true;
	if (readings->count == READINGS_MAX)
		return false;
	readings->texts[readings->count++] = *state;
	*state = NULL;
	return true;
}

/* ---- Where not all readings can be told. ---- */

static void drop_controls(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (url_class_of((unsigned char)*text) != URL_CONTROL)
			*to++ = *text;
	*to = 0;
}

/* Uses text up. */
static uint32_t count_climbs(char *text)
{
	uint32_t climbs = 0;

	if (!flatten(text))
		return CLIMBS_MAX;
	drop_controls(text);
	for (const char *at = strstr(text, "/.."); at; at = strstr(at + 1, "/.."))
		climbs += strchr("/;?#% ", at[3]) != NULL;
	return climbs;
}

uint32_t readings_climbs_of(const char *query)
{
	cleanup_free char *text = str_dup(query);

	return text ? count_climbs(text) : CLIMBS_MAX;
}

/* The length of the first segment of path, with its slash, where it is the same to everybody; 0: it is not. */
static size_t plain_segment(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~!$&'()*+,=:@.";
	size_t length = strspn(path + 1, plain);

	return length && path[length] != '.' && path[length + 1] == '/' ? length + 1 : 0;
}

/* Ends path where a reading may differ from another. */
static int keep_certain(char *path, uint32_t query_climbs)
{
	size_t kept = 0, segments = 0, size;
	uint32_t climbs;
	cleanup_free char *rest = NULL;

	while ((size = plain_segment(path + kept)) > 0) {
		kept += size;
		segments++;
	}
	rest = str_dup(path + kept);
	if (!rest)
		return -ENOMEM;
	climbs = count_climbs(rest);
	/* The segment that the query begins in is left first. */
	if (!climbs && query_climbs && url_class_of((unsigned char)path[kept + 1]) == URL_FREE)
		query_climbs--;
	climbs += query_climbs;
	for (; segments && climbs; segments--, climbs--)
		while (path[--kept] != '/')
			;
	path[kept ? kept : 1] = 0;
	return 0;
}

static int find_certain(const char *path, uint32_t query_climbs, bool is_wild, struct readings *readings)
{
	readings->certain = str_dup(is_wild ? "/" : path);
	if (!readings->certain)
		return -ENOMEM;
	return is_wild ? 0 : keep_certain(readings->certain, query_climbs);
}

int readings_make(const char *path, uint32_t query_climbs, struct readings *ret_readings)
{
	struct readings readings = { .count = 0 };
	struct states states = { .count = 0 };
	int r = find_states(path, &states);
	bool is_whole = r == 0 && !states.is_over && !states.is_wild && !query_climbs;

	for (size_t i = 0; r == 0 && i < states.count; i++)
		is_whole = add_reading(&readings, &states.texts[i]) && is_whole;
	if (r == 0 && !is_whole)
		r = find_certain(readings.texts[0], query_climbs, states.is_wild, &readings);
	free_states(&states);
	if (r < 0)
		readings_done(&readings);
	else
		*ret_readings = readings;
	return r;
}

void readings_done(struct readings *readings)
{
	for (size_t i = 0; i < readings->count; i++)
		free(readings->texts[i]);
	free(readings->certain);
	*readings = (struct readings){ .count = 0 };
}
