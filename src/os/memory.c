/* SPDX-License-Identifier: Apache-2.0 */
#include "os/memory.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, STACK_TAKEN = 128 << 10, STACK_MAX = 1 << 20, STACK_KEPT = 2 * PAGE, TAKEN_MAX = 16 << 10,
       PIECE = 4 * PAGE };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void memory_take(void *start, size_t size_bytes)
{
	(void)!madvise(start, size_bytes, MADV_POPULATE_WRITE);
}

#ifndef __GLIBC__
/*
 * The first small pieces of memory of musl's malloc are pages of the program itself: to map one and give it back costs
 * some 15 µs in a virtual machine, more than a short command does with it. Free pages stay until memory_rest(). A bit
 * each; a piece may come back on another thread.
 */
enum { OWN_PAGES = 32 };

static _Alignas(PAGE) uint8_t own_pages[OWN_PAGES][PAGE];
static uint32_t own_taken, own_written;

static uint32_t own_bits(size_t first, size_t count)
{
	return ((UINT32_C(1) << count) - 1) << first;
}

static bool own_first_free(uint32_t taken, size_t count, size_t *ret_first)
{
	for (size_t first = 0; first + count <= OWN_PAGES; first++)
		if (!(taken & own_bits(first, count))) {
			*ret_first = first;
			return true;
		}
	return false;
}

/* Zeros, as mmap() has them; NULL: none is left. */
static void *own_take(size_t count)
{
	uint32_t taken = __atomic_load_n(&own_taken, __ATOMIC_ACQUIRE), written;
	size_t first;

	do
		if (!own_first_free(taken, count, &first))
			return NULL;
	while (!__atomic_compare_exchange_n(&own_taken, &taken, taken | own_bits(first, count), false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	written = __atomic_fetch_or(&own_written, own_bits(first, count), __ATOMIC_ACQ_REL);
	for (size_t page = first; page < first + count; page++)
		if (written & own_bits(page, 1))
			memset(own_pages[page], 0, PAGE);
	/* musl reads it before it writes it, which would be two faults. */
	*(volatile uint8_t *)own_pages[first] = 0;
	return own_pages[first];
}

/* What musl's malloc calls for more memory, and to give it back; atoll is linked with --wrap. */
void *__wrap___mmap(void *start, size_t size_bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *start, size_t size_bytes);
int __real_munmap(void *start, size_t size_bytes);

void *__wrap___mmap(void *start, size_t size_bytes, int protection, int flags, int fd, off_t offset)
{
	void *own;

	if (fd < 0 && protection == (PROT_READ | PROT_WRITE) && size_bytes <= TAKEN_MAX) {
		own = own_take((size_bytes + PAGE - 1) / PAGE);
		if (own)
			return own;
		flags |= MAP_POPULATE;
	}
	return mmap(start, size_bytes, protection, flags, fd, offset);
}

int __wrap_munmap(void *start, size_t size_bytes)
{
	size_t offset = (uintptr_t)start - (uintptr_t)own_pages;

	if (offset >= sizeof own_pages)
		return __real_munmap(start, size_bytes);
	__atomic_fetch_and(&own_taken, ~own_bits(offset / PAGE, (size_bytes + PAGE - 1) / PAGE), __ATOMIC_ACQ_REL);
	return 0;
}

static void give_back_own(void)
{
	for (size_t page = 0; page < OWN_PAGES; page++) {
		uint32_t bit = own_bits(page, 1);

		if ((own_written & ~own_taken & bit) && madvise(own_pages[page], PAGE, MADV_DONTNEED) == 0)
			own_written &= ~bit;
	}
}
#else
static void give_back_own(void)
{
}
#endif

void memory_take_stack(void)
{
	char stack[STACK_TAKEN];
	uintptr_t start = ((uintptr_t)stack + PAGE - 1) & ~(uintptr_t)(PAGE - 1);

	/* The kernel lets the stack grow by a touch alone. */
	*(volatile char *)start = 0;
	memory_take((void *)start, STACK_TAKEN - PAGE);
}

static void give_back(uintptr_t start, uintptr_t end)
{
	start = (start + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	end &= ~(uintptr_t)(PAGE - 1);
	/* ENOMEM: the stack has never been that deep; what there is of it has gone all the same. */
	if (start < end && madvise((void *)start, end - start, MADV_DONTNEED) < 0)
		return;
}

/*
 * A fault maps the 16 pages around it as well, as far as they lie in the same mapping (fault_around_bytes): the few
 * functions that an idle box runs would bring most of the program back. So few pages become a mapping of their own,
 * which the kernel keeps apart by what was said about it. Not each page: a mapping takes the kernel some 200 bytes of
 * every box, and the pages of the program are the same for all boxes.
 */
static void divide(uintptr_t start, uintptr_t end)
{
	for (; start < end; start += 2 * (uintptr_t)PIECE) {
		size_t left = end - start;

		if (madvise((void *)start, left < PIECE ? left : PIECE, MADV_RANDOM) < 0)
			return;
	}
}

/* Nothing is relocated as it starts. */
static bool is_static(const struct dl_phdr_info *object)
{
	for (size_t i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return false;
	return true;
}

/*
 * What cannot have been written to: the segments that are read alone and, of a static program, tables of addresses,
 * which a linker puts with the data for those that are relocated.
 */
static int give_back_segments(struct dl_phdr_info *object, size_t size, void *context)
{
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + segment->p_vaddr;
		bool is_read_alone = segment->p_type == PT_LOAD && !(segment->p_flags & PF_W);

		if (!is_read_alone && !(segment->p_type == PT_GNU_RELRO && is_static(object)))
			continue;
		divide((start + PAGE - 1) & ~(uintptr_t)(PAGE - 1), start + segment->p_memsz);
		give_back(start, start + segment->p_memsz);
	}
	return 0;
}

void memory_rest_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	give_back(here - STACK_MAX, here - STACK_KEPT);
}

void memory_rest(void)
{
	memory_rest_stack();
	give_back_own();
	dl_iterate_phdr(give_back_segments, NULL);
}
