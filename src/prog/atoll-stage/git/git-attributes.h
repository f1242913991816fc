/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether git would store other bytes than the file has: a filter (Git LFS), another encoding, line ends, $Id$. atoll
 * runs no filter and converts nothing, so such a file is refused for `atoll apply --commit`. The lists are read as
 * gitattributes(5) has it: of the system, of the user, of each directory as the session left it or else as the project
 * has it, and .git/info/attributes. Run by atoll-stage.
 */

#include <stdbool.h>

#include "prog/atoll-stage/git/git-change.h"

struct git_attributes;

/* Reads the lists that lie outside of the project. Before confining. git_fd: the git directory. -ENOMEM. */
int git_attributes_new(int git_fd, struct git_attributes **ret_attributes) MUST_USE;
void git_attributes_free(struct git_attributes *attributes);

/*
 * What git would do with this file when it is added, in words ("the filter lfs"), in out; "": nothing. fd has its
 * bytes. converts_line_ends: core.autocrlf. 0, or -errno.
 */
int git_attributes_judge(struct git_attributes *attributes, const struct git_change_context *context, const char *path,
			 int fd, bool converts_line_ends, char out[128]) MUST_USE;
