/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The changes of a session as the items of an apply: which of them are wanted, and why others are left from the start.
 * It walks and judges, and writes nothing; apply_complete() of the library goes on from there.
 */

#include "prog/atoll-stage/review/classifier.h"
#include "prog/atoll-stage/verb/path-filter.h"
#include "stage/apply/apply.h"

struct selection {
	const struct opened *opened;     /* borrowed */
	struct stage_changes changes;    /* owned */
	struct apply_item *items;        /* owned; one for each change */
};

/* Walks all trees and judges: nothing is written. The program is confined by now. */
int selection_load(struct selection *ret_selection, const struct opened *opened, struct path_filter *filter,
		  struct err *err) MUST_USE;
void selection_done(struct selection *selection);
