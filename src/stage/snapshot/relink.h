/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeps files of several names together in a session that begins on the layers of another: they are copied, with all
 * their names and the directories that those are in, into its live uppers, where the kernel's overlay knows them for
 * one file. Run by atoll-stage before anything is mounted.
 */

#include "base/err.h"
#include "stage/layer/linked.h"
#include "stage/snapshot/lock.h"

/*
 * For the locked session, whose live uppers are empty: all files that have two names or more in what its chain shows,
 * up to STAGE_LINKED_BYTES_MAX. Costs a walk of the layers and the copies (reflinks where the file system has them).
 * What it shows stays the same at every point. 0 and *ret_linked; -errno with *err.
 */
int stage_relink(const struct stage_lock *lock, struct stage_linked *ret_linked, struct err *err) MUST_USE;
