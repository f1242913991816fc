/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a path is by its name: a place of credentials, or a file that something runs without anybody starting it. For
 * counting (detect/anomaly.h), not for refusing: what may not be read or written the policy says. Pure.
 */

#include <stdbool.h>

/* Where keys and passwords are kept; what a host runs by itself at logins and starts. path: absolute, normalised. */
bool monitor_is_secret_path(const char *path);
bool monitor_is_startup_path(const char *path);
