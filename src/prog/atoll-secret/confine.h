/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * atoll-secret gives up what it does not need before it reads a file of the vault or a byte from standard input.
 * Afterwards it reaches the directory of the vault, what it has open (the terminal), and nothing else: no other
 * file, no program, no network, no debugger.
 */

#include "base/cleanup.h"
#include "base/err.h"

/* One way: no core, not dumpable, no_new_privs, Landlock, seccomp. dir_fd FD_NONE: no directory at all. */
int confine_self(int dir_fd, struct err *err) MUST_USE;
