/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All entries that a stack of layers has, or hides of the host, as one list in the order of the tree. Two of them show
 * where two states of a session may differ: nowhere else. Used by live-restore.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "stage/layer/walk.h"

enum { ENTRY_LIST_MAX = 1 << 20 };

struct list_entry {
	char *path;                  /* owned; relative to the tree, "" for its root */
	enum stage_entry_kind kind;
	bool is_masked;
	size_t layer;                /* the deciding one, in the stack */
	struct stat staged;          /* STAGE_ENTRY_FILE and _DIRECTORY */
};

struct entry_list {
	struct list_entry *items;    /* owned */
	size_t count, capacity;
};

/*
 * Fills an empty list. 0; -E2BIG beyond ENTRY_LIST_MAX or a limit of the walk; -EACCES, -ESTALE: a directory could not
 * be read to its end; -ENOMEM, -errno. What was found until then stays, to be freed.
 */
int entry_list_load(const struct stage_stack *stack, struct entry_list *list) MUST_USE;
void entry_list_done(struct entry_list *list);
#define cleanup_entry_list __attribute__((cleanup(entry_list_done)))

/* The order of the lists: names by their bytes, what is in a directory right behind it. As strcmp(3). */
int entry_path_compare(const char *a, const char *b);

/* Whether path lies below directory, which is not "". */
bool entry_path_is_below(const char *path, const char *directory);
