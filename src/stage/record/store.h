/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the records of a stage directory have in common: small files that are replaced whole, and the check of a
 * session's id, which becomes a component of a path. Within stage/ only.
 */

#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct stage_tree;

enum {
	STAGE_RESOLVE_NO_LINKS = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	STAGE_RESOLVE_BENEATH = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
};

/*
 * Replaces (dir_fd, name) whole, mode 0600: the bytes are on the disk before the name is theirs. A power cut may take
 * the name back to the old ones.
 */
int stage_store_file(int dir_fd, const char *name, const void *bytes, size_t size) MUST_USE;

/* The regular file (dir_fd, name) whole; -EFBIG beyond max. Freed with free(). */
int stage_load_file(int dir_fd, const char *name, size_t max, char **ret_bytes, size_t *ret_size) MUST_USE;

/*
 * Gives a directory of a layer the owner (as root: that of the jail), mode and times that the host's has; the sandbox
 * sees them through the merge.
 */
int stage_take_attributes(int fd, const struct stat *st, const struct stage_tree *tree) MUST_USE;

/* Whether text is a session's id: 12 characters of [a-z0-9]. */
bool stage_session_is_valid(const char *text);
