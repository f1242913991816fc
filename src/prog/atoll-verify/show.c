/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-verify/show.h"

#include <string.h>

#include "base/utf8.h"

enum { COLUMNS_SHOWN = 160, BEFORE_MARK = 40 };

static const char *const colours[SEVERITY_COUNT] = { "36", "33", "31", "1;31" };

static void put_coloured(const struct shown *shown, struct buf *out, const char *colour, const char *text)
{
	if (shown->has_colour)
		buf_printf(out, "\x1b[%sm%s\x1b[0m", colour, text);
	else
		buf_put_text(out, text);
}

/* One character of the source as it is shown; how many bytes it took, and columns in *ret_width. */
static size_t put_character(struct buf *out, const char *at, size_t size, size_t *ret_width)
{
	uint32_t rune;
	size_t used = utf8_decode((const uint8_t *)at, size, &rune), before = out->size;

	if (*at == '\t') {
		buf_put_text(out, "    ");
		*ret_width = 4;
		return 1;
	}
	if (used > 1 && !utf8_is_unsafe(rune)) {
		buf_put(out, at, used);
		*ret_width = 1;
		return used;
	}
	if (*at == '\\') {
		buf_put_char(out, '\\');
		*ret_width = 1;
		return 1;
	}
	used = used ? used : 1;
	buf_put_escaped(out, at, used, 0);
	*ret_width = out->size - before;
	return used;
}

/* The line of the span's beginning, and marks below what the span has of it. A long line is cut around it. */
static void put_source(const struct shown *shown, const struct finding *finding, struct buf *out)
{
	const struct verify_result *result = shown->result;
	size_t start = finding->span.start < result->text_size ? finding->span.start : result->text_size;
	size_t line = start, end, begin_mark = 0, marks = 0, shown_width = 0;
	const char *newline;

	while (line > 0 && result->text[line - 1] != '\n')
		line--;
	newline = memchr(result->text + line, '\n', result->text_size - line);
	end = newline ? (size_t)(newline - result->text) : result->text_size;
	buf_printf(out, "%6u | ", finding->line);
	if (start - line > COLUMNS_SHOWN - BEFORE_MARK) {
		line = start - BEFORE_MARK;
		while (line < start && ((unsigned char)result->text[line] & 0xc0) == 0x80)
			line++;
		buf_put_text(out, "…");
		shown_width = 1;
	}
	while (line < end && shown_width < COLUMNS_SHOWN) {
		size_t width, used = put_character(out, result->text + line, end - line, &width);

		if (line < start)
			begin_mark = shown_width + width;
		else if (line < finding->span.end)
			marks += width;
		if (line >= start && !marks)
			begin_mark = shown_width;
		shown_width += width;
		line += used;
	}
	buf_put_text(out, line < end ? "…\n       | " : "\n       | ");
	for (size_t i = 0; i < begin_mark; i++)
		buf_put_char(out, ' ');
	if (shown->has_colour)
		buf_printf(out, "\x1b[%sm", colours[finding->severity]);
	for (size_t i = 0; i < (marks ? marks : 1); i++)
		buf_put_char(out, '^');
	buf_put_text(out, shown->has_colour ? "\x1b[0m\n" : "\n");
}

void show_findings(const struct shown *shown, struct buf *out)
{
	const struct verify_result *result = shown->result;
	unsigned counts[SEVERITY_COUNT] = { 0 };
	bool is_first = true;

	for (size_t i = 0; i < result->count; i++) {
		const struct finding *finding = &result->findings[i];

		counts[finding->severity]++;
		buf_put_escaped(out, shown->name, strlen(shown->name), 200);
		buf_printf(out, ":%u:%u: ", finding->line, finding->column);
		put_coloured(shown, out, colours[finding->severity], severity_names[finding->severity]);
		buf_put_text(out, ": ");
		put_coloured(shown, out, "1", finding->reason);
		buf_printf(out, " [%s, %s]\n", finding->id, confidence_names[finding->confidence]);
		put_source(shown, finding, out);
		if (*finding->instead)
			buf_printf(out, "       = instead: %s\n", finding->instead);
	}
	buf_put_escaped(out, shown->name, strlen(shown->name), 200);
	buf_printf(out, " (%s): ", language_name(result->language));
	for (int severity = SEVERITY_CRITICAL; severity >= SEVERITY_LOW; severity--) {
		if (!counts[severity])
			continue;
		buf_printf(out, "%s%u %s", is_first ? "" : ", ", counts[severity], severity_names[severity]);
		is_first = false;
	}
	buf_put_text(out, is_first ? "nothing found\n" : "\n");
}
