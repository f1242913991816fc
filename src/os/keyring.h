/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's keyring of the user (keyrings(7), user-keyring(7)): a place that outlives a process and no reboot, in
 * kernel memory that is never swapped out, which no sandbox reaches (its filter refuses keyctl). A cache only:
 * where it is missing, full or refused, every function says so and the caller does without.
 */

#include <stddef.h>

#include "base/cleanup.h"

/* Puts bytes under this description for timeout_s seconds, in place of what was there. -ENOSYS, -EPERM, -EDQUOT, … */
int keyring_put(const char *description, const void *bytes, size_t size, unsigned timeout_s) MUST_USE;

/* Exactly size bytes of what is there. -ENOKEY when there is nothing, -EMSGSIZE when it is of another size. */
int keyring_get(const char *description, void *bytes, size_t size) MUST_USE;

/* Forgets it at once. -ENOKEY when there is nothing. */
int keyring_drop(const char *description) MUST_USE;
