/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/origins.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "base/hash.h"
#include "base/str.h"
#include "stage/walk.h"

/*
 * A chain of layers makes a chain of origins: what lies in the live upper may have been copied from a sealed layer, and
 * that from the host. Each inode of a layer is therefore kept with its own origin, and the question is answered by
 * following them.
 */

enum {
	KEY_SIZE = 16,
	HANDLE_MAX = 128,           /* MAX_HANDLE_SZ */
	ORIGIN_HEADER = 21,         /* struct ovl_fb of fs/overlayfs: version, magic, length, flags, type, uuid */
	ORIGIN_TYPE_AT = 4,
	ORIGIN_MAX = ORIGIN_HEADER + HANDLE_MAX,
	CHAIN_MAX = STAGE_STACK_MAX,
	LINK_SIZE = 32 + 256,
};

/* The hash of type and bytes of a file handle; zeros: none. */
struct key {
	uint8_t bytes[KEY_SIZE];
};

struct known {
	struct key key, origin;     /* origin: zeros where the file was made in the sandbox or is the host's */
};

struct origins {
	struct known *table;        /* open addressing; a power of two, at most half full */
	size_t capacity, count;
};

/* What name_to_handle_at(2) fills; declared here, for the C libraries differ in whether they have it. */
struct handle {
	uint32_t size;
	int32_t type;
	uint8_t bytes[HANDLE_MAX];
};

static struct key make_key(uint8_t type, const void *bytes, size_t size)
{
	const struct hash_piece pieces[] = { { &type, 1 }, { bytes, size } };
	struct hash hash;
	struct key key;

	hash_pieces(&hash, pieces, ARRAY_SIZE(pieces));
	memcpy(key.bytes, hash.bytes, sizeof key.bytes);
	return key;
}

static bool key_is_none(const struct key *key)
{
	return memcmp(key, &(struct key){ { 0 } }, sizeof *key) == 0;
}

static bool key_of_file(int dir_fd, const char *name, struct key *ret_key)
{
	struct handle handle = { .size = HANDLE_MAX };
	int mount_id;

	if (syscall(SYS_name_to_handle_at, dir_fd, name, &handle, &mount_id, 0) < 0 || handle.size > HANDLE_MAX)
		return false;
	*ret_key = make_key((uint8_t)handle.type, handle.bytes, handle.size);
	return true;
}

/* What the file says that it was copied from. false: nothing, or a file system without handles. */
static bool key_of_origin(int dir_fd, const char *name, struct key *ret_key)
{
	uint8_t origin[ORIGIN_MAX];
	char path[LINK_SIZE];
	ssize_t size;

	if (str_format(path, sizeof path, "/proc/self/fd/%d/%s", dir_fd, name) < 0)
		return false;
	size = lgetxattr(path, "user.overlay.origin", origin, sizeof origin);
	if (size <= ORIGIN_HEADER)
		return false;
	*ret_key = make_key(origin[ORIGIN_TYPE_AT], origin + ORIGIN_HEADER, (size_t)size - ORIGIN_HEADER);
	return true;
}

static struct known *find(const struct origins *origins, const struct key *key)
{
	size_t at;

	memcpy(&at, key, sizeof at);
	for (;; at++) {
		struct known *known = &origins->table[at & (origins->capacity - 1)];

		if (key_is_none(&known->key) || memcmp(&known->key, key, sizeof *key) == 0)
			return known;
	}
}

static int grow(struct origins *origins)
{
	struct origins larger = { .capacity = origins->capacity ? 2 * origins->capacity : 1024 };

	larger.table = calloc(larger.capacity, sizeof *larger.table);
	if (!larger.table)
		return -ENOMEM;
	for (size_t i = 0; i < origins->capacity; i++)
		if (!key_is_none(&origins->table[i].key))
			*find(&larger, &origins->table[i].key) = origins->table[i];
	free(origins->table);
	origins->table = larger.table;
	origins->capacity = larger.capacity;
	return 0;
}

/* in_layer: whether the file may say where it came from; what a host's file says means nothing here. */
static int add(struct origins *origins, int dir_fd, const char *name, bool in_layer)
{
	struct known known = { 0 }, *slot;

	if (!key_of_file(dir_fd, name, &known.key))
		return 0;
	if (!in_layer || !key_of_origin(dir_fd, name, &known.origin))
		known.origin = (struct key){ { 0 } };
	if (2 * (origins->count + 1) > origins->capacity) {
		int r = grow(origins);

		if (r < 0)
			return r;
	}
	slot = find(origins, &known.key);
	origins->count += key_is_none(&slot->key);
	*slot = known;
	return 0;
}

static int note(void *context, const struct stage_entry *entry)
{
	struct origins *origins = context;
	int r = 0;

	if (entry->host_exists && S_ISREG(entry->host.st_mode) && entry->host_dir_fd >= 0)
		r = add(origins, entry->host_dir_fd, entry->name, false);
	if (r == 0 && entry->kind == STAGE_ENTRY_FILE && S_ISREG(entry->staged.st_mode))
		r = add(origins, entry->layer_dir_fd, entry->name, true);
	return r;
}

int origins_load(struct origins **ret_origins, const struct stage_stack *stack)
{
	struct origins *origins = calloc(1, sizeof *origins);
	struct stage_visitor visitor = { .enter = note, .context = origins };
	int r = origins ? grow(origins) : -ENOMEM;

	/* Each layer by itself: what one hides in another is somebody's origin all the same. */
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

bool origins_is_known(const struct origins *origins, int dir_fd, const char *name)
{
	struct key key;

	if (!key_of_origin(dir_fd, name, &key))
		return false;
	for (int i = 0; i < CHAIN_MAX; i++) {
		const struct known *known = find(origins, &key);

		if (key_is_none(&known->key))
			return false;
		if (key_is_none(&known->origin))
			return true;
		key = known->origin;
	}
	return false;
}
