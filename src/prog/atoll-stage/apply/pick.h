/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll apply -i`: a person says of each change, and of each hunk of a text, whether it is taken. Names and contents
 * are hostile: what is shown goes through the escaper, and what is answered is read as one letter a line. Nothing is
 * written to the host; apply_run() does that later, and leaves what is no longer as it was shown. Run by atoll-stage.
 */

#include "base/err.h"
#include "prog/atoll-stage/apply/made-files.h"
#include "stage/apply/apply.h"
#include "text/worker.h"

struct pick_options {
	const struct opened *opened;  /* borrowed, like all here */
	struct text_worker *worker;
	struct made_files *files;     /* with room for all items: texts of which a part is taken */
	bool dry_run;                 /* make no files */
};

/*
 * Asks on stdin and stdout about what is APPLY_TAKEN or APPLY_FLAGGED, and makes the rest APPLY_UNWANTED. A yes about a
 * flagged path is the consent that it needs. Before apply_complete(). -ECANCELED with *err: the answers ended before
 * the questions, so nothing is to be applied.
 */
int pick_run(const struct pick_options *options, struct apply *apply, struct err *err) MUST_USE;
