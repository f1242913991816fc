/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the host had at the start, noted while a run goes on and at its end, as long as ctimes still tell: directories
 * of the start, and files in whose place the sandbox put one that it made itself. Later the host adds files here and
 * there, and all ctimes are new. Then only the inode and its birth say that nobody has put another directory into the
 * place, and only this says that a file was there which the host has deleted since. What is not in here is not known,
 * never different. File `seen` of a stage directory.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "stage/record/record.h"
#include "stage/layer/walk.h"

struct seen;

enum { SEEN_MAX = 50000 };           /* entries */

/*
 * What was noted by the session, and by the one whose start counts for it, below sessions_fd. A file that is missing or
 * damaged says nothing. -ENOMEM.
 */
int seen_load(int sessions_fd, const struct stage_record *record, struct seen **ret_seen) MUST_USE;
void seen_free(struct seen *seen);

/* Whether the host's directory of the entry was noted under its path, and is the same one. */
bool seen_has(const struct seen *seen, size_t tree, const struct stage_entry *entry);

/* Whether anything of the host's was noted under this path. */
bool seen_had(const struct seen *seen, size_t tree, const char *path);

/* Notes what the host has at the entry. Where no birth is known, or beyond the bound, nothing is. */
void seen_note(struct seen *seen, size_t tree, const struct stage_entry *entry);

/* Writes the file where something was noted, without waiting for the disk. -errno. */
int seen_store(const struct seen *seen, int stage_fd) MUST_USE;
