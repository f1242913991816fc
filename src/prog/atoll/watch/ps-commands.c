/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/watch/ps-commands.h"

#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "prog/atoll/verb/commands.h"
#include "prog/atoll/verb/say.h"
#include "prog/atoll/watch/table.h"

enum { TEXT_MAX = 64 << 20, NS_PER_MS = 1000000, ROWS_STEP = 64, LEAST_WIDTH = 12 };

/* What was found so far: rows for people, or text. */
struct listing {
	const struct ps_commands *given;
	const char *session;
	struct table_row *rows;
	size_t count;
	struct buf text;
	struct json json;
};

static struct table_row *add_row(struct listing *listing)
{
	struct table_row *rows = listing->rows;

	if (listing->count % ROWS_STEP == 0)
		rows = reallocarray(rows, listing->count + ROWS_STEP, sizeof *rows);
	if (!rows)
		return NULL;
	listing->rows = rows;
	return &rows[listing->count++];
}

static int set_titles(struct listing *listing)
{
	static const char *const titles[TABLE_COLUMNS] = { "ID",  "NUMBER", "STATE",   "TIME",
							   "LASTS", "TAG",    "DIRECTORY", "COMMAND" };
	struct table_row *row = add_row(listing);

	for (size_t c = 0; row && c < TABLE_COLUMNS; c++)
		table_set(row, c, titles[c]);
	return row ? 0 : -ENOMEM;
}

static const char *state_of(const atoll_record *row, char *memory, size_t size)
{
	const char *ended = library_text(row, "ended");

	if (!ended)
		return library_number(row, "pid") ? "running" : "starting";
	if (str_format(memory, size, "%.20s %u", ended, (unsigned)library_number(row, "status")) < 0)
		return ended;
	return memory;
}

static const char *lasts_of(const atoll_record *row)
{
	return !library_number(row, "lasts") ? "" : library_number(row, "terminal") ? "terminal" : "yes";
}

/* The words side by side, as far as a cell may need them. */
static void set_words(struct table_row *cells, const atoll_record *row)
{
	const char *const *argv = NULL;
	char memory[TABLE_CELL_MAX * 4];
	struct buf words;

	buf_init_fixed(&words, memory, sizeof memory);
	if (!atoll_get_strings(row, "argv", &argv))
		argv = NULL;
	for (size_t i = 0; argv && argv[i] && words.size < TABLE_CELL_MAX * 2; i++)
		buf_printf(&words, "%s%.*s", i ? " " : "", TABLE_CELL_MAX, argv[i]);
	table_set(cells, 7, buf_text(&words));
}

static int put_row(struct listing *listing, const atoll_record *row)
{
	uint64_t now_ns = clock_realtime_ns(), started_ns = library_number(row, "started_ns");
	struct table_row *cells = add_row(listing);
	const char *tag = library_text(row, "tag"), *cwd = library_text(row, "cwd");
	char text[64];

	if (!cells)
		return -ENOMEM;
	table_set(cells, 0, listing->session);
	if (str_format(text, sizeof text, "%u", (unsigned)library_number(row, "number")) == 0)
		table_set(cells, 1, text);
	table_set(cells, 2, state_of(row, text, sizeof text));
	num_format_duration_human(now_ns > started_ns ? (now_ns - started_ns) / NS_PER_MS : 0, text);
	table_set(cells, 3, library_text(row, "ended") ? "" : text);
	table_set(cells, 4, lasts_of(row));
	table_set(cells, 5, tag ? tag : "");
	table_set_path(cells, 6, cwd ? cwd : "");
	set_words(cells, row);
	return 0;
}

static void put_json(struct listing *listing, const atoll_record *row)
{
	static const char *const flags[] = { "main", "lasts", "terminal" };
	static const char *const numbers[] = { "number", "pid", "attached", "dropped", "started_ns" };
	static const char *const texts[] = { "tag", "cwd", "ended" };
	struct json *json = &listing->json;
	const char *const *argv = NULL;

	json_object_begin(json, NULL);
	json_string(json, "session", listing->session);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		json_u64(json, numbers[i], library_number(row, numbers[i]));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		json_bool(json, flags[i], library_number(row, flags[i]));
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		json_string(json, texts[i], library_text(row, texts[i]));
	if (library_text(row, "ended"))
		json_u64(json, "status", library_number(row, "status"));
	json_array_begin(json, "argv");
	if (atoll_get_strings(row, "argv", &argv))
		for (; *argv; argv++)
			json_string(json, NULL, *argv);
	json_array_end(json);
	json_object_end(json);
}

static int look_at(void *context, atoll_record *row)
{
	struct listing *listing = context;

	if (library_text(row, "ended") && !listing->given->all)
		return 0;
	if (!listing->given->json)
		return put_row(listing, row);
	put_json(listing, row);
	return 0;
}

static int list_one(struct listing *listing, atoll_sandbox *sandbox, struct err *err)
{
	listing->session = atoll_id(sandbox);
	return commands_visit(sandbox, look_at, listing, err);
}

/* One that ends at this moment, or whose box is of an older version, is no reason to show nothing of the others. */
static int list_all(struct listing *listing, atoll_context *context, struct err *err)
{
	cleanup_record atoll_record *filter = atoll_record_new(ATOLL_FILTER), *info = NULL;
	cleanup_cursor atoll_cursor *cursor = NULL;
	struct atoll_error error = LIBRARY_ERROR;
	struct err ignored = { 0 };
	int r = atoll_set_u64(filter, "running", 1, &error);

	if (r == 0)
		r = atoll_list(context, filter, &cursor, &error);
	if (r < 0)
		return library_fail(&error, err);
	while ((r = library_next(cursor, &info, err)) == 1) {
		cleanup_sandbox atoll_sandbox *sandbox = NULL;

		r = atoll_find(context, library_text(info, "id"), &sandbox, &error);
		if (r == 0)
			r = list_one(listing, sandbox, &ignored);
		atoll_record_free(info);
		info = NULL;
		if (r == -ENOMEM)
			return r;
	}
	return r;
}

static int list_named(struct listing *listing, atoll_context *context, struct err *err)
{
	int r = 0;

	for (char **name = listing->given->names; r == 0 && *name; name++) {
		cleanup_sandbox atoll_sandbox *sandbox = NULL;

		r = library_find(context, *name, &sandbox, err);
		if (r == 0)
			r = list_one(listing, sandbox, err);
	}
	return r;
}

static int finish(struct listing *listing, struct err *err)
{
	if (listing->given->json) {
		json_array_end(&listing->json);
		buf_put_char(&listing->text, '\n');
	} else {
		buf_init(&listing->text, TEXT_MAX);
		table_put(&listing->text, listing->rows, listing->count, LEAST_WIDTH);
	}
	return say_out(&listing->text, err);
}

int ps_commands(const struct ps_commands *given, struct err *err)
{
	cleanup_context atoll_context *context = NULL;
	struct listing listing = { .given = given };
	int r = library_context(LIBRARY_EVENT(END), &context, err);

	if (r < 0)
		return r;
	buf_init(&listing.text, TEXT_MAX);
	json_init(&listing.json, &listing.text);
	if (given->json)
		json_array_begin(&listing.json, NULL);
	else
		r = set_titles(&listing);
	if (r == 0)
		r = given->names[0] ? list_named(&listing, context, err) : list_all(&listing, context, err);
	if (r == 0)
		r = finish(&listing, err);
	buf_done(&listing.text);
	free(listing.rows);
	return r < 0 && !err->code ? err_set(err, ERR_INTERNAL, -r, "ps", "out of memory") : r;
}
