/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Things counted by their name, in the order in which they first came: a set of texts with a bound, since a log is as
 * long as who wrote it likes. Pure. Run by atoll-learn.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct tally_item {
	char *key;               /* owned by the tally */
	uint64_t count;
	uint64_t record;         /* of the log, where it came first */
	char *by;                /* who did it first; owned, "" where nobody knows */
	uint64_t value;          /* the caller's */
};

struct tally {
	struct tally_item *items;
	size_t count, max;
	uint64_t left_out;       /* counted beyond max */
	uint32_t *slots;
};

/* -ENOMEM. max: different things, at most 1 << 20. */
int tally_init(struct tally *tally, size_t max) MUST_USE;
void tally_done(struct tally *tally);

/*
 * Counts it: the item is in *ret_item, valid until the next call (NULL: there is no room, it is in left_out). 1: it is
 * new, 0: it is not, or left out; -ENOMEM.
 */
int tally_add(struct tally *tally, const char *key, uint64_t count, struct tally_item **ret_item) MUST_USE;

/* Says of a new item where and by whom. -ENOMEM. */
int tally_tell(struct tally_item *item, uint64_t record, const char *by) MUST_USE;
