/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a mediated file call needs of its caller, taken by the caller's pid: its directories, its umask, what it is
 * called inside. Each of these means something only once the notification was found valid afterwards. Runs in
 * atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/call/events.h"

enum { FILE_QUIET_MAX = 512 };

/* The sandbox as all callers share it. */
struct file_view {
	int root_fd;                 /* borrowed: O_PATH of the root of init, which is everybody's */
	int self_fd;                 /* owned: O_PATH of our own /proc/self/fd, by which files are opened again */
	pid_t init_pid;
	bool has_own_roots;          /* programs may chroot(2) and have mount namespaces of their own */
	uid_t uid;                   /* the sandbox's, as seen from here */
	gid_t gid;
	uid_t uid_inside;
	gid_t gid_inside;
	dev_t memory_device;         /* of the kernel's own mount that memory files lie on; 0: not known */
	uint64_t *mounts;            /* owned: ids of init's mounts, ascending, as last read */
	size_t mount_count;
	int status_fd;               /* owned: /proc/PID/status of status_pid, the caller that was asked for last */
	pid_t status_pid;
	uint64_t quiet[FILE_QUIET_MAX]; /* hashes of paths: see file_view_add_quiet() */
};

/* -errno where the sandbox's root cannot be opened. */
int file_view_init(struct file_view *view, const struct watch_options *options) MUST_USE;
void file_view_done(struct file_view *view);

/* Whether fd lies on a mount of the sandbox (of this caller, with mounts of its own); not where nobody can say. */
bool file_view_has(struct file_view *view, pid_t pid, int fd);

/*
 * path, absolute and without a link, led to fd, a regular file that was given to a caller. Where its mount is read-only
 * inside, path most likely leads to one again, and to open that for reading does nothing but open it. A guess, by which
 * nothing but time is won; who opens looks at what it is.
 */
void file_view_add_quiet(struct file_view *view, const char *path, int fd);
bool file_view_has_quiet(const struct file_view *view, const char *path);

/* Whether it is a memory file (memfd_create(2)), which lies on no mount that anybody has. */
bool file_view_is_memory(const struct file_view *view, int fd);

struct file_caller {
	struct file_view *view;
	pid_t pid;                   /* the calling thread, as seen from here */
	int root_fd;                 /* borrowed from the view, or own_root_fd */
	int own_root_fd;             /* owned */
	/* By file_caller_read_status(); 0 before: */
	mode_t umask;
	pid_t process_inside, thread_inside;
};

/* 0; -ESRCH, -EACCES … where the caller is gone. */
int file_caller_begin(struct file_caller *caller, struct file_view *view, pid_t pid) MUST_USE;
void file_caller_end(struct file_caller *caller);

/*
 * O_PATH of the caller's dir_fd (AT_FDCWD: its working directory). -EBADF as openat(2) says it; -EACCES where that lies
 * outside of the sandbox: a descriptor that was handed in gives no way to what is around it.
 */
int file_caller_open_base(const struct file_caller *caller, int dir_fd) MUST_USE;

/* The same wherever it lies: to look at what is there, and for nothing else. */
int file_caller_open_any(const struct file_caller *caller, int dir_fd) MUST_USE;

/* Fills umask and pids. -ESRCH where the caller is gone. */
int file_caller_read_status(struct file_caller *caller) MUST_USE;

/* The device number of the controlling terminal; 0: there is none. */
dev_t file_caller_terminal(const struct file_caller *caller);
