/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A set of (tree, path) with a number for each: which directories a plan touches, which must stay. A hash table over
 * borrowed strings. Keyed with random bits, because the agent chooses the names and could make them collide.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { PATHS_NONE = UINT32_MAX };

struct paths_entry {
	const char *path;             /* borrowed, not terminated at length; NULL: empty */
	size_t length;
	uint32_t tree, value;
};

struct paths {
	struct paths_entry *entries;  /* owned */
	size_t count, capacity;       /* capacity: a power of two */
	uint64_t key;
};

/* Frees the table; the paths are their owners'. */
void paths_done(struct paths *paths);
#define cleanup_paths __attribute__((cleanup(paths_done)))

/* The number of a path, PATHS_NONE when it is not in the set. */
uint32_t paths_find(const struct paths *paths, uint32_t tree, const char *path, size_t length);

/* Puts a path that is not in the set. -ENOMEM. path must live as long as the set. */
int paths_put(struct paths *paths, uint32_t tree, const char *path, size_t length, uint32_t value) MUST_USE;

/* The length of the directory part of a path: 0 for one without a slash. */
size_t paths_parent(const char *path, size_t length);
