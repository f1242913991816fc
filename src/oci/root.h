/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The root directory of a container, built by its first process in the container's own mount namespace. Single mounts
 * are mount.h's. Used by atoll-oci.
 */

#include "oci/cgroup.h"
#include "oci/config/config.h"

/*
 * Cuts the mount namespace off from the host's (as linux.rootfsPropagation wants it), mounts the rootfs onto itself and
 * all of the bundle's mounts, devices and masks below it. *ret_root_fd: the new root, not yet entered.
 */
int oci_root_build(const struct oci_config *config, const char *bundle, const struct oci_groups *groups,
		   int *ret_root_fd, struct err *err) MUST_USE;

/* Opens a terminal pair of the container's own devpts, the slave also as /dev/console. *ret_master is the caller's. */
int oci_root_console(int root_fd, int *ret_master, int *ret_slave, struct err *err) MUST_USE;

/* Makes it the root of the namespace, lets go of the host's, and makes it read-only where that is wanted. */
int oci_root_enter(const struct oci_config *config, int root_fd, struct err *err) MUST_USE;
