/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ownership in the type: variables that free or close themselves at the end of their scope, and
 * the two moves out of them. A function uses either these or one forward `out:` label, never both.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* An fd that holds nothing. close(-EBADF) is harmless and visible in a trace. */
#define FD_NONE (-EBADF)

static inline void cleanup_fd_(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline void cleanup_free_(void *pointer)
{
	free(*(void **)pointer);
}

#define cleanup_fd __attribute__((cleanup(cleanup_fd_)))
#define cleanup_free __attribute__((cleanup(cleanup_free_)))

/* Moves the fd out of *fd; *fd holds nothing afterwards. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = FD_NONE;
	return taken;
}

/* Closes *fd if it holds one, keeps errno, and leaves FD_NONE behind. */
static inline void close_fd(int *fd)
{
	cleanup_fd_(fd);
	*fd = FD_NONE;
}

#define take_ptr(pointer)                       \
	({                                      \
		__typeof__(pointer) *p_ = &(pointer); \
		__typeof__(pointer) t_ = *p_;   \
		*p_ = NULL;                     \
		t_;                             \
	})

#define MUST_USE __attribute__((warn_unused_result))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))
