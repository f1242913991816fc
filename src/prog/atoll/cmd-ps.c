/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "box/publish.h"
#include "limit/limit.h"
#include "os/clock.h"
#include "os/fd.h"
#include "policy/publish.h"
#include "prog/atoll/client.h"
#include "prog/atoll/cmd.h"
#include "prog/atoll/say.h"
#include "stage/chain.h"

enum {
	PS_TEXT_MAX = 64 << 20,
	NS_PER_MS = 1000000,
	COLUMN_COUNT = 8,
	CELL_MAX = 60,
	PUBLISHED_MAX = 4096,
};

struct ps_options {
	bool all, json, quiet;
};

static const struct option options[] = {
	{ 'a', "all", NULL, "also those that have ended", OPTION_FLAG, offsetof(struct ps_options, all) },
	{ 'q', "quiet", NULL, "ids only, one a line", OPTION_FLAG, offsetof(struct ps_options, quiet) },
	{ 0, "json", NULL, "one JSON array", OPTION_FLAG, offsetof(struct ps_options, json) },
};

const struct cmd_options cmd_ps_options = { options, ARRAY_SIZE(options) };

/* "lost": its box died without a word; the record was closed by its guardian, or by nobody. */
static const char *state_of(const struct session_record *record)
{
	if (record->is_live)
		return "running";
	return record->ended_ns && !str_equal(record->ended, "lost") ? "ended" : "lost";
}

/* What the state directory holds. */
struct listed {
	const char *state;
	const struct session_record *records;
	size_t count;
};

/*
 * The session that a fork went out from: whose layer its chain has on top, under those it sealed itself; where they
 * were joined since, the one whose start counts. "": none.
 */
static void find_origin(const char *state, const struct session_record *record, char out[SESSION_ID_SIZE])
{
	cleanup_stage_record struct stage_record staged = { 0 };
	cleanup_fd int fd = FD_NONE;
	struct stage_chain chain;
	char path[PATH_MAX];

	out[0] = 0;
	if (session_path(state, record->id, STAGE_DIRECTORY, path, sizeof path) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || stage_chain_load(fd, STAGE_FILE_CHAIN, true, &chain) < 0)
		return;
	for (size_t i = chain.count; i-- > 0;)
		if (!str_equal(chain.layers[i].session, record->id)) {
			memcpy(out, chain.layers[i].session, SESSION_ID_SIZE);
			return;
		}
	if (stage_record_load(fd, &staged) < 0)
		return;
	if (!str_equal(staged.origin, record->id))
		memcpy(out, staged.origin, SESSION_ID_SIZE);
}

static void put_json_time(struct json *json, const char *key, uint64_t ns)
{
	char text[CLOCK_RFC3339_SIZE];

	if (!ns) {
		json_null(json, key);
		return;
	}
	clock_format_rfc3339(ns, text);
	json_string(json, key, text);
}

static void put_json_origin(struct json *json, const char *state, const struct session_record *record)
{
	char origin[SESSION_ID_SIZE];

	find_origin(state, record, origin);
	json_string(json, "origin", *origin ? origin : NULL);
}

/* One line of the session's list of published ports; nothing, where it is none. */
static void put_json_port(struct json *json, const char *line)
{
	struct publish_rule rule = { 0 };
	char host[PUBLISH_TEXT_SIZE];

	if (publish_parse(line, &rule) < 0)
		return;
	publish_host_format(&rule, host);
	json_object_begin(json, NULL);
	json_u64(json, "port", rule.port);
	json_string(json, "host", host);
	json_object_end(json);
}

static void put_json_published(struct json *json, const char *state, const struct session_record *record)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX], *at, *line;
	size_t size;

	json_array_begin(json, "published");
	if (record->is_live && session_path(state, record->id, PUBLISH_FILE, path, sizeof path) == 0 &&
	    fd_read_file_at(AT_FDCWD, path, PUBLISHED_MAX, &text, &size) == 0) {
		at = text;
		while ((line = strsep(&at, "\n")))
			put_json_port(json, line);
	}
	json_array_end(json);
}

static void put_json(struct buf *out, const struct listed *listed, bool all)
{
	struct json json;

	json_init(&json, out);
	json_array_begin(&json, NULL);
	for (size_t i = 0; i < listed->count; i++) {
		const struct session_record *record = &listed->records[i];

		if (!all && !record->is_live)
			continue;
		json_object_begin(&json, NULL);
		json_string(&json, "session", record->id);
		json_string(&json, "name", *record->name ? record->name : NULL);
		json_string(&json, "state", state_of(record));
		json_bytes(&json, "project", record->project, strlen(record->project));
		json_string(&json, "policy", record->policy);
		json_string(&json, "level", record->level);
		json_string(&json, "command", record->command);
		json_u64(&json, "pid", record->is_live ? (uint64_t)record->box_pid : 0);
		put_json_time(&json, "started", record->started_ns);
		put_json_time(&json, "ended_at", record->ended_ns);
		json_string(&json, "ended", *record->ended ? record->ended : NULL);
		if (record->exit >= 0)
			json_i64(&json, "exit", record->exit);
		else
			json_null(&json, "exit");
		json_bool(&json, "staged", record->is_staged);
		put_json_published(&json, listed->state, record);
		put_json_origin(&json, listed->state, record);
		json_object_end(&json);
	}
	json_array_end(&json);
	buf_put_char(out, '\n');
}

/* A line of cells, each escaped and cut. */
struct row {
	char cells[COLUMN_COUNT][CELL_MAX * 2];
};

static void set_cell(struct row *row, size_t column, const char *text)
{
	struct buf cell;

	buf_init_fixed(&cell, row->cells[column], sizeof row->cells[column]);
	buf_put_escaped(&cell, text, strlen(text), CELL_MAX);
	if (buf_text(&cell)[0] == 0)
		row->cells[column][0] = '-', row->cells[column][1] = 0;
}

/* "yes": it may hold changes that nobody has looked at. */
static void set_staged(struct row *row, size_t column, const char *state, const struct session_record *record)
{
	char memory[64], origin[SESSION_ID_SIZE];
	struct buf text;

	buf_init_fixed(&text, memory, sizeof memory);
	find_origin(state, record, origin);
	if (record->is_staged)
		buf_put_text(&text, "yes");
	if (*origin)
		buf_printf(&text, "%sfrom %s", record->is_staged ? ", " : "", origin);
	set_cell(row, column, buf_text(&text));
}

static void make_row(struct row *row, const char *state, const struct session_record *record, uint64_t now_ns)
{
	uint64_t until = record->ended_ns ? record->ended_ns : now_ns;
	char text[64];

	set_cell(row, 0, record->id);
	set_cell(row, 1, record->name);
	if (record->is_live || record->exit < 0)
		set_cell(row, 2, state_of(record));
	else {
		struct buf shown;

		buf_init_fixed(&shown, text, sizeof text);
		buf_printf(&shown, "%s %d", *record->ended ? record->ended : "exit", (int)record->exit);
		set_cell(row, 2, buf_text(&shown));
	}
	num_format_duration_human(until > record->started_ns ? (until - record->started_ns) / NS_PER_MS : 0,
				  text);
	set_cell(row, 3, !record->is_live && !record->ended_ns ? "" : text);
	set_staged(row, 4, state, record);
	set_cell(row, 5, record->policy);
	set_cell(row, 6, record->project);
	set_cell(row, 7, record->command);
}

/* Characters, not bytes: continuation bytes take no column. */
static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void put_table(struct buf *out, const struct row *rows, size_t count)
{
	size_t widths[COLUMN_COUNT] = { 0 };

	for (size_t i = 0; i < count; i++)
		for (size_t c = 0; c < COLUMN_COUNT; c++)
			if (width_of(rows[i].cells[c]) > widths[c])
				widths[c] = width_of(rows[i].cells[c]);
	for (size_t i = 0; i < count; i++) {
		for (size_t c = 0; c + 1 < COLUMN_COUNT; c++)
			buf_printf(out, "%s%*s", rows[i].cells[c],
				   (int)(widths[c] - width_of(rows[i].cells[c]) + 2), "");
		buf_printf(out, "%s\n", rows[i].cells[COLUMN_COUNT - 1]);
	}
}

static int put_people(struct buf *out, const struct listed *listed, bool all)
{
	static const char *const titles[COLUMN_COUNT] = { "ID",     "NAME",   "STATE",   "TIME",
							  "STAGED", "POLICY", "PROJECT", "COMMAND" };
	struct row *rows = calloc(listed->count + 1, sizeof *rows);
	uint64_t now_ns = clock_realtime_ns();
	size_t used = 1;

	if (!rows)
		return -ENOMEM;
	for (size_t c = 0; c < COLUMN_COUNT; c++)
		set_cell(&rows[0], c, titles[c]);
	for (size_t i = 0; i < listed->count; i++)
		if (all || listed->records[i].is_live)
			make_row(&rows[used++], listed->state, &listed->records[i], now_ns);
	put_table(out, rows, used);
	free(rows);
	return 0;
}

static int show(const struct ps_options *given, const struct listed *listed, struct err *err)
{
	cleanup_buf struct buf text;
	int r = 0;

	buf_init(&text, PS_TEXT_MAX);
	if (given->json) {
		put_json(&text, listed, given->all);
	} else if (given->quiet) {
		for (size_t i = 0; i < listed->count; i++)
			if (given->all || listed->records[i].is_live)
				buf_printf(&text, "%s\n", listed->records[i].id);
	} else {
		r = put_people(&text, listed, given->all);
	}
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "ps", "out of memory") : say_out(&text, err);
}

/* What we do not know is somebody else's, and alive. */
static bool is_alive(const char *session, const void *context)
{
	const struct listed *listed = context;

	for (size_t i = 0; i < listed->count; i++)
		if (str_equal(listed->records[i].id, session))
			return listed->records[i].is_live;
	return true;
}

/* Box and guardian of a session may both have been killed: then this is who finds its empty groups. */
static void sweep(const struct listed *listed)
{
	if (limit_sweep(NULL, is_alive, listed) > 0)
		return; /* nothing to tell: they were empty */
}

int cmd_ps(int argc, char **argv, struct err *err)
{
	struct ps_options given = { 0 };
	struct session_record *records;
	char state[PATH_MAX];
	size_t count;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r == 1)
		return cmd_show_help("ps");
	if (r == 0 && rest < argc)
		r = err_set(err, ERR_USAGE, EINVAL, "ps",
			    "it takes no names; it lists all of your sandboxes");
	if (r == 0)
		r = session_state_dir(state, sizeof state, false, err);
	if (r == 0)
		r = session_list(state, &records, &count, err);
	if (r < 0)
		return r;
	r = show(&given, &(struct listed){ state, records, count }, err);
	sweep(&(struct listed){ state, records, count });
	for (size_t i = 0; i < count; i++)
		session_record_done(&records[i]);
	free(records);
	return r;
}
