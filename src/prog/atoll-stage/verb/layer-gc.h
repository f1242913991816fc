/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the verbs that change layers have in common: their confinement, and removing what nothing names. They read no
 * content of a file.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "stage/snapshot/lock.h"

/*
 * Gives up everything but the sessions directory, where files may be made and removed, and reading the staged trees of
 * the record (NULL: none).
 */
int layer_gc_confine(int sessions_fd, const struct stage_record *record, struct err *err) MUST_USE;

/* Removes the layers of the held session that no chain and no snapshot of any session names. */
int layer_gc_layers(const struct stage_lock *lock, struct err *err) MUST_USE;

/* Notes in the session's record whether it holds staged changes; nothing happens while its box lives. */
int layer_gc_mark(const struct stage_lock *lock, bool is_staged, struct err *err) MUST_USE;
