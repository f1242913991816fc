/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which directories of a staged tree are repositories of git, by what they consist of, as git itself finds out
 * (is_git_directory(): HEAD, objects, refs; or HEAD and commondir), and not by a name: a bare repository may be called
 * anything and lie anywhere. What stands on the host counts together with what is staged, since either may be applied.
 * Decides nothing about what is in them (policy/git-data.h). Used where changes are judged: atoll-stage, atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "stage/layer/layer.h"

struct repositories;

struct repository {
	size_t length;           /* of its directory's path, from the start of the path that was asked about */
	bool is_on_host;         /* the host alone has all of it already */
	bool has_host_directory; /* the host has the directory */
};

enum { REPOSITORIES_NESTED_MAX = 16 };

/* stack is borrowed. NULL when out of memory. */
struct repositories *repositories_new(const struct stage_stack *stack) MUST_USE;
void repositories_free(struct repositories *repositories);

/*
 * The repositories that path (relative to the tree, normalised; "" is its root) lies in, or is where it may be a
 * directory, outermost first, in ret[]: their number; -E2BIG where more are in one another; -errno where nobody can
 * tell. Fast for paths of one directory one after another.
 */
int repositories_of(struct repositories *repositories, const char *path, bool is_directory,
		    struct repository ret[REPOSITORIES_NESTED_MAX]) MUST_USE;
