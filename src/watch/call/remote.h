/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bounded reads from the memory of a process that waits in a notification: strings, pointers, bytes.
 * What is read can change under us at any time; it is good for a record, never for a decision.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum { REMOTE_PAGE_SIZE = 4096, REMOTE_PAGES = 4 };

struct remote {
	pid_t pid;
	int memory_fd;                          /* /proc/PID/mem, where process_vm_readv is not to be had */
	uint64_t pages[REMOTE_PAGES];           /* addresses of what is in bytes; 1: nothing */
	uint8_t bytes[REMOTE_PAGES][REMOTE_PAGE_SIZE];
};

/* Forgets what was read from another process. Ended by remote_end(). */
void remote_begin(struct remote *remote, pid_t pid);
void remote_end(struct remote *remote);

/* size bytes at address. -EFAULT where nothing is mapped; -EPERM, -ESRCH … where we cannot look. */
int remote_read(struct remote *remote, uint64_t address, void *bytes, size_t size) MUST_USE;

/*
 * The string at address, cut to size - 1 bytes, NUL-terminated in out. The length, or -errno as above; when the
 * string runs into unmapped memory that is -EFAULT, as it would be for the kernel.
 */
ssize_t remote_read_string(struct remote *remote, uint64_t address, char *out, size_t size) MUST_USE;

/* Whether the thread has caught a signal that its handler waits to see: then its call ends with EINTR. */
bool remote_is_interrupted(pid_t pid);
