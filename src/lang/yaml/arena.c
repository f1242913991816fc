/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/yaml/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_SIZE = 64 << 10 };

struct arena_block {
	struct arena_block *next;
	size_t used, capacity;
	_Alignas(16) uint8_t bytes[];
};

void arena_done(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
	*arena = (struct arena){ 0 };
}

static struct arena_block *add_block(struct arena *arena, size_t size)
{
	size_t capacity = size > BLOCK_SIZE ? size : BLOCK_SIZE;
	struct arena_block *block = NULL;

	if (!arena->has_failed && capacity <= ARENA_SIZE_MAX - arena->size)
		block = calloc(1, sizeof *block + capacity);
	if (!block) {
		arena->has_failed = true;
		return NULL;
	}
	block->capacity = capacity;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->size += capacity;
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_block *block = arena->blocks;
	void *at;

	if (size > ARENA_SIZE_MAX) {
		arena->has_failed = true;
		return NULL;
	}
	size = (size + 15) & ~(size_t)15;
	if (!block || size > block->capacity - block->used)
		block = add_block(arena, size);
	if (!block)
		return NULL;
	at = block->bytes + block->used;
	block->used += size;
	return at;
}

char *arena_text_n(struct arena *arena, const void *bytes, size_t size)
{
	char *copy = arena_alloc(arena, size + 1);

	if (copy)
		memcpy(copy, bytes, size);
	return copy;
}

char *arena_text(struct arena *arena, const char *text)
{
	return arena_text_n(arena, text, strlen(text));
}

char *arena_format(struct arena *arena, const char *format, ...)
{
	va_list args;
	int length;
	char *text;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	text = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
	if (!text)
		return NULL;
	va_start(args, format);
	vsnprintf(text, (size_t)length + 1, format, args);
	va_end(args);
	return text;
}

void *vec_add(struct arena *arena, struct vec *vec, size_t item_size)
{
	if (vec->count == vec->capacity) {
		size_t capacity = vec->capacity ? vec->capacity * 2 : 8;
		void *items = arena_alloc(arena, capacity * item_size);

		if (!items)
			return NULL;
		if (vec->count)
			memcpy(items, vec->items, vec->count * item_size);
		vec->items = items;
		vec->capacity = capacity;
	}
	return (uint8_t *)vec->items + vec->count++ * item_size;
}

void vec_add_text(struct arena *arena, struct vec *vec, const char *text)
{
	const char **item = text ? vec_add(arena, vec, sizeof *item) : NULL;

	if (item)
		*item = text;
}

const char *const *vec_strings(struct arena *arena, const struct vec *vec)
{
	const char **strings;

	if (!vec->count)
		return NULL;
	strings = arena_alloc(arena, (vec->count + 1) * sizeof *strings);
	if (strings)
		memcpy(strings, vec->items, vec->count * sizeof *strings);
	return strings;
}
