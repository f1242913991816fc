/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tells in one pass over a word which vectors of patterns cannot match it, so that most conditions of most rules are
 * never compared. It only ever rules out: what it lets through is compared as if it were not there.
 * Only for finish.c, which makes it, and match.c. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/yaml/arena.h"

enum {
	FILTER_BITS = 1024,  /* vectors share bits once there are more: what is let through grows, nothing is lost */
	FILTER_ALWAYS = 0,   /* the bit of vectors that may match anything */
	FILTER_HEADS = 4096,
	FILTER_SEEN = 32768,
	FILTER_KNOWN = 1024,
};

/* Of one operation: the vectors that may match something of it, by their bits. */
struct filter_hits {
	uint64_t bits[FILTER_BITS / 64];
	bool is_made;
};

/* A vector that was added: most are in many conditions, and rules that were stored have them once in memory. */
struct filter_known {
	const void *items;
	size_t count;    /* 0: none */
	uint16_t bit;
};

struct filter {
	struct vec keys;                  /* of struct filter_key */
	uint32_t heads[FILTER_HEADS];     /* the first key of each hash: index + 1 */
	uint64_t seen[FILTER_SEEN / 64];  /* by their hash too: most texts have none */
	uint32_t vector_count;
	/* By where they are in memory, and by what is in them: of each hash the last one. */
	struct filter_known known_items[FILTER_KNOWN], known_sums[FILTER_KNOWN];
	struct filter_hits by_glob;       /* vectors with a path that a glob of the shell may become */
};

/*
 * The bit of a vector (of const char *), which is added when it is new. FILTER_ALWAYS when it is empty, when nothing
 * can be told of one of its patterns, or when memory is short.
 */
uint16_t filter_add(struct filter *filter, struct arena *arena, const struct vec *patterns);

/* Marks what may match text, or a part of it that begins and ends anywhere. */
void filter_note(const struct filter *filter, const char *text, struct filter_hits *hits);

/* Marks what may match text as a whole: to be called too for each part that is compared on its own. */
void filter_note_whole(const struct filter *filter, const char *text, struct filter_hits *hits);

/*
 * For a word that the shell expands: marks the vectors whose paths a glob may become. For one that is unknown or cut:
 * marks every vector.
 */
void filter_note_globs(const struct filter *filter, struct filter_hits *hits);
void filter_note_all(struct filter_hits *hits);

static inline bool filter_may_match(const struct filter_hits *hits, unsigned bit)
{
	return hits->bits[bit / 64] >> bit % 64 & 1;
}

/* Which words a pattern is for: paths know ~, "..", and ** ; anything else is plain text where * is any text. */
bool is_path_pattern(const char *pattern);
