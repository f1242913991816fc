/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll dry-run` says, to people and as JSON, and what it asks them. Hostile bytes were escaped by the confined
 * programs that read them.
 */

#include "prog/atoll/run/dry-run-state.h"

/* What came of the trial, to stderr; nothing with --json or --quiet. */
int dry_run_show(struct dry_run *dry, struct err *err) MUST_USE;

/* Asks on the terminal whether it shall be done for real; without one nobody is asked. Sets is_refused on a no. */
bool dry_run_ask(struct dry_run *dry);

/* It came out otherwise: shows how, and asks whether it shall stay. Without a terminal: false. */
bool dry_run_ask_again(struct dry_run *dry);

/* It came out otherwise in a session that runs, and shall not stay: whether to go back at once. As above. */
bool dry_run_ask_back(struct dry_run *dry);

/* What was done in the end: words to stderr, or one JSON object to stdout. */
int dry_run_tell(struct dry_run *dry, struct err *err) MUST_USE;
