/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/parse/parser-memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tree_sitter/api.h>

/* In front of what tree-sitter gets. 48 bytes, so that it is aligned for anything. */
struct block {
	struct block *next, *previous;
	size_t size;
	uintptr_t mark; /* of the address: no copy of a block's beginning is one */
	uintptr_t unused[2];
};

static struct block blocks = { .next = &blocks, .previous = &blocks };
static size_t memory_size, memory_max, spent, spent_max, is_over;
static bool is_confused;

static uintptr_t mark_of(const struct block *block)
{
	/* Where this program is in memory is not known to whoever wrote the text. */
	return ((uintptr_t)block ^ (uintptr_t)&blocks) * (uintptr_t)0x9e3779b97f4a7c15u;
}

static void link_block(struct block *block, size_t size)
{
	block->size = size;
	block->mark = mark_of(block);
	block->next = blocks.next;
	block->previous = &blocks;
	block->next->previous = block;
	blocks.next = block;
	memory_size += size;
	if (memory_size > memory_max)
		is_over = 1;
	parser_memory_spend(size);
}

static void unlink_block(struct block *block)
{
	block->previous->next = block->next;
	block->next->previous = block->previous;
	block->mark = 0;
	memory_size -= block->size;
}

static void *mark_block(struct block *block, size_t size)
{
	/* Tree-sitter would go on with NULL. */
	if (!block)
		abort();
	link_block(block, size);
	return block + 1;
}

static void *memory_malloc(size_t size)
{
	return mark_block(size > SIZE_MAX / 2 ? NULL : malloc(sizeof(struct block) + size), size);
}

static void *memory_calloc(size_t count, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(count, size, &all) || all > SIZE_MAX / 2)
		abort();
	return mark_block(calloc(1, sizeof(struct block) + all), all);
}

/* The block of an address, or NULL where it is none. What stands in front of any of its addresses can be
 * read. */
static struct block *block_of(void *memory)
{
	struct block *block = memory ? (struct block *)memory - 1 : NULL;

	if (block && block->mark == mark_of(block))
		return block;
	is_confused |= block != NULL;
	return NULL;
}

static void memory_free(void *memory)
{
	struct block *block = block_of(memory);

	if (!block)
		return;
	unlink_block(block);
	free(block);
}

static void *memory_realloc(void *memory, size_t size)
{
	struct block *block = block_of(memory);

	if (!memory)
		return memory_malloc(size);
	if (!block || size > SIZE_MAX / 2)
		abort();
	unlink_block(block);
	return mark_block(realloc(block, sizeof *block + size), size);
}

void parser_memory_use(size_t max, const size_t **ret_is_over)
{
	if (!memory_max)
		ts_set_allocator(memory_malloc, memory_calloc, memory_realloc, memory_free);
	memory_max = max;
	*ret_is_over = &is_over;
}

void parser_memory_begin(size_t max)
{
	spent = 0;
	spent_max = max;
	is_over = memory_size > memory_max;
}

void parser_memory_spend(size_t bytes)
{
	spent += bytes;
	if (spent > spent_max)
		is_over = 1;
}

size_t parser_memory_spent(void)
{
	return spent;
}

bool parser_memory_is_confused(void)
{
	return is_confused;
}

void parser_memory_drop(void)
{
	while (blocks.next != &blocks) {
		struct block *block = blocks.next;

		unlink_block(block);
		free(block);
	}
	is_confused = false;
	is_over = 0;
}

size_t parser_memory_size(void)
{
	return memory_size;
}
