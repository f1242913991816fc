/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The systems that were imported (doc/format/template.md): names, and trees that several names may share. Whoever
 * changes something holds the lock. A tree goes when no name and no session has it any more.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash.h"
#include "image/target.h"
#include "session/directories.h"

enum { TREE_ID_SIZE = 33, SOURCE_SIZE = 1024 };

struct store {
	int fd;                      /* owned: STATE/roots */
	int sessions_fd;             /* owned: STATE/sessions; FD_NONE: there are none */
	int lock_fd;                 /* owned; FD_NONE: it is only read */
};

/* What is on record of a tree. */
struct tree_record {
	char id[TREE_ID_SIZE];
	char source[SOURCE_SIZE];    /* what it was made from, as it was named; bytes of the user's */
	struct image_counts counts;
	uint64_t layers, made_ms;
};

/* Opens it, made where it is missing; to_change: waits for the lock. Negative with *err. */
int store_open(struct store *store, const char *state_dir, bool to_change, struct err *err) MUST_USE;
void store_close(struct store *store);

/* An empty directory for a new tree, and what was left behind by one that was killed is gone. Its fd, owned. */
int store_begin(struct store *store, struct err *err) MUST_USE;

/*
 * What was begun becomes a tree, which record->id is filled with, or is thrown away where the same tree is there. Then
 * name leads to it. Negative with *err.
 */
int store_finish(struct store *store, const char *name, const struct hash *identity, struct tree_record *record,
		 struct err *err) MUST_USE;

/* Writes beside the tree that was begun how commands run in it; what is empty is left out. Negative with *err. */
int store_put_config(struct store *store, const struct image_config *config, struct err *err) MUST_USE;

/* Throws away what was begun. */
void store_abandon(struct store *store);

/* The record of the tree that a name leads to. -ENOENT: there is none; -EBADMSG: it cannot be read. */
int store_find(const struct store *store, const char *name, struct tree_record *ret_record) MUST_USE;

/* Calls for each name, in their order, until one is negative: that, or 0. */
int store_each(const struct store *store, int (*each)(void *context, const char *name), void *context) MUST_USE;

/* Takes a name away. -ENOENT. */
int store_remove(struct store *store, const char *name) MUST_USE;

/* Removes the trees that nobody has. How many bytes of files went, or -errno. */
int store_collect(struct store *store, uint64_t *ret_bytes) MUST_USE;
