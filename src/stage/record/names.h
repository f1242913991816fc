/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The names of one directory as several layers have them, sorted, each with the layers that it came from. Bounded,
 * because the sandbox decides how many there are. Within stage/ only.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct stage_name {
	uint32_t offset;     /* into text */
	uint32_t source:31;  /* as given to stage_names_read() */
	uint32_t is_whiteout:1; /* the name stood behind the prefix that says so */
};

struct stage_names {
	struct stage_name *items;
	size_t count, capacity;
	char *text;          /* names with their '\0' */
	size_t size, text_capacity;
};

/* Frees the names: what stage_names_get() gave ends with it. */
void stage_names_done(struct stage_names *names);

/*
 * Adds all names of an open directory, read from its start. A name with the prefix (NULL: none) counts as a whiteout
 * of what follows it, and the name `ignored` not at all.
 */
struct stage_names_source {
	int dir_fd;
	uint32_t source;
	const char *prefix, *ignored;
};
/* 0; -E2BIG: beyond max names in all, with those of other sources; -ENOMEM, -errno. What was read until then stays. */
int stage_names_read(struct stage_names *names, const struct stage_names_source *from, size_t max) MUST_USE;

/* Sorts by the bytes of the names, equal ones by source. Gives back what memory is not needed. */
void stage_names_sort(struct stage_names *names);

static inline const char *stage_names_get(const struct stage_names *names, size_t i)
{
	return names->text + names->items[i].offset;
}
