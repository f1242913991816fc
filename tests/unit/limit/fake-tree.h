/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A cgroup file system for tests, in an ordinary directory: mkdir, rmdir and write of the code under test are
 * wrapped by the linker and behave as the kernel's would (files appear with the group, a group with processes
 * cannot hand controllers down). Any n-th system call or allocation can be made to fail.
 */

#include <stdbool.h>
#include <stddef.h>

extern char fake_root[64]; /* what to give as cgroup_root */

/* Makes the directory with self-cgroup and mountinfo of this text. */
void fake_begin(const char *self_cgroup, const char *mountinfo);

/* Removes it all, and becomes root again if fake_as_user() was called. Twice is fine. */
void fake_end(void);

/* A group below the root ("user.slice/x"): v2 with these controllers enabled below it, or a v1 one (NULL). */
void fake_group(const char *path, const char *subtree_control, const char *procs);

/* Gives the groups from path down to an ordinary user. The rest stays the caller's and read-only. */
void fake_delegate(const char *path);

/* From now on the process is that user, also when it was started as root. */
void fake_as_user(void);

void fake_write(const char *path, const char *text);
const char *fake_read(const char *path);
void fake_remove(const char *path);
bool fake_exists(const char *path);

/* All directories of the tree, sorted, one a line: to see that nothing was left behind. Freed with free(). */
char *fake_listing(void);

/* The n-th (from 1) of mkdir, write, open and allocation from now on fails; 0: none. */
void fake_fail_at(unsigned n);

/* Whether the failure has happened. */
bool fake_has_failed(void);

size_t count_open_fds(void);
