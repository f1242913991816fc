/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which extended attributes of a file are part of what an agent changed, and which are the host's to keep. user.*
 * is content; ACLs are too, where the ids in them mean the same inside and outside (an ordinary user's
 * sandbox); labels (security.*) are the host's, and capabilities go to nobody. For stage/ and the merges of
 * atoll-stage.
 */

#include <stdbool.h>

#include "base/cleanup.h"

/* user.* but the overlay's own; and, for an ordinary user, system.posix_acl_*. */
bool attributes_is_content(const char *name);

/* user.* but the overlay's own. */
bool attributes_is_user(const char *name);

/* A POSIX ACL, of access or default; NFSv4's are none of these. */
bool attributes_is_acl(const char *name);

/* A label that a new inode gets by the place where it was made, and that belongs to the name it replaces. */
bool attributes_is_label(const char *name);

/*
 * Makes those attributes of `to` for which is_wanted() holds the same as those of `from`: sets, replaces, removes.
 * Both are files or directories, not O_PATH; from may be FD_NONE, which has none. user.* and ACLs are removed where
 * `from` lacks them; everything else is kept as far as the caller may set it. -errno.
 */
int attributes_match(int from, int to, bool (*is_wanted)(const char *name)) MUST_USE;

/* Whether both files or directories, not O_PATH, have the same ones for which is_wanted() holds. 1, 0, -errno. */
int attributes_are_same(int a, int b, bool (*is_wanted)(const char *name)) MUST_USE;

/* Whether a file or directory, not O_PATH, has any for which is_wanted() holds. 1, 0, -errno. */
int attributes_has(int fd, bool (*is_wanted)(const char *name)) MUST_USE;
