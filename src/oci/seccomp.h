/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The system calls of a container: the bundle's filter, and one of ours beside it. The kernel takes the stricter
 * answer of the two, so a bundle without a filter still has ours.
 */

#include "oci/config/config.h"

/*
 * Loads both for the calling process, which has no_new_privs or CAP_SYS_ADMIN. Ours refuses what serves attacks on the
 * kernel and needs a capability that the process has not. *err of a filter that says what libseccomp does not know.
 */
int oci_seccomp_load(const struct oci_seccomp *seccomp, const struct oci_capabilities *capabilities,
		     struct err *err) MUST_USE;
