/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where paths lead: found once with links followed, and once more, as it was judged, without any. Part of atoll-files,
 * which runs it inside; it judges nothing.
 */

#include "inside.h"

/* Finds where a path leads. 0, or a positive errno. */
int place_find(const struct inside *inside, const char *path, unsigned how, struct place *place);

/* Opens a path that was judged: no link in it. -errno. */
int judged_open(const struct inside *inside, const char *path, uint64_t flags, mode_t mode) MUST_USE;

/* The directory above a judged path, and its last name in it. -errno. */
int judged_parent(const struct inside *inside, const char *path, const char **ret_name) MUST_USE;

/* Whether fd is the very object that the box was shown. */
bool is_judged(const struct place *place, int fd);
