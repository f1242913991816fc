/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-top/plain.h"

#include <string.h>

#include "os/fd.h"

enum { OUT_MAX = 64 << 20, CELL_MAX = 1024 };

static size_t width_of(enum column column, struct row *const *rows, size_t count)
{
	size_t widest = text_width(columns[column].title);
	char memory[CELL_MAX];
	struct buf cell;

	for (size_t i = 0; i < count; i++) {
		size_t width;

		buf_init_fixed(&cell, memory, sizeof memory);
		columns[column].format(rows[i], &cell);
		width = text_width(buf_text(&cell));
		if (width > widest)
			widest = width;
	}
	return widest;
}

static void put_cell(struct buf *out, enum column column, const char *text, size_t width)
{
	if (column == COLUMN_COMMAND) {
		buf_put_text(out, text);
		buf_put_char(out, '\n');
	} else {
		text_put(out, text, width, columns[column].side);
		buf_put_text(out, "  ");
	}
}

/* As wide as it needs to be: nothing is cut. */
static void put_table(struct row *const *rows, size_t count, struct buf *out)
{
	size_t widths[COLUMN_COUNT];
	char memory[CELL_MAX];
	struct buf cell;

	for (int c = 0; c < COLUMN_COUNT; c++) {
		widths[c] = width_of((enum column)c, rows, count);
		put_cell(out, (enum column)c, columns[c].title, widths[c]);
	}
	for (size_t i = 0; i < count; i++)
		for (int c = 0; c < COLUMN_COUNT; c++) {
			buf_init_fixed(&cell, memory, sizeof memory);
			columns[c].format(rows[i], &cell);
			put_cell(out, (enum column)c, buf_text(&cell), widths[c]);
		}
}

int plain_show(const struct rows *rows, const struct columns_order *order, bool as_json, struct err *err)
{
	struct row *sorted[TOP_SESSIONS_MAX];
	size_t count = columns_sort(rows, order, sorted);
	cleanup_buf struct buf out;
	int r = 0;

	buf_init(&out, OUT_MAX);
	if (as_json)
		r = rows_to_json(sorted, count, &out);
	else
		put_table(sorted, count, &out);
	if (r == 0)
		r = buf_error(&out);
	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, out.bytes, out.size);
	return r < 0 ? err_set(err, ERR_STATE, -r, "top", "stdout cannot be written: %s", strerror(-r)) : 0;
}
