/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/record/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

enum { CAPACITY_FIRST = 64 };

void paths_done(struct paths *paths)
{
	free(paths->entries);
	*paths = (struct paths){ 0 };
}

static uint64_t mix(uint64_t hash)
{
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93u;
	return hash ^ hash >> 29;
}

/* FNV-1a from a random start, finished by a multiplication that spreads it. */
static uint64_t hash_of(const struct paths *paths, uint32_t tree, const char *path, size_t length)
{
	uint64_t hash = mix(paths->key ^ tree);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)path[i]) * 0x100000001b3u + (hash >> 47);
	return mix(hash);
}

/* The entry of this path, or the empty one where it belongs. */
static struct paths_entry *find(const struct paths *paths, uint32_t tree, const char *path, size_t length)
{
	for (uint64_t at = hash_of(paths, tree, path, length);; at++) {
		struct paths_entry *entry = &paths->entries[at & (paths->capacity - 1)];

		if (!entry->path || (entry->tree == tree && entry->length == length &&
				     memcmp(entry->path, path, length) == 0))
			return entry;
	}
}

uint32_t paths_find(const struct paths *paths, uint32_t tree, const char *path, size_t length)
{
	const struct paths_entry *entry = paths->capacity ? find(paths, tree, path, length) : NULL;

	return entry && entry->path ? entry->value : PATHS_NONE;
}

static int grow(struct paths *paths)
{
	struct paths bigger = { .capacity = paths->capacity ? paths->capacity * 2 : CAPACITY_FIRST,
				.key = paths->key };

	if (!paths->capacity && random_bytes(&bigger.key, sizeof bigger.key) < 0)
		return -ENOMEM;
	bigger.entries = calloc(bigger.capacity, sizeof *bigger.entries);
	if (!bigger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < paths->capacity; i++) {
		const struct paths_entry *entry = &paths->entries[i];

		if (entry->path)
			*find(&bigger, entry->tree, entry->path, entry->length) = *entry;
	}
	bigger.count = paths->count;
	paths_done(paths);
	*paths = bigger;
	return 0;
}

int paths_put(struct paths *paths, uint32_t tree, const char *path, size_t length, uint32_t value)
{
	int r = paths->count * 2 >= paths->capacity ? grow(paths) : 0;

	if (r < 0)
		return r;
	*find(paths, tree, path, length) = (struct paths_entry){ .path = path, .length = length, .tree = tree,
								 .value = value };
	paths->count++;
	return 0;
}

size_t paths_parent(const char *path, size_t length)
{
	while (length && path[length - 1] != '/')
		length--;
	return length ? length - 1 : 0;
}
