/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Binary snapshots: the only form in which a policy crosses a process boundary (doc/format/snapshot.md). The writer
 * is used by atoll-policy, and by atoll for limits of one run (client/tokens.c); the loader by every program, on
 * bytes it does not trust.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "policy/policy.h"

enum { SNAPSHOT_SIZE_MAX = 16 << 20 };

/* A file that the snapshot was made from; while all of them look unchanged the snapshot is fresh. */
struct snapshot_source {
	const char *path;            /* absolute; a source that was looked for and missing has exists 0 */
	uint8_t exists;
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
};

struct snapshot;

/*
 * Validates bytes (every offset, count, string, enum) and makes the view. bytes are borrowed and
 * must stay unchanged for the life of the snapshot (a sealed memfd's mapping, or a private copy).
 * files.protect is read when it is first asked for (policy_protects()); damaged, it protects every path.
 * 0; -EBADMSG for anything malformed or of another version; -EFBIG; -ENOMEM.
 */
int snapshot_load(struct snapshot **ret_snapshot, const void *bytes, size_t size) MUST_USE;
void snapshot_free(struct snapshot *snapshot);
static inline void cleanup_snapshot_(struct snapshot **snapshot) { snapshot_free(*snapshot); }
#define cleanup_snapshot __attribute__((cleanup(cleanup_snapshot_)))

/* Borrowed, valid as long as the snapshot. */
const struct policy *snapshot_policy(const struct snapshot *snapshot);
const struct snapshot_source *snapshot_sources(const struct snapshot *snapshot, size_t *ret_count);

/* The SHA-256 of the bytes, as bound into session.start. Who keeps it beside them spares the next one to make it. */
void snapshot_hash(const struct snapshot *snapshot, struct hash *ret_hash);
void snapshot_set_hash(struct snapshot *snapshot, const struct hash *hash);

/* Serialises policy and sources; the result loads to an equal policy. -ENOBUFS beyond SNAPSHOT_SIZE_MAX. */
int snapshot_store(struct buf *out, const struct policy *policy, const struct snapshot_source *sources,
		   size_t source_count) MUST_USE;
