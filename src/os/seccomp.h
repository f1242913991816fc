/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * seccomp(2): loading a filter with a listener. The programs themselves are jail/filter.h's.
 * Used by atoll-init.
 */

#include <linux/filter.h>
#include <stddef.h>

#include "base/cleanup.h"

/*
 * Installs the program for the calling thread and returns the listener fd (close-on-exec), or -errno.
 * Needs no_new_privs. Where the kernel has it (5.19), a notified caller waits killably once its notification
 * was received: without it every signal restarts the call, and a Go program, which preempts itself by
 * signals, may never get through an exec. No SPEC_ALLOW: that would lift the speculation controls.
 */
int seccomp_load_with_listener(const struct sock_filter *program, size_t count) MUST_USE;
