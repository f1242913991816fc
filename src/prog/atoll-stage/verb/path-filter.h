/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which paths the words of the command line mean: PATH… (with all below), -x GLOB, --allow-flagged PATH. Paths are
 * absolute and normalised; a glob without a slash means a name anywhere, another is relative to the base.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/options.h"
#include "prog/atoll-stage/verb/opened.h"

struct path_filter {
	const struct opened *opened;       /* borrowed */
	char **paths;                      /* owned; NULL-terminated */
	char **allowed;                    /* owned; NULL-terminated */
	char **globs;                      /* owned; NULL-terminated, absolute */
	struct buf path;                   /* scratch */
};

/* -EINVAL, -ENOENT with *err: a word that is no path of a staged tree, or no glob. */
int path_filter_init(struct path_filter *ret_wanting, const struct opened *opened, char **words, int count,
		 struct err *err) MUST_USE;
int path_filter_exclude(struct path_filter *filter, const struct option_list *globs, struct err *err) MUST_USE;
int path_filter_allow(struct path_filter *filter, const struct option_list *paths, struct err *err) MUST_USE;
void path_filter_done(struct path_filter *filter);

/* Whether a path of a tree was asked for: named (or nothing was named), and not excluded. */
bool path_filter_has(struct path_filter *filter, size_t tree, const char *path);

/* Whether a flagged path was allowed, itself or with a directory above it. */
bool path_filter_allows(struct path_filter *filter, size_t tree, const char *path);
