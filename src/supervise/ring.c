/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/ring.h"

#include <stdlib.h>
#include <string.h>

enum { RING_FIRST = 4 << 10 };

void ring_init(struct ring *ring, struct ring_budget *budget, size_t max)
{
	*ring = (struct ring){ .budget = budget, .max = max };
}

void ring_done(struct ring *ring)
{
	free(ring->bytes);
	ring->budget->used -= ring->capacity;
	ring->bytes = NULL;
	ring->capacity = ring->head = 0;
	ring->from = ring->to;
}

static size_t held(const struct ring *ring)
{
	return (size_t)(ring->to - ring->from);
}

/* How much lies from head on before the memory ends. */
static size_t before_the_end(const struct ring *ring, size_t size)
{
	size_t left = ring->capacity - ring->head;

	return size < left ? size : left;
}

static void grow(struct ring *ring)
{
	size_t capacity = ring->capacity ? 2 * ring->capacity : RING_FIRST;
	size_t more = capacity - ring->capacity, size = held(ring), first = before_the_end(ring, size);
	uint8_t *bytes;

	/* The first piece is everybody's: who is attached loses nothing for others. */
	if (capacity > ring->max || (ring->capacity && ring->budget->used + more > ring->budget->max))
		return;
	bytes = malloc(capacity);
	if (!bytes)
		return;
	if (size) {
		memcpy(bytes, ring->bytes + ring->head, first);
		memcpy(bytes + first, ring->bytes, size - first);
	}
	free(ring->bytes);
	ring->bytes = bytes;
	ring->head = 0;
	ring->capacity = capacity;
	ring->budget->used += more;
}

void *ring_space(struct ring *ring, size_t *ret_size)
{
	size_t size = held(ring), at;

	if (!size)
		ring->head = 0;
	if (size == ring->capacity)
		grow(ring);
	if (!ring->capacity)
		return NULL;
	at = (ring->head + size) % ring->capacity;
	/* Up to the oldest byte, or over it where there is no room. */
	*ret_size = at >= ring->head ? ring->capacity - at : ring->head - at;
	return ring->bytes + at;
}

uint64_t ring_added(struct ring *ring, size_t size)
{
	uint64_t over;

	ring->to += size;
	over = ring->to - ring->from > ring->capacity ? ring->to - ring->from - ring->capacity : 0;
	ring->from += over;
	if (ring->capacity)
		ring->head = (ring->head + (size_t)over) % ring->capacity;
	return over;
}

void ring_pass(struct ring *ring, uint64_t size)
{
	ring->to += size;
	ring->from = ring->to;
	ring->head = 0;
}

size_t ring_at(const struct ring *ring, uint64_t position, const void **ret_bytes)
{
	size_t offset = (size_t)(position - ring->from), left, at;

	if (position < ring->from || position >= ring->to)
		return 0;
	at = (ring->head + offset) % ring->capacity;
	left = held(ring) - offset;
	*ret_bytes = ring->bytes + at;
	return left < ring->capacity - at ? left : ring->capacity - at;
}

void ring_drop(struct ring *ring, uint64_t position)
{
	if (position <= ring->from)
		return;
	if (position >= ring->to) {
		ring->from = ring->to;
		ring->head = 0;
		return;
	}
	ring->head = (ring->head + (size_t)(position - ring->from)) % ring->capacity;
	ring->from = position;
}
