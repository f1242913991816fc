/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is left of a trial once it is decided about: the names that its two states have, in itself and in the session
 * that it began with, so that no layers are kept for nobody. For `atoll dry-run` and `atoll discard`.
 */

#include "prog/atoll/verb/dry-run-record.h"

/* Forgets what the trial was shown to have left (its state stays). What is gone already is no error. */
int dry_run_forget_shown(const char *state, const char *trial, const struct dry_run_record *record,
			 struct err *err) MUST_USE;

/* Forgets the state of the origin that the trial began with. As above. */
int dry_run_forget_origin(const char *state, const struct dry_run_record *record, struct err *err) MUST_USE;

/*
 * The trial is dropped, not to be accepted any more; its staged changes are the caller's to discard. 0 too where the
 * session is none, or was decided about.
 */
int dry_run_drop(const char *state, const char *trial, struct err *err) MUST_USE;
