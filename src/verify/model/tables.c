/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/tables.h"

#include <string.h>

/* Every row begins with its name. */
static const char *name_at(const struct vec *rows, size_t size, size_t at)
{
	return *(const char *const *)((const char *)rows->items + at * size);
}

const void *tables_find(const struct vec *rows, size_t size, const char *name)
{
	size_t low = 0, high = rows->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(name_at(rows, size, middle), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == rows->count || strcmp(name_at(rows, size, low), name) != 0)
		return NULL;
	return (const char *)rows->items + low * size;
}

/* Files have them in order, so a row has hardly ever a way to go. */
void tables_sort(struct vec *rows, size_t size)
{
	char *items = rows->items;

	for (size_t i = 1; i < rows->count; i++) {
		size_t to = i;
		char row[TABLE_ROW_SIZE_MAX];

		while (to > 0 && strcmp(name_at(rows, size, to - 1), name_at(rows, size, i)) > 0)
			to--;
		if (to == i)
			continue;
		memcpy(row, items + i * size, size);
		memmove(items + (to + 1) * size, items + to * size, (i - to) * size);
		memcpy(items + to * size, row, size);
	}
}

bool tables_are_sorted(const struct vec *rows, size_t size, bool is_unique)
{
	for (size_t i = 1; i < rows->count; i++) {
		int order = strcmp(name_at(rows, size, i - 1), name_at(rows, size, i));

		if (order > 0 || (order == 0 && is_unique))
			return false;
	}
	return true;
}
