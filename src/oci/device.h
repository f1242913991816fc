/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The device nodes and links of a container's /dev, made by descriptor inside its root. Which devices it may open is
 * its control group's (limit.h). Used by atoll-oci.
 */

#include "oci/config/config.h"

/*
 * What every container has (null zero full random urandom tty, fd stdin stdout stderr ptmx) and linux.devices. Where
 * nodes may not be made (user namespaces), the host's are mounted. A bundle without a /dev of its own gets none.
 */
int oci_devices_make(int root_fd, const struct oci_config *config, struct err *err) MUST_USE;
