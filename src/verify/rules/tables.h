/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The tables of model/tables.h as files and frames have them: what is read with the rules, is kept with them and comes
 * back with them. Only for load.c, finish.c and form.c.
 */

#include "verify/rules/read.h"
#include "wire/frame.h"

/* For the keys of a file that are called so; target is not used. */
void tables_read_code_options(struct loader *loader, const struct node *node, void *target);
void tables_read_editors(struct loader *loader, const struct node *node, void *target);
void tables_read_programs(struct loader *loader, const struct node *node, void *target);
void tables_read_transfers(struct loader *loader, const struct node *node, void *target);
void tables_read_trials(struct loader *loader, const struct node *node, void *target);
void tables_read_verbs_first(struct loader *loader, const struct node *node, void *target);
void tables_read_wrappers(struct loader *loader, const struct node *node, void *target);
void tables_read_languages(struct loader *loader, const struct node *node, void *target);

/* Sorts them once all files are there; two rows of one name are errors in diags. */
void tables_finish(struct tables *tables, struct diags *diags);

/*
 * Whether there is any program, wrapper, transfer, trial, code option, line of an editor, and any call of each
 * language: judging without is blind.
 */
bool tables_are_whole(const struct tables *tables);

/* As fields of a frame (doc/format/verify-rules.md). */
void tables_put(struct buf *out, const struct tables *tables);

/*
 * Reads those fields; texts stay in the frame's bytes, rows are in the arena. False, and an error of the frame, for
 * anything that tables_put() does not write: a number without a meaning, rows that are not sorted.
 */
bool tables_get(struct frame *frame, struct arena *arena, struct tables *tables) MUST_USE;
