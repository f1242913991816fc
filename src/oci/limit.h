/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * linux.resources of a bundle, written to the control groups of its container, v1 or v2. The groups themselves are
 * cgroup.h's. Used by atoll-oci.
 */

#include "oci/cgroup.h"
#include "oci/config/config.h"

/* Whether anything is limited, but for devices. */
bool oci_limits_are_asked(const struct oci_resources *resources);

/*
 * Writes what is asked, and leaves the rest. has_devices: also the rules for devices, all of them refused first where
 * the first rule says so. A limit that cannot be in force is an error, never left out.
 */
int oci_limits_apply(const struct oci_groups *groups, const struct oci_resources *resources, bool has_devices,
		     struct err *err) MUST_USE;
