/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "client/listed.h"
#include "limit/limit.h"
#include "os/clock.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "prog/atoll/watch/ps-commands.h"
#include "prog/atoll/watch/table.h"
#include "session/directories.h"

enum {
	PS_TEXT_MAX = 64 << 20,
	NS_PER_MS = 1000000,
};

struct ps_options {
	bool all, json, quiet, names, commands;
};

static const struct option options[] = {
	{ 'a', "all", NULL, "also those that have ended", OPTION_FLAG, offsetof(struct ps_options, all) },
	{ 'q', "quiet", NULL, "ids only, one a line", OPTION_FLAG, offsetof(struct ps_options, quiet) },
	{ 0, "names", NULL, "with -q: also the names that sessions were given", OPTION_FLAG,
	  offsetof(struct ps_options, names) },
	{ 'c', "commands", NULL, "the commands of running sandboxes, or of the one that is named", OPTION_FLAG,
	  offsetof(struct ps_options, commands) },
	{ 0, "json", NULL, "one JSON array", OPTION_FLAG, offsetof(struct ps_options, json) },
};

/* What the state directory holds. */
struct listed {
	const char *state;
	const struct session_record *records;
	size_t count;
};

static void put_json(struct buf *out, const struct listed *listed, bool all)
{
	struct json json;

	json_init(&json, out);
	json_array_begin(&json, NULL);
	for (size_t i = 0; i < listed->count; i++) {
		const struct session_record *record = &listed->records[i];

		if (!all && !record->is_live)
			continue;
		listed_to_json(&json, listed->state, record);
	}
	json_array_end(&json);
	buf_put_char(out, '\n');
}

/* "yes": it may hold changes that nobody has looked at. */
static void set_staged(struct table_row *row, size_t column, const char *state, const struct session_record *record)
{
	char memory[64], origin[SESSION_ID_SIZE];
	struct buf text;

	buf_init_fixed(&text, memory, sizeof memory);
	listed_find_origin(state, record, origin);
	if (record->is_staged)
		buf_put_text(&text, "yes");
	if (*origin)
		buf_printf(&text, "%sfrom %s", record->is_staged ? ", " : "", origin);
	table_set(row, column, buf_text(&text));
}

static void make_row(struct table_row *row, const char *state, const struct session_record *record, uint64_t now_ns)
{
	uint64_t until = record->ended_ns ? record->ended_ns : now_ns;
	char text[64];

	table_set(row, 0, record->id);
	table_set(row, 1, record->name);
	if (record->is_live || record->exit < 0)
		table_set(row, 2, listed_state(record));
	else {
		struct buf shown;

		buf_init_fixed(&shown, text, sizeof text);
		buf_printf(&shown, "%s %d", *record->ended ? record->ended : "exit", (int)record->exit);
		table_set(row, 2, buf_text(&shown));
	}
	num_format_duration_human(until > record->started_ns ? (until - record->started_ns) / NS_PER_MS : 0,
				  text);
	table_set(row, 3, !record->is_live && !record->ended_ns ? "" : text);
	set_staged(row, 4, state, record);
	table_set_path(row, 5, record->policy);
	table_set_path(row, 6, record->project);
	table_set(row, 7, record->command);
}

/* So that a line stays one line on the terminal: policies and projects that are long paths, and then the command. */
static void put_table(struct buf *out, struct table_row *rows, size_t count)
{
	enum { POLICY_WIDTH = 16, PROJECT_WIDTH = 28, COMMAND_WIDTH = 12 };

	if (table_is_for_terminal()) {
		table_keep_end(rows, count, 5, POLICY_WIDTH);
		table_keep_end(rows, count, 6, PROJECT_WIDTH);
	}
	table_put(out, rows, count, COMMAND_WIDTH);
}

struct published_lines {
	struct buf *out;
	const char *session;
};

/* Which port was taken where any was asked for. */
static void put_published(void *context, unsigned port, const char *host)
{
	const struct published_lines *lines = context;

	buf_printf(lines->out, "%s: port %u inside is %s\n", lines->session, port, host);
}

static int put_people(struct buf *out, const struct listed *listed, bool all)
{
	static const char *const titles[TABLE_COLUMNS] = { "ID",     "NAME",   "STATE",   "TIME",
							  "STAGED", "POLICY", "PROJECT", "COMMAND" };
	struct table_row *rows = calloc(listed->count + 1, sizeof *rows);
	uint64_t now_ns = clock_realtime_ns();
	size_t used = 1;

	if (!rows)
		return -ENOMEM;
	for (size_t c = 0; c < TABLE_COLUMNS; c++)
		table_set(&rows[0], c, titles[c]);
	for (size_t i = 0; i < listed->count; i++)
		if (all || listed->records[i].is_live)
			make_row(&rows[used++], listed->state, &listed->records[i], now_ns);
	put_table(out, rows, used);
	for (size_t i = 0; i < listed->count; i++) {
		struct published_lines lines = { out, listed->records[i].id };

		listed_visit_published(listed->state, &listed->records[i], put_published, &lines);
	}
	free(rows);
	return 0;
}

static void put_id(struct buf *text, const struct session_record *record, bool with_name)
{
	buf_printf(text, "%s\n", record->id);
	if (with_name && *record->name)
		buf_printf(text, "%s\n", record->name);
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
				put_id(&text, &listed->records[i], given->names);
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
		if (str_equal(listed->records[i].id, session) || str_equal(listed->records[i].cgroups, session))
			return listed->records[i].is_live;
	return true;
}

/* Box and guardian of a session may both have been killed: then this is who finds its empty groups. */
static void sweep(const struct listed *listed)
{
	if (limit_sweep(NULL, is_alive, listed) > 0)
		return; /* nothing to tell: they were empty */
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct ps_options given = { 0 };
	struct session_record *records;
	char state[PATH_MAX];
	size_t count;
	int rest, r = cmd_parse(&cmd_ps, &given, argc, argv, &rest, err);

	if (r == 0 && given.commands)
		return ps_commands(&(struct ps_commands){ argv + rest, given.all, given.json }, err);
	if (r == 0 && rest < argc)
		r = err_set(err, ERR_USAGE, EINVAL, "ps",
			    "ps takes no names but with --commands; it lists all of your sandboxes");
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

const struct cmd cmd_ps = {
	"ps", "[-a] [--json] [-c [ID…]]", "list sandboxes, and what runs in them",
	CMD_OPTIONS(options), .run = run_verb,
};
