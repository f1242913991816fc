/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Chains of sealed layers: which immutable uppers stand below the live one, bottom first. The file `chain` of a
 * session and each of its snapshots/NAME hold one (doc/format/stage.md). A layer is named by the session that made it
 * and a number, because a fork stands on the layers of its origin. Nothing here looks into a layer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "os/clock.h"
#include "stage/record/record.h"

enum {
	STAGE_CHAIN_MAX = 64,         /* layers; overlayfs takes 500 */
	STAGE_CHAIN_FLATTEN = 16,     /* a longer one is flattened in the background */
	STAGE_MESSAGE_MAX = 1024,     /* bytes of a snapshot's message */
	STAGE_SNAPSHOT_NAME_MAX = 64, /* bytes of a snapshot's name */
};

struct stage_layer {
	char session[SESSION_ID_SIZE];
	uint32_t number;              /* from 1: layers/NUMBER of that session */
};

struct stage_chain {
	struct stage_layer layers[STAGE_CHAIN_MAX]; /* bottom first */
	size_t count;
	uint64_t taken_ns;            /* snapshots: CLOCK_REALTIME, or 0: as the file */
	char message[STAGE_MESSAGE_MAX + 1]; /* snapshots: any bytes but NUL; "" when none was given */
};

/*
 * Reads the chain that (dir_fd, name) holds. A missing `chain` is an empty one where missing_is_empty says so, else
 * -ENOENT. -EBADMSG for what is malformed, -E2BIG beyond STAGE_CHAIN_MAX.
 */
int stage_chain_load(int dir_fd, const char *name, bool missing_is_empty, struct stage_chain *ret_chain) MUST_USE;

/* Replaces (dir_fd, name) whole, mode 0600: readers, a crash and a power cut see the old one or the new one. */
int stage_chain_store(int dir_fd, const char *name, const struct stage_chain *chain) MUST_USE;

/* The same from bytes, for tests and fuzzers. */
int stage_chain_parse(void *bytes, size_t size, struct stage_chain *ret_chain) MUST_USE;

/* Puts a layer on top. -E2BIG when the chain is full: flatten it first. */
int stage_chain_push(struct stage_chain *chain, const char *session, uint32_t number) MUST_USE;

/* Whether text may name a snapshot: [A-Za-z0-9._-], neither '.' nor '-' first, at most STAGE_SNAPSHOT_NAME_MAX. */
bool stage_snapshot_name_is_valid(const char *text);

/*
 * Makes the next free layers/N of the session (layers/ too where it is missing) with an empty directory for
 * each tree, owned by the jail's ids and with the mode of the tree's live upper. N, or -errno. Nothing names it
 * yet; what no chain and no snapshot names, gc may take.
 */
int stage_layer_new(int stage_fd, const struct stage_record *record, struct err *err) MUST_USE;

/*
 * Seals what was written: the live uppers become layers/N, live gets new empty ones, and *chain, which must be the
 * session's own chain as it is on disk, grows by N on disk and in memory. Nothing may run in the session
 * (the caller holds its lock). O(trees).
 * A crash at any point loses nothing and doubles nothing: chain names N while N is still empty, then each
 * upper is exchanged with its empty directory. N, or -errno with *err.
 */
int stage_seal(int stage_fd, const struct stage_record *record, struct stage_chain *chain, struct err *err) MUST_USE;

/* live/T/upper (O_RDONLY | O_DIRECTORY), owned by the caller. -EACCES: the sandbox closed the tree itself. */
int stage_live_open(int stage_fd, size_t tree_index) MUST_USE;

/*
 * Whether any live upper holds anything (an empty one needs no seal). 1, 0, or -errno.
 */
int stage_live_is_used(int stage_fd, const struct stage_record *record) MUST_USE;
