/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is mounted below a directory of the host: one reading of /proc/self/mountinfo (proc(5)). Costs as much as the
 * host has mounts, so it is asked only where the answer matters.
 */

#include "base/cleanup.h"

/*
 * The mount points strictly below path (absolute, normalised), each once, what lies above another first. An owned
 * vector of owned strings, NULL-terminated (strv_free()). -E2BIG where the list is larger than 4 MiB, -EBADMSG where
 * it is none.
 */
int mount_points_below(const char *path, char ***ret_points) MUST_USE;

/* The same from the text of a mountinfo, which is changed. */
int mount_points_parse(char *text, const char *path, char ***ret_points) MUST_USE;
