/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers to seccomp notifications. A caller that was killed meanwhile needs none, which is no error. Runs in
 * atoll-box.
 */

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct reply {
	int listener_fd;                     /* borrowed */
	struct seccomp_notif_resp *response; /* borrowed: of the size that the running kernel wants */
	bool is_signalled;                   /* callers are frozen by SIGSTOP: for reply_restart() */
};

/* The call fails with errnum, or is told to have returned value. */
int reply_error(const struct reply *reply, uint64_t id, int errnum) MUST_USE;
int reply_value(const struct reply *reply, uint64_t id, int64_t value) MUST_USE;

/*
 * The caller makes its call again once it goes on (ERESTARTSYS, which no header for programs has). Only for one that
 * was told to freeze: the kernel starts a call again only on the way through that, and a program would see the number
 * 512 otherwise. pid: the calling thread, which SIGSTOP is sent to itself where that is how it is frozen.
 */
int reply_restart(const struct reply *reply, uint64_t id, pid_t pid) MUST_USE;

/* The kernel makes the call itself: only where nothing rests on what its pointers show. */
int reply_continue(const struct reply *reply, uint64_t id) MUST_USE;

/* Puts a copy of fd into the caller's table, under its own limit, and answers nothing yet. Its number or -errno. */
int reply_add_fd(const struct reply *reply, uint64_t id, int fd, bool is_cloexec) MUST_USE;

/*
 * Puts a copy of fd into the caller's table, under its own limit, and answers with its number. Where that cannot be
 * (EMFILE) the call fails with the reason. seccomp_unotify(2).
 */
int reply_fd(const struct reply *reply, uint64_t id, int fd, bool is_cloexec) MUST_USE;

/* 1: the caller still waits, so that its pid has meant the same process until now; 0: it is gone; -errno. */
int reply_is_awaited(const struct reply *reply, uint64_t id) MUST_USE;
