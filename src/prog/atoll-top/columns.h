/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The columns of the table: what stands in each, how wide it is, which give way where there is no room for all, and
 * the order that each sorts by.
 */

#include <stdbool.h>
#include <stddef.h>

#include "prog/atoll-top/rows.h"
#include "prog/atoll-top/text.h"

enum column {
	COLUMN_ID, COLUMN_NAME, COLUMN_PROJECT, COLUMN_AGE, COLUMN_CPU, COLUMN_MEMORY, COLUMN_PROCESSES, COLUMN_IN,
	COLUMN_OUT, COLUMN_CHANGES, COLUMN_DENIED, COLUMN_ASKED, COLUMN_COMMAND, COLUMN_COUNT,
};

/* How much attention something needs. */
enum attention { ATTENTION_NONE, ATTENTION_FAINT, ATTENTION_WARNING, ATTENTION_ALARM, ATTENTION_COUNT };

struct column_type {
	const char *name;        /* for --sort */
	const char *title;
	char key;                /* that sorts by it */
	size_t width;
	enum text_side side;
	unsigned rank;           /* those with higher ones give way first */
	void (*format)(const struct row *row, struct buf *out);
	/* Less than 0: left comes first, most of something before less of it. */
	int (*compare)(const struct row *left, const struct row *right);
	enum attention (*attention)(const struct row *row);   /* NULL: never any */
};

extern const struct column_type columns[COLUMN_COUNT];

/* Those for which there is room, in order; the last takes what is left. The number of them. */
struct column_place {
	enum column column;
	size_t width;
};
size_t columns_place(size_t width, struct column_place places[COLUMN_COUNT]);

/* The column of this name, or -1. */
int columns_find(const char *name);

/* The rows that filter lets through, sorted, in out[TOP_SESSIONS_MAX]. The number of them. */
struct columns_order {
	enum column column;
	bool is_reversed;
	const char *filter;
};
size_t columns_sort(const struct rows *rows, const struct columns_order *order, struct row **out);

enum attention columns_attention(enum column column, const struct row *row);

/* "12 sandboxes  cpu 130 %  memory …": of all of them. */
void columns_totals(const struct rows *rows, struct buf *out);
