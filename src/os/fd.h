/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * File descriptors: opening, whole reads and writes, sealed memfds, passing over sockets.
 * Every descriptor made here is close-on-exec. Negative errno on failure throughout.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* openat(2) with O_CLOEXEC | O_NOCTTY added, restarted on EINTR. An fd owned by the caller, or -errno. */
int fd_open_at(int dir_fd, const char *path, int flags, mode_t mode) MUST_USE;

/* The whole of the fd or size bytes of it; -ENODATA where it ends early. */
int fd_read_full(int fd, void *bytes, size_t size) MUST_USE;
int fd_write_full(int fd, const void *bytes, size_t size) MUST_USE;

/*
 * The next `size` bytes of the fd (st_size of a file that the caller has looked at), NUL-terminated behind the end.
 * -EFBIG beyond max or where size is negative; -ENODATA where it ends early. Freed with free().
 */
int fd_read_sized(int fd, off_t size, size_t max, char **ret_bytes, size_t *ret_size) MUST_USE;

/* The file at (dir_fd, path) whole, NUL-terminated behind the end; -EFBIG beyond max bytes. Freed with free(). */
int fd_read_file_at(int dir_fd, const char *path, size_t max, char **ret_bytes, size_t *ret_size) MUST_USE;

/* The same of a place where somebody else may have put a FIFO or a device: -ENXIO, and nobody waits for it. */
int fd_read_regular_at(int dir_fd, const char *path, size_t max, char **ret_bytes, size_t *ret_size) MUST_USE;

/* Writes text to an existing file (O_WRONLY, one write(2)): /proc and cgroup files. */
int fd_write_file_at(int dir_fd, const char *path, const char *text) MUST_USE;

/* Writes bytes to path.tmp.<random> beside path, then renames: readers see all or nothing. Mode as given. */
int fd_replace_file_at(int dir_fd, const char *path, const void *bytes, size_t size, mode_t mode) MUST_USE;

/* An empty memfd; and the end of all changes to it: write, grow, shrink, further seals. memfd_create(2) */
int fd_memfd_new(const char *name) MUST_USE;
int fd_memfd_seal(int fd) MUST_USE;

/* A memfd with this content, sealed against write, grow, shrink and further seals. memfd_create(2). */
int fd_memfd_sealed(const char *name, const void *bytes, size_t size) MUST_USE;

/* O_NONBLOCK of the open file, which whoever shares it has too; FD_CLOEXEC of this number alone. 0 or -errno. */
int fd_set_nonblocking(int fd, bool on) MUST_USE;
int fd_set_cloexec(int fd, bool on) MUST_USE;

/* Moves fd to a number >= minimum (F_DUPFD_CLOEXEC). The new number, or -errno; the old one is closed in any case. */
int fd_move_above(int fd, int minimum) MUST_USE;

/* A close-on-exec copy of fd, numbered 3 or above; owned by the caller. */
int fd_duplicate(int fd) MUST_USE;

enum { FD_KEPT_MAX = 8 };

/*
 * Closes every descriptor but these, at most FD_KEPT_MAX. For a child of the box: of the box's descriptors some tell
 * others by their end that the box is gone (build/guardian.c). 0 or -errno.
 */
int fd_keep_only(const int *fds, size_t count) MUST_USE;

/* Points 0, 1, 2 at /dev/null where they are closed, so that later opens never land there. */
int fd_secure_standard(void) MUST_USE;

/* Whether both name the same open file description or the same file. */
bool fd_is_same_file(int a, int b);

enum { FD_PASS_MAX = 16 };

/*
 * One SOCK_SEQPACKET or SOCK_DGRAM message with up to FD_PASS_MAX descriptors (SCM_RIGHTS).
 * Receiving: bytes beyond size or more fds than fd_max close everything received and give -EMSGSIZE,
 * as does a table of descriptors that is full (MSG_CTRUNC); bytes are filled all the same.
 * fds received are close-on-exec and owned by the caller. Returns the number of bytes (0: peer closed).
 */
ssize_t fd_send_message(int socket_fd, const void *bytes, size_t size, const int *fds, size_t fd_count) MUST_USE;
ssize_t fd_receive_message(int socket_fd, void *bytes, size_t size, int *fds, size_t fd_max,
			   size_t *ret_fd_count) MUST_USE;

/* The uid, gid and pid of the peer of a connected unix socket (SO_PEERCRED). */
int fd_peer_credentials(int socket_fd, uid_t *ret_uid, gid_t *ret_gid, pid_t *ret_pid) MUST_USE;

/* flock(2) with LOCK_SH or LOCK_EX, tried again for up to patience_ms. -EBUSY: somebody else held it all the while. */
int fd_lock_within(int fd, int operation, unsigned patience_ms) MUST_USE;
