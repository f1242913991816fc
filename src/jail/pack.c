/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. The child begins before its mounts are planned, in a copy of the parent's memory; so the plan
 * comes through memory that both share, at the same address in both: pointers into it mean the same. Once the child is
 * told to go on, the parent does not touch it any more.
 */
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "jail/job.h"

struct arena {
	unsigned char *next, *end;
	bool is_full;
};

static void *arena_reserve(struct arena *arena, size_t size)
{
	size_t room = (size_t)(arena->end - arena->next), padded = (size + alignof(max_align_t) - 1) &
								   ~(alignof(max_align_t) - 1);
	void *memory = arena->next;

	if (padded < size || padded > room) {
		arena->is_full = true;
		return NULL;
	}
	arena->next += padded;
	return memory;
}

static const void *pack_bytes(struct arena *arena, const void *bytes, size_t size)
{
	void *copy = bytes ? arena_reserve(arena, size) : NULL;

	return copy ? memcpy(copy, bytes, size) : NULL;
}

static const char *pack_text(struct arena *arena, const char *text)
{
	return pack_bytes(arena, text, text ? strlen(text) + 1 : 0);
}

static const struct jail_layers *pack_layers(struct arena *arena, const struct jail_layers *layers)
{
	struct jail_layers *copy = layers ? arena_reserve(arena, sizeof *copy) : NULL;
	const char **between = copy ? arena_reserve(arena, layers->count * sizeof *between) : NULL;

	if (!between)
		return NULL;
	for (size_t i = 0; i < layers->count; i++)
		between[i] = pack_text(arena, layers->between[i]);
	*copy = (struct jail_layers){
		.live = pack_text(arena, layers->live), .between = between, .count = layers->count,
		.hidden = pack_text(arena, layers->hidden),
	};
	return copy;
}

/* Certificates lie in many places, and there are hundreds of KiB of them: once is enough. */
static const void *pack_content(struct arena *arena, const struct jail_mount *mounts, const struct jail_mount *copies,
				size_t index)
{
	enum { LARGE = 16 << 10 };
	const struct jail_mount *mount = &mounts[index];

	for (size_t i = 0; mount->content_size >= LARGE && i < index; i++)
		if (mounts[i].content == mount->content && mounts[i].content_size == mount->content_size)
			return copies[i].content;
	return pack_bytes(arena, mount->content, mount->content_size);
}

int mounts_pack(const struct jail_mount *mounts, size_t count, void *memory, size_t size_bytes,
		const struct jail_mount **ret_mounts)
{
	struct arena arena = { .next = memory, .end = (unsigned char *)memory + size_bytes };
	struct jail_mount *copies = arena_reserve(&arena, count * sizeof *copies);

	for (size_t i = 0; copies && i < count; i++) {
		copies[i] = mounts[i];
		copies[i].target = pack_text(&arena, mounts[i].target);
		copies[i].source = pack_text(&arena, mounts[i].source);
		copies[i].layers = pack_layers(&arena, mounts[i].layers);
		copies[i].content = pack_content(&arena, mounts, copies, i);
		copies[i].rule = pack_text(&arena, mounts[i].rule);
	}
	if (arena.is_full)
		return -E2BIG;
	*ret_mounts = copies;
	return 0;
}
