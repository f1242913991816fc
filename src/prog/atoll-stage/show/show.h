/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The three ways in which `atoll diff` shows a listing. Every name and every byte of a file may be hostile: on a
 * terminal nothing of it arrives unescaped; in a pipe names are quoted and contents are exact.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "prog/atoll-stage/review/listing.h"
#include "text/worker.h"

struct show {
	const struct listing *listing;  /* borrowed */
	struct text_worker *worker;     /* borrowed; NULL: lines are not counted */
	bool flagged_only;
};

/* A line for each change, and a summary. */
int show_stat(const struct show *show, struct err *err) MUST_USE;

/* A unified difference for each, in git's form. */
int show_patch(const struct show *show, struct err *err) MUST_USE;

/* One JSON object (doc/format/stage.md), written as it is made. */
int show_json(const struct show *show, struct err *err) MUST_USE;

/* Whether it is shown at all in what people read. */
bool show_has(const struct show *show, const struct listed *listed);

/* Writes out to stdout and empties it. -EPIPE is left to the caller. */
int show_flush(struct buf *out, struct err *err) MUST_USE;

/* "file", "directory", "symlink", "fifo", "socket", "device". */
const char *show_type(mode_t mode);

/* Whether others may write it, which is said of what is new. A link has no mode, and a sticky directory is for that. */
bool show_mode_is_open(mode_t mode);

/*
 * A line of a unified difference, which begins with its mark and has no newline: coloured by the mark, and escaped for
 * a terminal but for tabs.
 */
void show_put_line(const char *line, size_t size, bool escapes, bool has_colour, struct buf *out);
