/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The control groups of a container: one below each mounted hierarchy of v1, and of v2 (cgroups(7)). They are named
 * by the bundle, made, entered, frozen and removed here; what limits are written is limit.h's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

enum { OCI_GROUPS_MAX = 20 };

struct oci_group {
	char *controllers; /* owned: "memory", "cpu,cpuacct", "name=systemd"; "" is v2 */
	char *path;        /* owned: of the directory, on the host */
	bool is_made;      /* by us, or about to be, so that delete removes it */
};

struct oci_groups {
	struct oci_group items[OCI_GROUPS_MAX];
	size_t count;
};

/* Frees the texts of the table, removes nothing. */
void oci_groups_done(struct oci_groups *groups);

/*
 * The groups of this linux.cgroupsPath (NULL: one named by id) in all hierarchies that are mounted. Makes nothing;
 * is_made of those that are not there yet.
 */
int oci_groups_plan(struct oci_groups *ret_groups, const char *cgroups_path, const char *id, struct err *err) MUST_USE;

/* Appends one group; takes no text. -ENOMEM, -E2BIG. */
int oci_groups_add(struct oci_groups *groups, const char *controllers, const char *path, bool is_made) MUST_USE;

/* Makes their directories. -EACCES, -EPERM, -EROFS with *err where the caller may not. */
int oci_groups_make(struct oci_groups *groups, struct err *err) MUST_USE;

/* Moves a process into all of them. */
int oci_groups_enter(const struct oci_groups *groups, pid_t pid, struct err *err) MUST_USE;

/* The one of a controller of v1, or with "" of v2; NULL. */
const struct oci_group *oci_groups_find(const struct oci_groups *groups, const char *controller);

/* Freezes or thaws all processes, and waits until it is so. -EOPNOTSUPP with *err where no freezer is there. */
int oci_groups_freeze(const struct oci_groups *groups, bool on, struct err *err) MUST_USE;
bool oci_groups_is_frozen(const struct oci_groups *groups);

/* Appends the process numbers, one a line, of one hierarchy that has all of them. 0, also where it is gone. */
int oci_groups_list(const struct oci_groups *groups, struct buf *out) MUST_USE;

/* Sends a signal to each of them. The number of processes that got it, or -errno. */
int oci_groups_signal(const struct oci_groups *groups, int signal_number) MUST_USE;

/* Kills what is left and removes the directories that were made, with all below. */
int oci_groups_remove(const struct oci_groups *groups, struct err *err) MUST_USE;
