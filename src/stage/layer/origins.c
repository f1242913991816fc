/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/layer/origins.h"

#include <string.h>

#include "base/hash.h"

/*
 * The evidence, each as a key in one set:
 *   PATH    a layer has this path, and what it has there was not copied up: the sandbox made it
 *   FILE    a file with this size, mode and mtime, on the host at a path that the sandbox touched, or made by the
 *           sandbox in a layer: a copied-up file keeps all three until somebody changes it
 *   INODE   this inode of a layer also stands at a path that the host has: a hard link
 */
enum evidence { EVIDENCE_PATH, EVIDENCE_FILE, EVIDENCE_INODE };

enum { KEY_SIZE = 16, FIRST_CAPACITY = 1024 };

/* Never all zeros, which is an empty place. */
struct key {
	uint8_t bytes[KEY_SIZE];
};

struct origins {
	struct key *table;    /* open addressing; capacity a power of two, at most half full */
	size_t capacity, count;
};

static struct key make_key(enum evidence evidence, const void *bytes, size_t size)
{
	const struct hash_piece pieces[] = { { &evidence, sizeof evidence }, { bytes, size } };
	struct hash hash;
	struct key key;

	hash_pieces(&hash, pieces, ARRAY_SIZE(pieces));
	memcpy(key.bytes, hash.bytes, sizeof key.bytes);
	key.bytes[KEY_SIZE - 1] |= 1;
	return key;
}

static struct key key_of_path(const char *path)
{
	return make_key(EVIDENCE_PATH, path, strlen(path));
}

static struct key key_of_file(const struct stat *st)
{
	const uint64_t parts[] = {
		(uint64_t)st->st_size, st->st_mode, (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
	};

	return make_key(EVIDENCE_FILE, parts, sizeof parts);
}

static struct key key_of_inode(const struct stat *st)
{
	const uint64_t parts[] = { st->st_dev, st->st_ino };

	return make_key(EVIDENCE_INODE, parts, sizeof parts);
}

/* Its place, or the empty one where it would be. */
static struct key *find(const struct origins *origins, const struct key *key)
{
	size_t at;

	memcpy(&at, key, sizeof at);
	for (;; at++) {
		struct key *found = &origins->table[at & (origins->capacity - 1)];

		if (!found->bytes[KEY_SIZE - 1] || memcmp(found, key, sizeof *key) == 0)
			return found;
	}
}

static bool has(const struct origins *origins, struct key key)
{
	return find(origins, &key)->bytes[KEY_SIZE - 1] != 0;
}

static int grow(struct origins *origins)
{
	struct origins larger = { .capacity = origins->capacity ? 2 * origins->capacity : FIRST_CAPACITY };

	larger.table = calloc(larger.capacity, sizeof *larger.table);
	if (!larger.table)
		return -ENOMEM;
	for (size_t i = 0; i < origins->capacity; i++)
		if (origins->table[i].bytes[KEY_SIZE - 1])
			*find(&larger, &origins->table[i]) = origins->table[i];
	free(origins->table);
	origins->table = larger.table;
	origins->capacity = larger.capacity;
	return 0;
}

static int add(struct origins *origins, struct key key)
{
	struct key *place;

	if (2 * (origins->count + 1) > origins->capacity) {
		int r = grow(origins);

		if (r < 0)
			return r;
	}
	place = find(origins, &key);
	origins->count += !place->bytes[KEY_SIZE - 1];
	*place = key;
	return 0;
}

static int note(void *context, const struct stage_entry *entry)
{
	struct origins *origins = context;
	bool is_staged = entry->kind == STAGE_ENTRY_FILE || entry->kind == STAGE_ENTRY_DIRECTORY;
	bool is_file = is_staged && S_ISREG(entry->staged.st_mode);
	int r = 0;

	if (entry->host_exists && S_ISREG(entry->host.st_mode))
		r = add(origins, key_of_file(&entry->host));
	if (r == 0 && is_staged && !entry->marks.is_copied_up)
		r = add(origins, key_of_path(entry->path));
	if (r == 0 && is_file && !entry->marks.is_copied_up)
		r = add(origins, key_of_file(&entry->staged));
	if (r == 0 && is_file && entry->staged.st_nlink > 1 && entry->host_exists)
		r = add(origins, key_of_inode(&entry->staged));
	return r;
}

int origins_load(struct origins **ret_origins, const struct stage_stack *stack)
{
	struct origins *origins = calloc(1, sizeof *origins);
	struct stage_visitor visitor = { .enter = note, .context = origins };
	int r = origins ? grow(origins) : -ENOMEM;

	/* Each layer by itself: what one hides in another is evidence all the same. */
	for (size_t i = 0; r == 0 && i < stack->count; i++) {
		struct stage_stack one = STAGE_STACK_NONE;

		one.layers[0] = stack->layers[i];
		one.count = 1;
		one.host_fd = stack->host_fd;
		r = stage_walk(&one, &visitor);
	}
	if (r < 0) {
		origins_free(origins);
		return r;
	}
	*ret_origins = origins;
	return 0;
}

void origins_free(struct origins *origins)
{
	if (origins)
		free(origins->table);
	free(origins);
}

bool origins_explain(const struct origins *origins, const struct stage_entry *entry)
{
	return has(origins, key_of_path(entry->path)) ||
	       (S_ISREG(entry->staged.st_mode) &&
		(has(origins, key_of_file(&entry->staged)) || has(origins, key_of_inode(&entry->staged))));
}
