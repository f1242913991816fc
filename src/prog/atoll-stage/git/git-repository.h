/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The git repository that a project lies in, found without git and without a look at any setting of it. Run by
 * atoll-stage, before it confines itself.
 */

#include <limits.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "os/fd.h"

struct git_repository {
	char root[PATH_MAX];         /* the work tree */
	int own_fd, common_fd;       /* owned: its git directory; where objects and refs are */
};

#define GIT_REPOSITORY_NONE ((struct git_repository){ .own_fd = FD_NONE, .common_fd = FD_NONE })

/* base: the project, absolute. -ENOENT, -ENOTSUP, -EPERM with *err. */
int git_repository_find(const char *base, struct git_repository *repository, struct err *err) MUST_USE;
void git_repository_done(struct git_repository *repository);
#define cleanup_git_repository __attribute__((cleanup(git_repository_done)))

/* Fills *err for something that cannot be done with a repository, and returns r. */
int git_fail_with(struct err *err, int r, const char *what, const char *hint);
/* The same in the words for what git_maker.h answers. */
int git_fail(struct err *err, int r);
