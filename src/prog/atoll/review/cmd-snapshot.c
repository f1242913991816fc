/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "client/staged.h"
#include "os/clock.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "session/directories.h"
#include "stage/snapshot/snapshot.h"

/* `atoll snapshot`: names what a session staged so far, so that `atoll restore` and `atoll fork` find it again. */

enum { LIST_MAX = 16 << 20, MESSAGE_SHOWN = 60 };

struct snapshot_options {
	const char *message;
	bool list, remove, turn, before_command, json;
};

static const struct option options[] = {
	{ 'm', "message", "TEXT", "say what it is for", OPTION_TEXT, offsetof(struct snapshot_options, message) },
	{ 'l', "list", NULL, "list the snapshots of the session", OPTION_FLAG,
	  offsetof(struct snapshot_options, list) },
	{ 0, "remove", NULL, "forget the snapshot NAME", OPTION_FLAG, offsetof(struct snapshot_options, remove) },
	{ 0, "turn", NULL, "take a checkpoint, as an agent's hook does: old ones go", OPTION_FLAG,
	  offsetof(struct snapshot_options, turn) },
	{ 0, "auto", NULL, "take one as `stage: {auto: exec}` does: old ones go", OPTION_FLAG,
	  offsetof(struct snapshot_options, before_command) },
	{ 0, "json", NULL, "print one JSON object, or with --list an array", OPTION_FLAG,
	  offsetof(struct snapshot_options, json) },
};

static void put_one_json(struct json *json, const struct stage_snapshot *item)
{
	char text[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(item->chain.taken_ns, text);
	json_object_begin(json, NULL);
	json_string(json, "name", item->name);
	json_string(json, "taken", text);
	json_u64(json, "layers", item->chain.count);
	if (*item->chain.message)
		json_bytes(json, "message", item->chain.message, strlen(item->chain.message));
	else
		json_null(json, "message");
	json_object_end(json);
}

static void put_list_json(struct buf *out, const struct stage_snapshot *list, size_t count)
{
	struct json json;

	json_init(&json, out);
	json_array_begin(&json, NULL);
	for (size_t i = 0; i < count; i++)
		put_one_json(&json, &list[i]);
	json_array_end(&json);
	buf_put_char(out, '\n');
}

static void put_list(struct buf *out, const struct stage_snapshot *list, size_t count)
{
	enum { TIME_SHOWN = 19 };
	char text[CLOCK_RFC3339_SIZE];
	int width = 0;

	for (size_t i = 0; i < count; i++)
		if ((int)strlen(list[i].name) > width)
			width = (int)strlen(list[i].name);
	for (size_t i = 0; i < count; i++) {
		clock_format_rfc3339(list[i].chain.taken_ns, text);
		text[10] = ' ';
		buf_printf(out, "%-*s  %.*s", width, list[i].name, TIME_SHOWN, text);
		if (*list[i].chain.message) {
			buf_put_text(out, "  ");
			buf_put_escaped(out, list[i].chain.message, strlen(list[i].chain.message), MESSAGE_SHOWN);
		}
		buf_put_char(out, '\n');
	}
}

static int show_list(const char *state, const struct session_record *record, bool json, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	cleanup_free struct stage_snapshot *list = NULL;
	cleanup_buf struct buf text;
	size_t count = 0;
	int r;

	buf_init(&text, LIST_MAX);
	r = stage_lock_open(state, record->id, &lock, err);
	if (r == 0)
		r = stage_snapshot_list(&lock, &list, &count, err);
	if (r < 0)
		return r;
	if (json)
		put_list_json(&text, list, count);
	else
		put_list(&text, list, count);
	return say_out(&text, err);
}

static int say_taken(const struct session_record *record, const char *name, bool json, struct err *err)
{
	cleanup_buf struct buf text;
	struct json writer;

	buf_init(&text, 4096);
	if (json) {
		json_init(&writer, &text);
		json_object_begin(&writer, NULL);
		json_string(&writer, "session", record->id);
		json_string(&writer, "snapshot", name);
		json_object_end(&writer);
		buf_put_char(&text, '\n');
	} else {
		buf_printf(&text, "%s\n", name);
	}
	return say_out(&text, err);
}

static int check_usage(const struct snapshot_options *given, const char *name, struct err *err)
{
	if (given->list && (name || given->message || given->remove))
		return err_set(err, ERR_USAGE, EINVAL, "snapshot", "--list takes only a session");
	if ((given->turn || given->before_command) && (name || given->list || given->remove))
		return err_set(err, ERR_USAGE, EINVAL, "snapshot",
			       "%s chooses the name, and takes only a session", given->turn ? "--turn" : "--auto");
	if (given->turn && given->before_command)
		return err_set(err, ERR_USAGE, EINVAL, "snapshot", "--turn and --auto exclude each other");
	if (given->remove && (!name || given->message || given->json))
		return err_set(err, ERR_USAGE, EINVAL, "snapshot",
			       "--remove needs the name of a snapshot, and nothing else");
	return 0;
}

/* [ID] [NAME]: one word alone is a session where there is one of that name, else the snapshot's name. */
static int sort_words(int count, char **words, const char **ret_session, const char **ret_name, struct err *err)
{
	char state[PATH_MAX];
	int r = session_state_dir(state, sizeof state, false, err);

	if (r < 0)
		return r;
	if (count > 2) {
		err_set(err, ERR_USAGE, EINVAL, "snapshot", "one session and one name at most");
		err_hint(err, "atoll snapshot [ID] [NAME]");
		return -EINVAL;
	}
	if (count == 2)
		*ret_session = words[0], *ret_name = words[1];
	else if (count && staged_is_session(state, words[0]))
		*ret_session = words[0];
	else if (count)
		*ret_name = words[0];
	return 0;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	struct snapshot_options given = { 0 };
	struct staged_snapshot wanted = { .prefix = STAGE_NAMELESS_PREFIX };
	char state[PATH_MAX], name[STAGE_SNAPSHOT_NAME_SIZE];
	const char *session = NULL;
	int rest, r = cmd_parse(&cmd_snapshot, &given, argc, argv, &rest, err);

	if (r == 0)
		r = sort_words(argc - rest, argv + rest, &session, &wanted.name, err);
	if (r == 0)
		r = check_usage(&given, wanted.name, err);
	if (r == 0)
		r = staged_find(session, state, &record, err);
	if (r < 0)
		return r;
	if (given.list)
		return show_list(state, &record, given.json, err);
	if (given.remove)
		return staged_forget(state, record.id, wanted.name, err);
	wanted.message = given.message;
	if (given.turn)
		wanted.prefix = STAGE_TURN_PREFIX;
	else if (given.before_command)
		wanted.prefix = STAGE_AUTO_PREFIX;
	r = staged_snapshot(state, &record, &wanted, name, err);
	return r != 0 ? r : say_taken(&record, name, given.json, err);
}

const struct cmd cmd_snapshot = {
	"snapshot", "[ID] [NAME] [-m TEXT] | [ID] --list | [ID] --remove NAME",
	"name what a session has staged so far",
	CMD_OPTIONS(options), .run = run_verb,
};
