/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/watch/table.h"

#include <string.h>
#include <unistd.h>

#include "os/pty.h"

void table_set(struct table_row *row, size_t column, const char *text)
{
	struct buf cell;

	buf_init_fixed(&cell, row->cells[column], sizeof row->cells[column]);
	buf_put_escaped(&cell, text, strlen(text), TABLE_CELL_MAX);
	if (buf_text(&cell)[0] == 0)
		row->cells[column][0] = '-', row->cells[column][1] = 0;
}

void table_set_path(struct table_row *row, size_t column, const char *path)
{
	size_t length = strlen(path);
	const char *end = path + (length > TABLE_CELL_MAX ? length - (TABLE_CELL_MAX - 8) : 0);
	struct buf cell;

	if (end == path) {
		table_set(row, column, path);
		return;
	}
	while (((unsigned char)*end & 0xc0) == 0x80)
		end++;
	buf_init_fixed(&cell, row->cells[column], sizeof row->cells[column]);
	buf_put_text(&cell, "…");
	buf_put_escaped(&cell, end, strlen(end), TABLE_CELL_MAX);
	(void)buf_text(&cell);
}

/* Characters, not bytes: continuation bytes take no column. */
static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* The byte where character number skip begins. */
static char *at_character(char *text, size_t skip)
{
	for (; *text; text++)
		if (((unsigned char)*text & 0xc0) != 0x80 && skip-- == 0)
			break;
	return text;
}

static const char cut[] = "…";

/* Of a path the end tells more. A cell has room for the mark. */
static void keep_end(char *cell, size_t width)
{
	size_t had = width_of(cell);
	char *end;

	if (had <= width)
		return;
	end = at_character(cell, had - width + 1);
	memmove(cell + sizeof cut - 1, end, strlen(end) + 1);
	memcpy(cell, cut, sizeof cut - 1);
}

static void keep_start(char *cell, size_t width)
{
	if (width_of(cell) > width)
		memcpy(at_character(cell, width - 1), cut, sizeof cut);
}

void table_keep_end(struct table_row *rows, size_t count, size_t column, size_t width)
{
	for (size_t i = 0; i < count; i++)
		keep_end(rows[i].cells[column], width);
}

bool table_is_for_terminal(void)
{
	struct pty_size size;

	return pty_get_size(STDOUT_FILENO, &size) == 0 && size.columns;
}

static void measure(const struct table_row *rows, size_t count, size_t widths[TABLE_COLUMNS])
{
	for (size_t i = 0; i < count; i++)
		for (size_t c = 0; c < TABLE_COLUMNS; c++)
			if (width_of(rows[i].cells[c]) > widths[c])
				widths[c] = width_of(rows[i].cells[c]);
}

static void cut_last(struct table_row *rows, size_t count, const size_t widths[TABLE_COLUMNS], size_t least)
{
	struct pty_size size;
	size_t used = 0;

	if (pty_get_size(STDOUT_FILENO, &size) < 0 || !size.columns)
		return;
	for (size_t c = 0; c + 1 < TABLE_COLUMNS; c++)
		used += widths[c] + 2;
	for (size_t i = 0; i < count; i++)
		keep_start(rows[i].cells[TABLE_COLUMNS - 1],
			   size.columns > used + least ? size.columns - used : least);
}

void table_put(struct buf *out, struct table_row *rows, size_t count, size_t least)
{
	size_t widths[TABLE_COLUMNS] = { 0 };

	measure(rows, count, widths);
	cut_last(rows, count, widths, least);
	for (size_t i = 0; i < count; i++) {
		for (size_t c = 0; c + 1 < TABLE_COLUMNS; c++)
			buf_printf(out, "%s%*s", rows[i].cells[c],
				   (int)(widths[c] - width_of(rows[i].cells[c]) + 2), "");
		buf_printf(out, "%s\n", rows[i].cells[TABLE_COLUMNS - 1]);
	}
}
