/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who acts inside of a sandbox, and where a path of a client's leads: ~ and what is relative mean the user's home.
 * Pure; decides nothing about what the user may do there.
 */

#include <limits.h>

#include "base/cleanup.h"
#include "base/err.h"

#define USER_NAME "user"
#define USER_HOME "/home/user"

/*
 * 0: it is the sandbox's own user (NULL: so it is); -EINVAL with *err: there is no such user here. In a sandbox with a
 * system of its own the one user has uid 0: there has_root_user says that its name is root as well.
 */
int user_check(const char *user, bool has_root_user, struct err *err) MUST_USE;

/* Absolute and without "." and "..". -EINVAL with *err: ~other, or too long. */
int user_path(const char *path, char out[PATH_MAX], struct err *err) MUST_USE;
