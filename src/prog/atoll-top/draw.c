/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/num.h"
#include "prog/atoll-top/terminal.h"
#include "prog/atoll-top/view.h"

/* The picture: totals, the list, below it the details where they are wanted, and a line for what is said and typed. */

enum { HEAD_ROWS = 2, FOOT_ROWS = 1, LIST_ROWS_MIN = 3, SPLIT_ROWS_MIN = 14, LINE_SIZE = 2048, BAR_WIDTH = 20,
       LABEL_WIDTH = 10, USED_WIDTH = 12, LIMIT_WIDTH = 15, DAY_WIDTH = 11,
       HELP_HEAD_ROWS = 1, HELP_LABEL_WIDTH = 12, HELP_WORDS_MIN = 10 };

static const enum terminal_style style_of[ATTENTION_COUNT] = {
	[ATTENTION_NONE] = STYLE_PLAIN, [ATTENTION_FAINT] = STYLE_FAINT, [ATTENTION_WARNING] = STYLE_WARNING,
	[ATTENTION_ALARM] = STYLE_ALARM,
};

/* A line of text being made. */
struct line {
	char memory[LINE_SIZE];
	struct buf text;
};

static struct buf *line_begin(struct line *line)
{
	buf_init_fixed(&line->text, line->memory, sizeof line->memory);
	return &line->text;
}

static void put_line(size_t row, const char *text, enum terminal_style style)
{
	terminal_put(&(struct terminal_text){ .row = row, .width = terminal_columns(), .text = text, .style = style });
}

/* ---- the list ---- */

/* On a small screen the details take the place of the list. */
static size_t body_rows(void)
{
	size_t rows = terminal_rows();

	return rows > HEAD_ROWS + FOOT_ROWS ? rows - HEAD_ROWS - FOOT_ROWS : 0;
}

size_t draw_list_rows(const struct view *view)
{
	size_t room = body_rows(), wanted;

	if (!view->has_details)
		return room;
	if (terminal_rows() < SPLIT_ROWS_MIN)
		return 0;
	wanted = room / 3 > LIST_ROWS_MIN ? room / 3 : LIST_ROWS_MIN;
	return view->count < wanted ? view->count ? view->count : 1 : wanted;
}

static void draw_head(const struct view *view, const struct column_place *places, size_t count)
{
	char title[32];
	struct line line;
	struct buf *text = line_begin(&line);
	size_t at = 0;

	buf_put_text(text, "atoll top  ");
	columns_totals(&view->inbox->rows, text);
	put_line(0, buf_text(text), STYLE_TITLE);
	put_line(1, "", STYLE_HEADING);
	for (size_t i = 0; i < count; i++) {
		const struct column_type *column = &columns[places[i].column];
		bool is_falling = (column->side == TEXT_RIGHT) != view->order.is_reversed;
		struct buf shown;

		buf_init_fixed(&shown, title, sizeof title);
		if (places[i].column == view->order.column)
			buf_put_char(&shown, is_falling ? '-' : '+');
		buf_put_text(&shown, column->title);
		terminal_put(&(struct terminal_text){ 1, at, places[i].width, buf_text(&shown), STYLE_HEADING,
						      column->side, false });
		at += places[i].width + 1;
	}
}

static void draw_row(const struct row *row, const struct column_place *places, size_t count,
		     const struct terminal_text *where)
{
	struct terminal_text cell = *where;
	struct line line;

	for (size_t i = 0; i < count; i++) {
		struct buf *text = line_begin(&line);

		columns[places[i].column].format(row, text);
		cell.width = places[i].width;
		cell.text = buf_text(text);
		cell.style = style_of[columns_attention(places[i].column, row)];
		cell.side = columns[places[i].column].side;
		terminal_put(&cell);
		cell.column += places[i].width;
		/* The bar has no gaps. */
		terminal_put(&(struct terminal_text){ .row = cell.row, .column = cell.column, .width = 1, .text = "",
						      .is_selected = cell.is_selected });
		cell.column++;
	}
}

static void draw_list(const struct view *view, const struct column_place *places, size_t count)
{
	size_t room = draw_list_rows(view);

	for (size_t i = 0; i < room && view->first + i < view->count; i++)
		draw_row(view->shown[view->first + i], places, count,
			 &(struct terminal_text){ .row = HEAD_ROWS + i,
						  .is_selected = view->first + i == view->at });
	if (!view->count && room)
		put_line(HEAD_ROWS, !view->inbox->rounds ? "looking for sandboxes …" :
				    *view->filter ? "no sandbox fits the filter; / and esc clear it" :
						    "no sandbox runs; `atoll run` starts one", STYLE_FAINT);
}

/* ---- the details ---- */

static void format_size(uint64_t value, char out[32])
{
	num_format_size_human(value, out);
}

static void format_time(uint64_t value, char out[32])
{
	num_format_duration_human(value, out);
}

static void format_cpus(uint64_t value, char out[32])
{
	struct buf text;

	buf_init_fixed(&text, out, 32);
	buf_printf(&text, "%llu.%02llu", (unsigned long long)(value / 1000), (unsigned long long)(value % 1000 / 10));
	(void)buf_text(&text);
}

static void format_count(uint64_t value, char out[32])
{
	struct buf text;

	buf_init_fixed(&text, out, 32);
	buf_put_u64_decimal(&text, value);
	(void)buf_text(&text);
}

static uint64_t used_memory(const struct row *row)
{
	return row->now.memory_bytes;
}

static uint64_t used_processes(const struct row *row)
{
	return row->now.processes;
}

static uint64_t used_output(const struct row *row)
{
	return row->now.output_bytes;
}

static uint64_t used_wall(const struct row *row)
{
	return row->now.uptime_ms;
}

static uint64_t used_cpu(const struct row *row)
{
	return row->now.cpu_ms;
}

static const struct {
	enum resource resource;
	const char *label;
	uint64_t (*used)(const struct row *row);
	void (*format)(uint64_t value, char out[32]);
} limits[] = {
	{ RESOURCE_MEMORY, "memory", used_memory, format_size },
	{ RESOURCE_CPUS, "cpus", row_millicpus, format_cpus },
	{ RESOURCE_PROCESSES, "processes", used_processes, format_count },
	{ RESOURCE_WALL_MS, "time", used_wall, format_time },
	{ RESOURCE_CPU_MS, "cpu time", used_cpu, format_time },
	{ RESOURCE_OUTPUT, "output", used_output, format_size },
};

static void put_bar(struct buf *out, uint64_t used, uint64_t limit)
{
	uint64_t filled = used >= limit ? BAR_WIDTH : (uint64_t)((double)used / (double)limit * BAR_WIDTH);

	buf_put_char(out, '[');
	for (uint64_t i = 0; i < BAR_WIDTH; i++)
		buf_put_char(out, i < filled ? '#' : '.');
	buf_put_char(out, ']');
}

static void draw_limit(const struct row *row, size_t which, size_t at)
{
	uint64_t used = limits[which].used(row), limit = row->limits[limits[which].resource];
	char used_text[32], limit_text[32];
	struct line line;
	struct buf *text = line_begin(&line);
	enum terminal_style style = STYLE_PLAIN;

	limits[which].format(used, used_text);
	text_put(text, limits[which].label, LABEL_WIDTH, TEXT_LEFT);
	text_put(text, used_text, USED_WIDTH, TEXT_RIGHT);
	if (limit == NUM_UNLIMITED || !limit) {
		buf_put_text(text, "  no limit");
	} else {
		limits[which].format(limit, limit_text);
		buf_put_text(text, " of ");
		text_put(text, limit_text, LIMIT_WIDTH, TEXT_LEFT);
		put_bar(text, used, limit);
		style = used >= limit / 10 * 9 ? STYLE_ALARM : used >= limit / 4 * 3 ? STYLE_WARNING : STYLE_PLAIN;
	}
	put_line(at, buf_text(text), style);
}

static void draw_traffic(const struct row *row, size_t at)
{
	char in[32], out[32], in_rate[32], out_rate[32];
	struct line line;
	struct buf *text = line_begin(&line);

	format_size(row->now.net_in, in);
	format_size(row->now.net_out, out);
	format_size(row_rate_in(row), in_rate);
	format_size(row_rate_out(row), out_rate);
	buf_printf(text, "network   in %s (%s/s)  out %s (%s/s)  connections %llu", in, in_rate, out, out_rate,
		   (unsigned long long)row->now.connections);
	put_line(at, buf_text(text), STYLE_PLAIN);
}

static void draw_events(const struct view *view, size_t at, size_t rows)
{
	for (size_t i = 0; i < rows; i++) {
		const char *line = events_at(&view->events, rows - 1 - i);

		if (!line)
			continue;
		/* Of the time the day is left out. */
		put_line(at + i, strlen(line) > DAY_WIDTH && line[DAY_WIDTH - 1] == ' ' ? line + DAY_WIDTH : line,
			 events_is_refusal(line) ? STYLE_ALARM : STYLE_PLAIN);
	}
}

/* A text in pieces, in the lines from *at on. False: it did not fit, and that is said instead of the last of it. */
static bool put_lines(size_t *at, size_t end, const char *text, enum terminal_style style)
{
	size_t width = terminal_columns();

	for (; *text && *at < end; ++*at) {
		size_t size = 0, used = 0;
		char piece[LINE_SIZE];

		/* What is not ASCII may take two columns. */
		while (text[size] && used + 2 <= width && size + 8 < sizeof piece) {
			used += (unsigned char)text[size] < 0x80 ? 1 : 2;
			do
				size++;
			while (((unsigned char)text[size] & 0xc0) == 0x80);
		}
		memcpy(piece, text, size);
		piece[size] = 0;
		text += size;
		put_line(*at, *at + 1 == end && *text ? "... more than fits here: `atoll ask`" : piece, style);
	}
	return !*text;
}

static void draw_question(struct view *view, const struct row *row, size_t *at, size_t end)
{
	const struct inbox_question *question = &view->inbox->question;
	struct line line;
	struct buf *text = line_begin(&line);

	view->has_seen_question = false;
	if (strcmp(question->id, row->id) != 0)
		return;
	buf_printf(text, "ASKS %u (y once, n no): %s", question->number, question->text);
	view->has_seen_question = !buf_error(text) && put_lines(at, end, buf_text(text), STYLE_ALARM);
}

static void draw_details(struct view *view, size_t at, size_t end)
{
	const struct row *row = view_selected(view);
	struct line line;
	struct buf *text = line_begin(&line);
	/* The log gets a third of the room at the least. */
	bool is_told = row && strcmp(view->logged, row->id) == 0;
	size_t events = (end - at) / 3 > 2 ? (end - at) / 3 : 2;

	if (!row)
		return;
	buf_printf(text, "%s %s  %s (%s)  %s%s", row->id, row->name, row->policy, row->level, row->project,
		   row->is_silent ? "  DOES NOT ANSWER" : "");
	put_line(at++, buf_text(text), STYLE_HEADING);
	draw_question(view, row, &at, end);
	if (at + events < end)
		put_line(at++, row->command, STYLE_PLAIN);
	for (size_t i = 0; i < ARRAY_SIZE(limits) && at + events + 1 < end; i++)
		draw_limit(row, i, at++);
	if (at + events + 1 < end)
		draw_traffic(row, at++);
	if (at < end)
		put_line(at++, is_told ? "LOG" : "LOG …", STYLE_HEADING);
	if (at < end && is_told)
		draw_events(view, at, end - at);
}

/* ---- the rest ---- */

/* ---- the help ---- */

/* Lines first and on are put on the screen as far as they fit; all are counted. */
struct help {
	size_t first, count;
	bool is_shown;
};

static void help_line(struct help *help, const char *label, const char *words, size_t size)
{
	size_t row = HELP_HEAD_ROWS + help->count - help->first;
	struct line line;
	struct buf *text = line_begin(&line);

	if (help->is_shown && help->count >= help->first && row < terminal_rows()) {
		buf_put_text(text, "  ");
		text_put(text, label, HELP_LABEL_WIDTH, TEXT_LEFT);
		buf_put(text, words, size);
		put_line(row, buf_text(text), STYLE_PLAIN);
	}
	help->count++;
}

/* Words that do not fit go on in the next line, below their like. */
static void help_entry(struct help *help, const char *label, const char *words)
{
	size_t across = terminal_columns(), indent = HELP_LABEL_WIDTH + 2;
	size_t width = across > indent + HELP_WORDS_MIN ? across - indent : HELP_WORDS_MIN;

	while (strlen(words) > width) {
		size_t size = width;

		while (size && words[size] != ' ')
			size--;
		size = size ? size : width;
		help_line(help, label, words, size);
		words += size + (words[size] == ' ');
		label = "";
	}
	help_line(help, label, words, strlen(words));
}

static size_t put_help(size_t first, bool is_shown)
{
	struct help help = { .first = first, .is_shown = is_shown };
	struct line line;
	struct buf *text = line_begin(&line);

	for (size_t i = 0; i < view_key_count; i++)
		if (view_keys[i].help)
			help_entry(&help, view_keys[i].label, view_keys[i].help);
	for (int i = 0; i < COLUMN_COUNT; i++)
		buf_printf(text, "%s%c %s", i ? ", " : "", columns[i].key, columns[i].name);
	help_entry(&help, "sort by", buf_text(text));
	return help.count;
}

size_t draw_help_rows(void)
{
	size_t rows = terminal_rows();

	return rows > HELP_HEAD_ROWS ? rows - HELP_HEAD_ROWS : 1;
}

size_t draw_help_last(void)
{
	size_t count = put_help(0, false), rows = draw_help_rows();

	return count > rows ? count - rows : 0;
}

static void draw_help(struct view *view)
{
	size_t last = draw_help_last();

	/* The screen may have grown. */
	if (view->help_first > last)
		view->help_first = last;
	put_line(0, last ? "keys (up, down: more; others: back)" : "atoll top: keys (any key goes back)", STYLE_TITLE);
	put_help(view->help_first, true);
}

static void draw_foot(const struct view *view)
{
	const struct row *row = view_selected(view);
	struct line line;
	struct buf *text = line_begin(&line);

	if (view->mode == VIEW_FILTER)
		buf_printf(text, "/%s_", view->filter);
	else if (view->mode == VIEW_STOP && row)
		buf_printf(text, "stop %s %s (%s)? y/n", row->id, row->name, row->command);
	else if (*view->notice)
		buf_put_text(text, view->notice);
	else if (*view->filter)
		buf_printf(text, "filter: %s", view->filter);
	else
		buf_put_text(text, "? help  enter details  / filter  x stop  q quit");
	put_line(terminal_rows() - 1, buf_text(text), view->mode == VIEW_LIST && !*view->notice ? STYLE_KEY
												  : STYLE_WARNING);
}

void draw(struct view *view)
{
	struct column_place places[COLUMN_COUNT];
	size_t count = columns_place(terminal_columns(), places);
	size_t list = draw_list_rows(view), end = HEAD_ROWS + body_rows();

	terminal_begin();
	if (view->mode == VIEW_HELP) {
		draw_help(view);
		terminal_show();
		return;
	}
	draw_head(view, places, count);
	draw_list(view, places, count);
	if (view->has_details && HEAD_ROWS + list < end)
		draw_details(view, HEAD_ROWS + list, end);
	draw_foot(view);
	terminal_show();
}
