/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was usual for one agent in one project: the numbers of its last sessions, and keyed hashes of what was met in
 * them, bounded, the longest unseen forgotten first. One file each (doc/format/baseline.md). Judges nothing: that is
 * score.h's. Run by atoll-box, and by atoll for those who look.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "monitor/feature.h"

enum {
	BASELINE_SESSIONS = 64,        /* whose numbers are kept */
	BASELINE_KEY_SIZE = 16,
	BASELINE_LABEL_MAX = 1024,     /* bytes of agent and of project */
	BASELINE_SIZE_MAX = 128 << 10, /* of the file */
};

struct baseline_item {
	uint64_t hash;                 /* never 0 */
	uint32_t seen;                 /* number of the last session that met it */
};

struct baseline_set {
	struct baseline_item *items;   /* owned; a hash table, empty places are 0 */
	size_t count, capacity;        /* capacity: a power of two, or 0 */
};

struct baseline {
	uint8_t key[BASELINE_KEY_SIZE];
	char *agent, *project;         /* owned; for people */
	uint32_t sessions;             /* learnt in all */
	uint32_t count;                /* rows in values */
	uint64_t values[BASELINE_SESSIONS][MONITOR_FEATURE_COUNT]; /* the newest first */
	struct baseline_set sets[MONITOR_SET_COUNT];
};

/* An empty one with a fresh key. -ENOMEM, -EIO. */
int baseline_init(struct baseline *baseline, const char *agent, const char *project) MUST_USE;
void baseline_done(struct baseline *baseline);

/* -EBADMSG: not whole, or not ours; nothing is taken then. -ENOMEM. */
int baseline_parse(struct baseline *ret_baseline, const void *bytes, size_t size) MUST_USE;
int baseline_format(const struct baseline *baseline, struct buf *out) MUST_USE;

/* What stands for a thing of this kind in the sets; without the key nobody can tell which it was. */
uint64_t baseline_hash(const struct baseline *baseline, enum monitor_feature kind, const void *bytes, size_t size);

/* Whether what baseline_hash() gave is known; its time of last sight does not change. */
bool baseline_set_has(const struct baseline_set *set, uint64_t hash);

/* 1: it was new; 0: it was there, and was seen now; -ENOSPC: the set is full; -ENOMEM. */
int baseline_set_add(struct baseline_set *set, uint64_t hash, uint32_t seen, size_t max) MUST_USE;
void baseline_set_done(struct baseline_set *set);

/* One session more: its numbers, and what it met. Where a set is full, what was unseen longest goes. */
int baseline_learn(struct baseline *baseline, const uint64_t values[MONITOR_FEATURE_COUNT],
		   const struct baseline_set met[MONITOR_SET_COUNT]) MUST_USE;

/*
 * Below the state directory, "baselines/HASH"; where it is read from and written to. 0; -ENOENT: nothing was learnt
 * yet; -EBADMSG: what is there is damaged.
 */
int baseline_path(char *out, size_t size, const char *state_dir, const char *agent, const char *project) MUST_USE;
int baseline_load(struct baseline *ret_baseline, const char *path) MUST_USE;
int baseline_store(const struct baseline *baseline, const char *path) MUST_USE;
