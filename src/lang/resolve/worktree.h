/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the repository of a project lies that is a worktree or a submodule of git (git-worktree(1),
 * gitrepository-layout(5)). It reads what git wrote down on both sides and runs no git. Private to lang/.
 */

struct lang;

/*
 * The repository (.git or below .git/modules, real, in the arena) whose worktree the project is; NULL: it is none, or
 * the repository does not say so too. What was read becomes a source of the policy.
 */
const char *worktree_repository(struct lang *lang);
