/* SPDX-License-Identifier: Apache-2.0 */
#include "os/memory.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 4096, STACK_TAKEN = 128 << 10, STACK_MAX = 1 << 20, STACK_KEPT = 2 * PAGE, TAKEN_MAX = 16 << 10 };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void memory_take(void *start, size_t size_bytes)
{
	(void)!madvise(start, size_bytes, MADV_POPULATE_WRITE);
}

#ifndef __GLIBC__
/*
 * What musl's malloc calls for more memory; atoll is linked with --wrap. It reads each page before it writes it, which
 * is two faults, and the second makes every processor forget the first: 0.01 ms for each page of a start whose helpers
 * share this memory.
 */
void *__wrap___mmap(void *start, size_t size_bytes, int protection, int flags, int fd, off_t offset);

void *__wrap___mmap(void *start, size_t size_bytes, int protection, int flags, int fd, off_t offset)
{
	if (fd < 0 && protection == (PROT_READ | PROT_WRITE) && size_bytes <= TAKEN_MAX)
		flags |= MAP_POPULATE;
	return mmap(start, size_bytes, protection, flags, fd, offset);
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
 * functions that an idle box runs would bring most of the program back. So each page becomes a mapping of its own,
 * which the kernel keeps apart by what was said about it; that takes it some 200 bytes for each.
 */
static void divide(uintptr_t start, uintptr_t end)
{
	for (; start < end; start += (uintptr_t)2 * PAGE)
		if (madvise((void *)start, PAGE, MADV_RANDOM) < 0)
			return;
}

/* The segments that cannot have been written to: the program's own, which is linked statically. */
static int give_back_segments(struct dl_phdr_info *object, size_t size, void *context)
{
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
			continue;
		divide(start & ~(uintptr_t)(PAGE - 1), start + segment->p_memsz);
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
	dl_iterate_phdr(give_back_segments, NULL);
}
