/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files opened in the user namespace of another process: setns(2). Some of /proc ask who opened them whenever they are
 * used (uid_map and its like, user_namespaces(7)), so that nobody outside can open them on behalf of somebody inside.
 */

#include "base/cleanup.h"

/*
 * Opens the object of path_fd (O_PATH) again with these flags, with all rights in the user namespace of process pid
 * and the effective ids of the caller; a child that enters the namespace does it. For whoever made that user namespace
 * or one around it, and for root. The fd (owned), or -errno.
 */
int userns_open(pid_t pid, int path_fd, int flags) MUST_USE;
