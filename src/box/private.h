/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which file systems of a sandbox were made for it, so that a unix socket on them can only be its own. For the
 * supervisor (watch/connect.c), in atoll-box.
 */

#include "jail/spec.h"
#include "watch/watch.h"

/*
 * Looks the private trees among these mounts up in the jail that init_pid lives in, before anything but init runs
 * there, and fills options->private_devices. One that cannot be looked up is left out: its sockets are refused.
 */
void private_devices_find(pid_t init_pid, const struct jail_mount *mounts, size_t count,
			  struct watch_options *options);
