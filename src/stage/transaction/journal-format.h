/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The bytes of a journal, for its writer (journal.c) and its reader (journal-read.c). doc/format/stage.md describes
 * them. Within stage/ only.
 */

#include <stdint.h>

#include "base/hash.h"
#include "stage/transaction/journal.h"

enum record {
	RECORD_BEGIN = 1, RECORD_AREA, RECORD_OP, RECORD_DIRECTORY, RECORD_COMMIT,
	RECORD_OUTCOME, RECORD_DIRECTORY_LEFT, RECORD_DONE, RECORD_CLEAN, RECORD_ROOT_LEFT,
	RECORD_PARTED,
	RECORD_COUNT,
};

enum {
	RECORD_SIZE_MAX = JOURNAL_PATH_MAX + 4096,
};

struct record_head {
	uint32_t size;    /* of the frame */
	uint32_t zero;
	struct hash hash;
};

/* The bytes of an identity in a record; the machine's own order, as in all of atoll's files. */
struct identity_bytes {
	uint32_t mode, uid, gid, links;
	uint64_t inode, size;
	int64_t mtime, ctime, atime;
	uint32_t mtime_ns, ctime_ns, atime_ns, zero;
};

/* The checksum of a record: over that of the record before, the size of the frame, and the frame. */
void journal_chain_hash(struct hash *ret_hash, const struct hash *before, uint32_t size, const void *frame);
