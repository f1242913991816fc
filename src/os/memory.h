/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory of a process that is about to start a sandbox, and then waits for long (madvise(2)). Allocates nothing and
 * measures nothing. Run by atoll and atoll-box.
 */

#include <stddef.h>

/* Takes pages of a mapping in one step (start is a page's): as memory_take_stack(). */
void memory_take(void *start, size_t size_bytes);

/*
 * Takes the stack that a start will use in one step instead of by a fault for each page, 0.8 µs each in a virtual
 * machine. Before Linux 5.14, and where memory is short, nothing happens.
 */
void memory_take_stack(void);

/* Gives back the stack below the caller's frame, which what has happened lately used: one system call. */
void memory_rest_stack(void);

/*
 * Gives back what only the start of this program needed: stack below the caller's frame, pages of memory that was
 * freed, and those of its own text and constants, which come back from the file when they are used. For static programs
 * of one thread. Costs nothing but these few page faults; what the kernel refuses is left.
 */
void memory_rest(void);
