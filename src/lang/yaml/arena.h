/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The memory of one compilation: everything that lang/ makes lives here and is freed together. Bounded,
 * and failure is sticky, so that a run out of memory is checked once at the end.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

enum { ARENA_SIZE_MAX = 256 << 20 };

struct arena_block;

struct arena {
	struct arena_block *blocks;
	size_t size; /* of all blocks */
	bool has_failed;
};

/* Frees all that was allocated in it. */
void arena_done(struct arena *arena);
#define cleanup_arena __attribute__((cleanup(arena_done)))

/* Zeroed and aligned for anything; NULL (sticky) when out of memory or beyond ARENA_SIZE_MAX. */
void *arena_alloc(struct arena *arena, size_t size);

/* A copy; NULL as arena_alloc(). */
char *arena_text(struct arena *arena, const char *text);
char *arena_text_n(struct arena *arena, const void *bytes, size_t size);
char *arena_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A growing array in an arena; items is an array of whatever item_size says. */
struct vec {
	void *items;
	size_t count, capacity;
};

/* A new zeroed item at the end, valid until the next add; NULL as arena_alloc(). */
void *vec_add(struct arena *arena, struct vec *vec, size_t item_size);

/* Adds text (not a copy) to a vector of const char *; NULL adds nothing. */
void vec_add_text(struct arena *arena, struct vec *vec, const char *text);

/* The texts of a vector of const char * with a NULL behind them; NULL for an empty one. */
const char *const *vec_strings(struct arena *arena, const struct vec *vec);
