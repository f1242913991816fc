/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-top/columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

/* What is left over for the last column, at the least; and what it may take with it where nothing is left. */
enum { LAST_MIN = 10, GAP = 1, MILLI = 1000 };

static void put_size(struct buf *out, uint64_t bytes)
{
	char text[32];

	num_format_size_human(bytes, text);
	buf_put_text(out, text);
}

/* "9 s", "12 min", "3 h 05", "4 d 02 h". */
static void put_age(struct buf *out, uint64_t ms)
{
	uint64_t s = ms / MILLI, minutes = s / 60, hours = minutes / 60;

	if (s < 100)
		buf_printf(out, "%llu s", (unsigned long long)s);
	else if (minutes < 100)
		buf_printf(out, "%llu min", (unsigned long long)minutes);
	else if (hours < 48)
		buf_printf(out, "%llu h %02llu", (unsigned long long)hours, (unsigned long long)(minutes % 60));
	else
		buf_printf(out, "%llu d %02llu", (unsigned long long)(hours / 24), (unsigned long long)(hours % 24));
}

static void put_percent(struct buf *out, uint64_t millicpus)
{
	buf_printf(out, "%llu.%llu", (unsigned long long)(millicpus / 10), (unsigned long long)(millicpus % 10));
}

static void format_id(const struct row *row, struct buf *out)
{
	buf_put_text(out, row->id);
}

static void format_name(const struct row *row, struct buf *out)
{
	buf_put_text(out, *row->name ? row->name : "-");
}

static void format_project(const struct row *row, struct buf *out)
{
	const char *name = path_basename(row->project);

	buf_put_text(out, *name ? name : row->project);
}

static void format_age(const struct row *row, struct buf *out)
{
	put_age(out, row->now.uptime_ms);
}

static void format_cpu(const struct row *row, struct buf *out)
{
	put_percent(out, row_millicpus(row));
}

static void format_memory(const struct row *row, struct buf *out)
{
	put_size(out, row->now.memory_bytes);
}

static void format_processes(const struct row *row, struct buf *out)
{
	buf_put_u64_decimal(out, row->now.processes);
}

static void format_in(const struct row *row, struct buf *out)
{
	put_size(out, row->now.net_in);
}

static void format_out(const struct row *row, struct buf *out)
{
	put_size(out, row->now.net_out);
}

static void format_changes(const struct row *row, struct buf *out)
{
	if (row->now.has_changes)
		buf_printf(out, "%llu%s", (unsigned long long)row->now.changes,
			   row->now.has_more_changes ? "+" : "");
	else
		buf_put_char(out, '-');
}

static void format_denied(const struct row *row, struct buf *out)
{
	buf_put_u64_decimal(out, row->now.denials);
}

static void format_asked(const struct row *row, struct buf *out)
{
	buf_put_u64_decimal(out, row->now.questions);
}

static void format_command(const struct row *row, struct buf *out)
{
	buf_put_text(out, row->command);
}

#define COMPARE_NUMBER(name, value)                                                     \
	static int compare_##name(const struct row *left, const struct row *right)      \
	{                                                                               \
		const struct row *row = left;                                           \
		uint64_t of_left = (value), of_right;                                   \
											\
		row = right;                                                            \
		of_right = (value);                                                     \
		return of_left == of_right ? 0 : of_left > of_right ? -1 : 1;           \
	}

COMPARE_NUMBER(age, row->now.uptime_ms)
COMPARE_NUMBER(cpu, row_millicpus(row))
COMPARE_NUMBER(memory, row->now.memory_bytes)
COMPARE_NUMBER(processes, row->now.processes)
COMPARE_NUMBER(in, row->now.net_in)
COMPARE_NUMBER(out, row->now.net_out)
COMPARE_NUMBER(changes, row->now.changes)
COMPARE_NUMBER(denied, row->now.denials)
COMPARE_NUMBER(asked, row->now.questions)

static int compare_id(const struct row *left, const struct row *right)
{
	return strcmp(left->id, right->id);
}

static int compare_name(const struct row *left, const struct row *right)
{
	return strcmp(left->name, right->name);
}

static int compare_project(const struct row *left, const struct row *right)
{
	return strcmp(left->project, right->project);
}

static int compare_command(const struct row *left, const struct row *right)
{
	return strcmp(left->command, right->command);
}

static enum attention of_share(uint64_t used, uint64_t limit)
{
	if (limit == NUM_UNLIMITED || !limit)
		return ATTENTION_NONE;
	return used >= limit / 10 * 9 ? ATTENTION_ALARM : used >= limit / 4 * 3 ? ATTENTION_WARNING : ATTENTION_NONE;
}

static enum attention attention_cpu(const struct row *row)
{
	return of_share(row_millicpus(row), row->limits[RESOURCE_CPUS]);
}

static enum attention attention_memory(const struct row *row)
{
	return of_share(row->now.memory_bytes, row->limits[RESOURCE_MEMORY]);
}

static enum attention attention_processes(const struct row *row)
{
	return of_share(row->now.processes, row->limits[RESOURCE_PROCESSES]);
}

static enum attention attention_denied(const struct row *row)
{
	if (row->before_ns && row->now.denials > row->before.denials)
		return ATTENTION_ALARM;
	return row->now.denials ? ATTENTION_WARNING : ATTENTION_NONE;
}

static enum attention attention_asked(const struct row *row)
{
	return row->now.questions ? ATTENTION_ALARM : ATTENTION_NONE;
}

const struct column_type columns[COLUMN_COUNT] = {
	[COLUMN_ID] = { "id", "ID", 'S', 12, TEXT_LEFT, 0, format_id, compare_id },
	[COLUMN_NAME] = { "name", "NAME", 'N', 10, TEXT_LEFT, 5, format_name, compare_name },
	[COLUMN_PROJECT] = { "project", "PROJECT", 'J', 14, TEXT_LEFT, 9, format_project, compare_project },
	[COLUMN_AGE] = { "age", "AGE", 'T', 7, TEXT_RIGHT, 7, format_age, compare_age },
	[COLUMN_CPU] = { "cpu", "CPU%", 'P', 6, TEXT_RIGHT, 1, format_cpu, compare_cpu,
		attention_cpu },
	[COLUMN_MEMORY] = { "memory", "MEMORY", 'M', 9, TEXT_RIGHT, 2, format_memory, compare_memory,
		attention_memory },
	[COLUMN_PROCESSES] = { "processes", "PROCS", 'R', 5, TEXT_RIGHT, 6, format_processes, compare_processes,
		attention_processes },
	[COLUMN_IN] = { "in", "NET IN", 'I', 9, TEXT_RIGHT, 10, format_in, compare_in },
	[COLUMN_OUT] = { "out", "NET OUT", 'O', 9, TEXT_RIGHT, 11, format_out, compare_out },
	[COLUMN_CHANGES] = { "changes", "CHANGES", 'C', 7, TEXT_RIGHT, 8, format_changes, compare_changes },
	[COLUMN_DENIED] = { "denied", "DENIED", 'D', 6, TEXT_RIGHT, 3, format_denied, compare_denied,
		attention_denied },
	[COLUMN_ASKED] = { "asked", "ASKED", 'A', 5, TEXT_RIGHT, 4, format_asked, compare_asked,
		attention_asked },
	[COLUMN_COMMAND] = { "command", "COMMAND", 'W', 0, TEXT_LEFT, 0, format_command, compare_command },
};

int columns_find(const char *name)
{
	for (int i = 0; i < COLUMN_COUNT; i++)
		if (str_equal(columns[i].name, name))
			return i;
	return -1;
}

size_t columns_place(size_t width, struct column_place places[COLUMN_COUNT])
{
	bool is_in[COLUMN_COUNT] = { [COLUMN_ID] = true, [COLUMN_COMMAND] = true };
	size_t used = columns[COLUMN_ID].width + GAP + LAST_MIN, count = 0;

	for (unsigned rank = 1; rank < COLUMN_COUNT; rank++)
		for (int i = 0; i < COLUMN_COMMAND; i++) {
			size_t needed = columns[i].width + GAP;

			if (columns[i].rank != rank || used + needed > width)
				continue;
			is_in[i] = true;
			used += needed;
		}
	for (int i = 0; i < COLUMN_COUNT; i++)
		if (is_in[i])
			places[count++] = (struct column_place){ (enum column)i, columns[i].width };
	used -= LAST_MIN;
	places[count - 1].width = width > used ? width - used : 1;
	return count;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct row *const *one = left, *const *other = right;
	const struct columns_order *order = context;
	int r = columns[order->column].compare(*one, *other);

	/* Equal ones keep their places from look to look. */
	if (r == 0)
		return compare_id(*one, *other);
	return order->is_reversed ? -r : r;
}

size_t columns_sort(const struct rows *rows, const struct columns_order *order, struct row **out)
{
	struct columns_order copy = *order;
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (row_matches(rows->items[i], order->filter))
			out[count++] = rows->items[i];
	qsort_r(out, count, sizeof *out, compare_rows, &copy);
	return count;
}

enum attention columns_attention(enum column column, const struct row *row)
{
	if (row->is_silent || !row->now_ns)
		return ATTENTION_FAINT;
	return columns[column].attention ? columns[column].attention(row) : ATTENTION_NONE;
}

void columns_totals(const struct rows *rows, struct buf *out)
{
	uint64_t millicpus = 0, memory = 0, processes = 0, in = 0, out_rate = 0, denials = 0, alerts = 0, questions = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const struct row *row = rows->items[i];

		millicpus += row_millicpus(row);
		memory += row->now.memory_bytes;
		processes += row->now.processes;
		in += row_rate_in(row);
		out_rate += row_rate_out(row);
		denials += row->now.denials;
		alerts += row->now.alerts;
		questions += row->now.questions;
	}
	buf_printf(out, "%zu %s", rows->count, rows->count == 1 ? "sandbox" : "sandboxes");
	if (rows->left_out)
		buf_printf(out, " (%u more)", rows->left_out);
	buf_put_text(out, "  cpu ");
	put_percent(out, millicpus);
	buf_put_text(out, "%  memory ");
	put_size(out, memory);
	buf_printf(out, "  processes %llu  denied %llu", (unsigned long long)processes, (unsigned long long)denials);
	if (alerts)
		buf_printf(out, "  alerts %llu", (unsigned long long)alerts);
	buf_printf(out, "  asked %llu  in ", (unsigned long long)questions);
	put_size(out, in);
	buf_put_text(out, "/s  out ");
	put_size(out, out_rate);
	buf_put_text(out, "/s");
}
