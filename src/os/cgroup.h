/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where this process stands in the kernel's control groups, and their small files. Knows v1, v2 and hybrid
 * layouts, and namespaces that show only a part of the tree. Makes and removes no group. cgroups(7),
 * Documentation/admin-guide/cgroup-v2.rst, proc(5) for mountinfo.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* A hierarchy that may exist: the v2 tree, or the v1 tree that has this controller. */
enum cgroup_kind {
	CGROUP_V2,
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_FREEZER,
	CGROUP_KIND_COUNT,
};

/* "v2", "memory", "pids", "cpu", "cpuacct", "freezer" */
extern const char *const cgroup_kind_names[CGROUP_KIND_COUNT];

struct cgroup_layout {
	const char *fake_root;  /* borrowed; NULL for the real tree */
	char *self;             /* owned: the text of /proc/self/cgroup */
	char *mounts;           /* owned: the text of /proc/self/mountinfo, read only when the usual places fail */
};

/*
 * Reads /proc/self/cgroup. A fake root (tests) is a directory that holds the files `self-cgroup` and
 * `mountinfo` in the kernel's formats, and stands for /sys/fs/cgroup in the latter's mount points.
 */
int cgroup_layout_load(struct cgroup_layout *ret_layout, const char *fake_root) MUST_USE;
void cgroup_layout_done(struct cgroup_layout *layout);
#define cleanup_cgroup_layout __attribute__((cleanup(cgroup_layout_done)))

/*
 * The directory of the caller's own group in this hierarchy, in out[PATH_MAX]; *ret_top is the length of
 * the part that is the topmost group that can be seen (so ancestors end there). -ENOENT: no such
 * hierarchy is mounted, or the caller's group lies outside of what is mounted.
 */
int cgroup_layout_own(struct cgroup_layout *layout, enum cgroup_kind kind, char out[PATH_MAX],
		      size_t *ret_top) MUST_USE;

/* Whether a v1 hierarchy has this controller (so that the v2 tree cannot have it). Reads nothing. */
bool cgroup_layout_is_v1(const struct cgroup_layout *layout, enum cgroup_kind kind);

/* A number in a file of the group; "max" is UINT64_MAX. -ENOENT, -EBADMSG. */
int cgroup_read_u64(int dir_fd, const char *file, uint64_t *ret_value) MUST_USE;

/* The number behind "key " in a flat-keyed file such as memory.events. -ENODATA where the key is missing. */
int cgroup_read_key(int dir_fd, const char *file, const char *key, uint64_t *ret_value) MUST_USE;

/* The same from an open file, read from its start (which re-arms poll(2) on it). */
int cgroup_read_key_fd(int fd, const char *key, uint64_t *ret_value) MUST_USE;

/* The small file whole, in out[size], NUL-terminated. -EFBIG. */
int cgroup_read_text(int dir_fd, const char *file, char *out, size_t size) MUST_USE;

/* Writes a number in decimal ("max" for UINT64_MAX). */
int cgroup_write_u64(int dir_fd, const char *file, uint64_t value) MUST_USE;
