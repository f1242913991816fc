/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which directories of the host are those of the start: noted at the end of a run, while ctimes still tell. Later the
 * host adds files here and there, all ctimes are new, and only the inode and its birth say that nobody has put another
 * directory into the place. What is not in here is not known, never different. File `seen` of a stage directory.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "stage/record.h"
#include "stage/walk.h"

struct seen;

enum { SEEN_MAX = 50000 };           /* directories */

/*
 * What was noted by the session, and by the one whose start counts for it, below sessions_fd. A file that is missing or
 * damaged says nothing. -ENOMEM.
 */
int seen_load(int sessions_fd, const struct stage_record *record, struct seen **ret_seen) MUST_USE;
void seen_free(struct seen *seen);

/* Whether the host's directory of the entry was noted under its path, and is the same one. */
bool seen_has(const struct seen *seen, size_t tree, const struct stage_entry *entry);

/* Notes the host's directory of the entry. Where no birth is known, or beyond the bound, nothing is. */
void seen_note(struct seen *seen, size_t tree, const struct stage_entry *entry);

/* Writes the file where something was noted, without waiting for the disk. -errno. */
int seen_store(const struct seen *seen, int stage_fd) MUST_USE;
