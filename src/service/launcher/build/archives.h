/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The archives that clients sent for COPY, below DIRECTORY/archives: one directory for each owner of keys, so that
 * nobody builds with what somebody else sent under the same hash; the oldest go. Runs in atolld.
 */

#include <stdint.h>

#include "base/cleanup.h"
#include "service/launcher/store/credential.h"

#define ARCHIVE_BYTES_MAX (UINT64_C(1) << 30)
#define ARCHIVES_BYTES_MAX (UINT64_C(4) << 30)

enum { PARTS_MAX = 4 };

/* Whether one is there: 1, 0, -errno. It counts as used then. */
int archives_has(const char *directory, const char *owner, const char *hash) MUST_USE;

/* An fd for reading, owned by the caller. -ENOENT. */
int archives_open(const char *directory, const char *owner, const char *hash) MUST_USE;

/*
 * A new file, and part, by which it is named until it is whole. An fd for writing, owned by the caller. An owner has
 * PARTS_MAX at once: the one that nothing was written to for the longest goes for a new one, and cannot be committed.
 * -errno.
 */
int archives_begin(const char *directory, const char *owner, char part[CREDENTIAL_ID_SIZE]) MUST_USE;

/* Nobody will finish it. 0 also where it is not there. */
int archives_drop(const char *directory, const char *owner, const char *part) MUST_USE;

/* Removes what nobody finished, of all owners: those who wrote it are gone with an earlier daemon. */
void archives_drop_all(const char *directory);

/* It is whole, if it has this size: -EBADMSG, and it is gone. The oldest beyond the bounds of an owner go. */
int archives_commit(const char *directory, const char *owner, const char *hash, const char *part,
		    uint64_t size) MUST_USE;

/* Whether a text is 64 hex digits in lower case, as clients name what they send. */
bool archives_hash_is_valid(const char *hash);
