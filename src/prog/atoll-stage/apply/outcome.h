/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll apply` and `atoll undo` tell: what was done, how to take it back, and each path that was left with the
 * reason. For people in lines, names escaped; with --json exact.
 */

#include "base/buf.h"
#include "base/json.h"
#include "prog/atoll-stage/verb/opened.h"

/* The shown form of a path of a tree, for people: without the base, escaped, cut where it is very long. */
void outcome_put_path(const struct opened *opened, size_t tree, const char *path, struct buf *out);

/* The whole path, exactly. */
void outcome_put_json_path(const struct opened *opened, size_t tree, const char *path, struct json *json);

/* "3 files (1 modified, 2 added)"; counts by stage_change_kind. */
void outcome_put_counts(const size_t counts[STAGE_CHANGE_KIND_COUNT], struct buf *out);

/* Progress of long work on a terminal's stderr; erased by outcome_end_progress(). For transaction_place.progress. */
void outcome_progress(void *context, const char *phase, size_t done, size_t total);
void outcome_end_progress(void);
