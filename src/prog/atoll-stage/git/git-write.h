/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll apply --commit` writes in a git directory beside objects: the branch of HEAD (or HEAD itself), its reflog
 * and the index, each by its lock file as git does. All below one descriptor, no link is followed. It decides nothing:
 * the bytes and names come from git_maker.h, and are checked for their form. Run by atoll-stage, confined.
 */

#include <stdbool.h>

#include "base/cleanup.h"

struct git_write {
	int git_fd;                  /* borrowed */
	const char *ref;             /* borrowed: "refs/heads/NAME", or "HEAD" */
	bool has_index_lock, has_ref_lock; /* the lock files are ours */
};

/* Takes index.lock and the lock of the ref. -EEXIST: another git is at work; -EINVAL: no such ref; -errno. */
int git_write_lock(struct git_write *ret_write, int git_fd, const char *ref) MUST_USE;

/* The bytes of index_fd become the next index; they are an ordinary index, or -EBADMSG. Nothing is visible yet. */
int git_write_index(struct git_write *write, int index_fd) MUST_USE;

/* One line of a reflog, without the names of the commits. */
struct git_reflog {
	const char *old, *new;       /* 40 digits; "": there was none */
	const char *who;             /* NAME <EMAIL> SECONDS ZONE */
	const char *message;         /* its first line is taken */
};

/* Moves the ref to the new commit, and then the index into its place. -errno. */
int git_write_publish(struct git_write *write, const struct git_reflog *reflog) MUST_USE;

/* Removes locks that are still there. */
void git_write_done(struct git_write *write);
