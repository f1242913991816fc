/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A short-lived child of the box that goes into the mounts of the running sandbox to do one thing there: attach a
 * mount, bind a socket. The box itself never enters, and nobody inside can see the child. Run by atoll-box.
 */

#include <stdbool.h>

#include "base/cleanup.h"

struct run;

struct namespaces_task {
	/*
	 * Called in the child. outside: in a copy of the host's mounts that is the child's own, with the rights of the
	 * sandbox's user namespace (root: with its own); NULL: nothing is to be done there. inside: the root directory
	 * is the sandbox's, root_fd names it, and names belong to the sandbox's user; *ret_fd goes to the caller of
	 * namespaces_run(). Each 0 or -errno.
	 */
	int (*outside)(void *context);
	int (*inside)(void *context, int root_fd, int *ret_fd);
	void *context;
};

enum { NAMESPACES_MAX_MS = 2000 };

/*
 * Runs the task to its end, for at most NAMESPACES_MAX_MS. What it returned, *ret_fd owned (FD_NONE: it left none);
 * -ETIMEDOUT: a file system did not answer. What the child changed in its copy of the context is lost.
 */
int namespaces_run(const struct run *run, const struct namespaces_task *task, int *ret_fd) MUST_USE;

/*
 * In inside(): an O_PATH fd of what stands at an absolute, normalised path, made where it is missing and lies in a file
 * system of the sandbox's own, with the directories above it. No link is followed. -EROFS: it would have to be made in
 * a tree of the host's; -EEXIST: something of another kind is in its place.
 */
int namespaces_make_path(const struct run *run, int root_fd, const char *path, bool is_directory) MUST_USE;

/*
 * In inside(): takes away what namespaces_make_path() may have left at a path: an empty file or directory, in a file system of
 * the sandbox's own. What is not empty stays.
 */
void namespaces_remove_path(const struct run *run, int root_fd, const char *path);

/*
 * In a child of the box, alone: takes the sandbox's user and every capability of its user namespace, and none of the
 * host's. Its mounts and its processes stay out of reach but for what is open.
 */
int namespaces_take_rights(const struct run *run) MUST_USE;

/* An O_PATH fd (owned) of a path of the host, links followed; in a child, since a file system may not answer. */
int namespaces_open_outside(const char *path, int *ret_fd) MUST_USE;

/* The root directory, which is read-only to everybody inside, so that it can be written. An fd (owned) or -errno. */
int namespaces_writable_root(int root_fd) MUST_USE;
