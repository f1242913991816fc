/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A commit made by libgit2 on an object directory alone: there is no repository with a configuration, so no hook,
 * filter, attribute, alias, replaced ref or other setting of anybody's is looked at, and no program is started. The
 * process that calls this may read and write objects and refs, and start nothing (CONFINE_STAGE_COMMIT). SHA-1
 * repositories whose refs are files. Run by a child of atoll-stage, in the git directory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum { COMMIT_HEX_SIZE = 41, COMMIT_NAME_MAX = 256 };

struct commit_maker;

/*
 * Begins with the files of the parent, 40 digits; NULL: with none. text_begin() was called. -ENOENT: its objects cannot
 * be read here; -ENOMEM, -EIO.
 */
int commit_maker_new(const char *parent, struct commit_maker **ret_maker) MUST_USE;
void commit_maker_free(struct commit_maker *maker);

/* A file as git has it. */
struct commit_file {
	mode_t mode;                 /* 0100644, 0100755, 0120000, 0160000; 0: there is none */
	uint8_t id[20];
};

/* What the parent, or what was put here, has at this path. Whether there is something. */
bool commit_maker_find(const struct commit_maker *maker, const char *path, struct commit_file *ret_file);

/* The name that git gives to these bytes as a file. -EIO, -errno. */
int commit_hash(int fd, uint8_t id[20]) MUST_USE;

/*
 * Puts a file (mode 0100644, 0100755) or the target of a link (0120000), which is what fd has from its begin on, as it
 * is. -EINVAL: git takes no such path; -EXDEV: it lies in a submodule; -EIO, -errno.
 */
int commit_maker_put(struct commit_maker *maker, const char *path, mode_t mode, int fd) MUST_USE;
/* Takes a file away, where there is one. Errors as above. */
int commit_maker_remove(struct commit_maker *maker, const char *path) MUST_USE;

/* Who a commit is by. */
struct commit_by {
	const char *name, *email;
	char *line;                  /* gets "NAME <EMAIL> SECONDS ZONE", as the commit and a reflog have it */
	size_t line_size;
};

/* Writes the commit: its name in hex. 1: nothing differs from the parent, and there is none. -EIO. */
int commit_maker_write(struct commit_maker *maker, const char *message, const struct commit_by *by,
		       char hex[COMMIT_HEX_SIZE]) MUST_USE;

/* Whether git takes this name for a branch. */
bool commit_branch_is_valid(const char *name);

/*
 * What HEAD's text stands for, in the git directory that is the working directory. 1: the commit is in hex; 0: its
 * branch has no commit yet; -ENOTSUP: it is no SHA-1 repository with refs in files; -EINVAL.
 */
int commit_resolve_head(const char *head, char hex[COMMIT_HEX_SIZE]) MUST_USE;

/* The ref that HEAD's text names, in out; "" where it names a commit. */
void commit_head_ref(const char *head, char *out, size_t size);

/* Makes the branch, which must not be there yet: -EEXIST. -ENOTDIR: another one's name stands in its way. -errno. */
int commit_make_branch(const char *name, const char *hex) MUST_USE;
