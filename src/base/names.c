/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include <string.h>

#include "base/cleanup.h"

enum { NAME_MAX_COMPARED = 64 };

int names_find(const char *const *names, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++)
		if (names[i] && strcmp(names[i], text) == 0)
			return (int)i;
	return -1;
}

const char *names_get(const char *const *names, size_t count, size_t value)
{
	return value < count && names[value] ? names[value] : "?";
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* Levenshtein's distance, two rows at a time; SIZE_MAX for names that are too long to be one of ours. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[2][NAME_MAX_COMPARED + 1];
	size_t a_length = strlen(a), b_length = strlen(b);

	if (a_length > NAME_MAX_COMPARED || b_length > NAME_MAX_COMPARED)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *above = rows[(i - 1) & 1], *row = rows[i & 1];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++)
			row[j] = min3(above[j] + 1, row[j - 1] + 1,
				      above[j - 1] + (a[i - 1] != b[j - 1]));
	}
	return rows[a_length & 1][b_length];
}

const char *names_nearest(const char *const *names, size_t count, const char *text)
{
	size_t best = strlen(text) / 3 + 2;
	const char *nearest = NULL;

	for (size_t i = 0; i < count; i++) {
		size_t distance = names[i] ? edit_distance(names[i], text) : SIZE_MAX;

		if (distance < best) {
			best = distance;
			nearest = names[i];
		}
	}
	return nearest;
}
