/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/yaml/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

void diag_add(struct diags *diags, struct place place, const char *format, ...)
{
	char message[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	if (diags->count < DIAGS_MAX) {
		const char *copy = arena_text(diags->arena, message);

		diags->items[diags->count] = (struct diag){ place, copy ? copy : "out of memory" };
	}
	diags->count++;
}

static size_t shown(const struct diags *diags)
{
	return diags->count < DIAGS_MAX ? diags->count : DIAGS_MAX;
}

static bool is_behind(const struct place *a, const struct place *b)
{
	return str_equal(a->file, b->file) && (a->line > b->line || (a->line == b->line && a->column > b->column));
}

/* By insertion, which keeps the order of what stands in one place; there are few of them. */
void diags_sort(struct diags *diags)
{
	for (size_t i = 1; i < shown(diags); i++) {
		struct diag diag = diags->items[i];
		size_t at = i;

		for (; at > 0 && is_behind(&diags->items[at - 1].place, &diag.place); at--)
			diags->items[at] = diags->items[at - 1];
		diags->items[at] = diag;
	}
}

static void put(const struct diags *diags, const char *before, const char *many, struct buf *out)
{
	for (size_t i = 0; i < shown(diags); i++) {
		const struct diag *diag = &diags->items[i];

		if (diag->place.file[0]) {
			buf_put_escaped(out, diag->place.file, strlen(diag->place.file), 0);
			if (diag->place.line)
				buf_printf(out, ":%u:%u", diag->place.line, diag->place.column);
			buf_put_text(out, ": ");
		} else {
			/* Of no file, but of what was typed. */
			buf_put_text(out, "atoll: ");
		}
		buf_put_text(out, before);
		buf_put_escaped(out, diag->message, strlen(diag->message), 0);
		buf_put_char(out, '\n');
	}
	if (diags->count > DIAGS_MAX)
		buf_printf(out, "and %zu more %s\n", diags->count - DIAGS_MAX, many);
}

void diags_put(const struct diags *diags, struct buf *out)
{
	put(diags, "", "errors", out);
}

void diags_put_warnings(const struct diags *diags, struct buf *out)
{
	put(diags, "warning: ", "warnings", out);
}

void diags_put_json(const struct diags *diags, const char *name, struct json *json)
{
	json_array_begin(json, name);
	for (size_t i = 0; i < shown(diags); i++) {
		const struct diag *diag = &diags->items[i];

		json_object_begin(json, NULL);
		json_bytes(json, "file", diag->place.file, strlen(diag->place.file));
		json_u64(json, "line", diag->place.line);
		json_u64(json, "column", diag->place.column);
		json_string(json, "message", diag->message);
		json_object_end(json);
	}
	json_array_end(json);
}
