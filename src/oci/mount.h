/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The mounts of a bundle, each made detached and put onto a target that is looked up inside the root by descriptor
 * (oci/rooted.h): a link in a hostile image leads to no place outside. Runs in the container's first process, which is
 * in its own mount namespace and not yet in its root.
 */

#include <linux/mount.h>

#include "oci/cgroup.h"
#include "oci/config/config.h"

/* What the options of a mount mean; data (owned) has what is the file system's own, as "name" or "name=value". */
struct oci_mount_options {
	uint64_t set, clear, all_set, all_clear; /* MOUNT_ATTR_*; all_*: of the mounts below it too */
	uint64_t propagation;                    /* MS_SHARED and so on; 0: as it comes */
	bool is_bind, is_recursive, is_recursive_propagation;
	const char *data[32];
	size_t data_count;
};

/* Names of options that features lists, NULL-terminated. */
extern const char *const *oci_mount_option_names(void);

/* -EINVAL with *err: too many. Texts are borrowed. */
int oci_mount_options_parse(struct oci_mount_options *ret_options, const struct field_texts *texts,
			    struct err *err) MUST_USE;

/* MS_* of "private", "rslave" and so on; *ret_recursive for those with an r. 0: no such word. */
uint64_t oci_propagation_find(const char *name, bool *ret_recursive);

/* Makes one mount below root_fd. bundle: what relative sources begin at; groups: what a mount of type cgroup shows. */
int oci_mount_make(int root_fd, const struct oci_mount *mount, const char *bundle, const struct oci_groups *groups,
		   struct err *err) MUST_USE;

/* Puts a mount of source (a path of the host) onto (root_fd, target), which is made where it is missing. */
int oci_mount_bind(int root_fd, const char *source, const char *target, struct err *err) MUST_USE;
