/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of escaped cells for people, as `atoll ps` shows them. What is in a cell may come from inside. It knows nothing
 * of sandboxes. Run by `atoll`.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { TABLE_COLUMNS = 8, TABLE_CELL_MAX = 60 };

/* A line of cells, each escaped and cut. */
struct table_row {
	char cells[TABLE_COLUMNS][TABLE_CELL_MAX * 2];
};

/* Escapes and cuts a text; "-" for "". */
void table_set(struct table_row *row, size_t column, const char *text);

/* The same of a path, of which the end is shown where it is too long: it tells more. */
void table_set_path(struct table_row *row, size_t column, const char *path);

/* Cuts all cells of a column to so many characters, of which the end stays. */
void table_keep_end(struct table_row *rows, size_t count, size_t column, size_t width);

/*
 * Appends the rows, in columns; on a terminal a line stays one line, for which the last column is cut (to least
 * characters, and no further).
 */
void table_put(struct buf *out, struct table_row *rows, size_t count, size_t least);

/* Whether standard output is a terminal, for which cells are to be cut. */
bool table_is_for_terminal(void);
