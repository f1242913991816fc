/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Findings for people and for programs. Everything that comes from the text is escaped: nothing in it reaches a
 * terminal.
 */

#include "base/buf.h"
#include "verify/verify.h"

struct shown {
	const char *name;   /* of what was judged: a path, "-" */
	const struct verify_result *result;
	bool has_colour;
};

/* Each finding with its line of the source underlined, then a summary. */
void show_findings(const struct shown *shown, struct buf *out);

/* One JSON object (atoll-verify(1)). */
void show_json(const struct shown *shown, struct buf *out);

/* SARIF 2.1.0 (OASIS): one run, a result for each finding. */
void show_sarif(const struct shown *shown, struct buf *out);
