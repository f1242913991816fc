/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The text of a path in a policy becomes an absolute, normalised path or glob. Pure: no link is looked
 * at here, and whether the path exists does not matter.
 */

#include "lang/yaml/arena.h"

struct pattern_scope {
	const char *project; /* "" when there is none */
	const char *home;
};

enum pattern_kind {
	PATTERN_BELOW_PROJECT, /* a leading "**" stands for the project's directories: rules that grant */
	PATTERN_ANYWHERE,      /* a leading "**" stands for every directory: rules that refuse */
};

struct pattern {
	const char *text; /* in the arena; NULL when it means nothing: "~" without a home */
	bool is_glob, is_relative;
};

/* NULL, or what is wrong with text (one sentence without a full stop, static). */
const char *pattern_resolve(struct arena *arena, const struct pattern_scope *scope, enum pattern_kind kind,
			    const char *text, struct pattern *ret_pattern);

/* What text ("~", "~/x", "~//x") names below the home: a relative path, "." for the home itself. Borrowed. */
const char *pattern_below_home(const char *text);
