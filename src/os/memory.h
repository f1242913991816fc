/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory of a process that is going to wait for long (madvise(2)). Allocates nothing and measures nothing.
 * Run by atoll-box.
 */

/*
 * Gives back what only the start of this program needed: stack below the caller's frame, and pages of its own
 * text and constants, which come back from the file when they are used. For static programs of one thread. Costs
 * nothing but these few page faults; what the kernel refuses is left.
 */
void memory_rest(void);
