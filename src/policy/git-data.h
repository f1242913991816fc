/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What lies in the directory of a git repository and is data: objects, refs, logs, the index and their like. Everything
 * that is not listed may name a program that git starts (config, hooks, commondir, a rebase's todo list, what git will
 * have tomorrow), so that a list of what is dangerous would never be complete. Pure. Whether a directory is a
 * repository is not told here (stage/change/repositories.h).
 */

#include <stdbool.h>
#include <stddef.h>

enum git_part {
	GIT_OTHER = 0,      /* may name what git starts */
	GIT_DATA,
	GIT_HEAD,           /* data, if it is of an ordinary form: git_text_is_ordinary() */
	GIT_COMMONDIR,      /* of a worktree: which repository's configuration and hooks it has; as GIT_HEAD */
	GIT_GITDIR,         /* of a worktree: where its files are; as GIT_HEAD */
	GIT_OBJECT,         /* data that git writes once: its name says what is in it */
	GIT_INDEX,          /* data, if all its names lie in the working tree: not told here */
	GIT_UNDER_WAY,      /* what is left to be done of a rebase: commands too, and gone when it has ended */
};

/* inside: relative to the directory of one repository, normalised; "" is that directory. */
enum git_part git_part_of(const char *inside);

/*
 * Whether it is data by its name alone, where nobody can look which directories are repositories: inside is relative
 * to a directory called `.git`, and may lie in a worktree's or a submodule's part of it. in_place: it is written as git
 * works, and not when it has ended, so that GIT_UNDER_WAY is no more than that.
 */
bool git_is_data_by_name(const char *inside, bool in_place);

/* Whether a repository may lie at inside in another one: a worktree's part of it, or a submodule's. */
bool git_can_hold_repository(const char *inside);

enum { GIT_TEXT_MAX = 4096 };

/*
 * Whether the text of such a file is as git writes it: HEAD names a branch or an object, commondir the repository two
 * directories above, gitdir the absolute path of a file `.git`. Longer than GIT_TEXT_MAX is not. True for GIT_DATA,
 * and for no GIT_INDEX.
 */
bool git_text_is_ordinary(enum git_part part, const char *text, size_t size);
