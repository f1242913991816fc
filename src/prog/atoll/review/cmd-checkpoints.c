/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "client/program.h"
#include "client/staged.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "stage/change/difference.h"
#include "stage/snapshot/snapshot.h"

/*
 * `atoll checkpoints`: the snapshots turn-N of a session, which an agent's hook asks for at each turn, and what each
 * changed since the one before. atoll-stage compares them; the first one is compared with the host.
 */

enum { TEXT_MAX = 64 << 20, CHANGES_MAX = 16 << 20, TIME_SHOWN = 19, MESSAGE_SHOWN = 60 };

struct checkpoints_options {
	bool json;
};

static const struct option options[] = {
	{ 0, "json", NULL, "print an array, with every path that changed", OPTION_FLAG,
	  offsetof(struct checkpoints_options, json) },
};

struct listing {
	const char *state, *session;
	bool json;
	struct buf text;
};

static int fail(int r, const char *what, struct err *err)
{
	return err_set(err, ERR_STATE, -r, "checkpoints", "%s: %s", what, strerror(-r));
}

static int take_changes(int fd, struct buf *out)
{
	int r = program_text(fd, out);

	while (out->size && out->bytes[out->size - 1] == '\n')
		out->size--;
	return r;
}

/* How a checkpoint differs from the one before, NULL: from the host; with --json its changes, as an array. */
static int compare(const struct listing *listing, const char *name, const char *before,
		   struct stage_difference *ret_numbers, struct buf *changes, struct err *err)
{
	struct program_look how = { .name = "atoll-stage", .stage = "stage", .numbers_to = STAGE_DIFFERENCE_FD,
				    .numbers = ret_numbers, .numbers_size = sizeof *ret_numbers };
	cleanup_words struct words words = { 0 };
	cleanup_fd int text_fd = FD_NONE;
	int r;

	staged_words(&words, "compare", listing->state, listing->session);
	words_add_option(&words, "--snapshot", name);
	words_add_option(&words, "--before", before ? listing->session : NULL);
	words_add_option(&words, "--before-snapshot", before);
	words_add(&words, "--numbers");
	words_add_flag(&words, listing->json, "--json");
	how.argv = (const char *const *)words.list;
	r = program_check_words(&words, err);
	r = r < 0 ? r : program_look(&how, &text_fd, err);
	if (r < 0)
		return r;
	if (r > STAGE_DIFFERS)
		return err_set(err, ERR_STATE, EIO, "checkpoints", "checkpoint %s cannot be compared", name);
	r = listing->json ? take_changes(text_fd, changes) : 0;
	return r < 0 ? fail(r, "what changed cannot be read", err) : 0;
}

static void put_line(struct listing *listing, const struct stage_snapshot *turn, const struct stage_difference *numbers)
{
	char time[CLOCK_RFC3339_SIZE], counts[64];

	clock_format_rfc3339(turn->chain.taken_ns, time);
	time[10] = ' ';
	snprintf(counts, sizeof counts, "+%llu ~%llu -%llu", (unsigned long long)numbers->added,
		 (unsigned long long)numbers->modified, (unsigned long long)numbers->deleted);
	buf_printf(&listing->text, "%-8s  %.*s  %-14s", turn->name, TIME_SHOWN, time,
		   numbers->added + numbers->modified + numbers->deleted ? counts : "no change");
	if (*turn->chain.message) {
		buf_put_text(&listing->text, "  ");
		buf_put_escaped(&listing->text, turn->chain.message, strlen(turn->chain.message), MESSAGE_SHOWN);
	}
	buf_put_char(&listing->text, '\n');
}

static void put_object(struct json *json, const struct stage_snapshot *turn, const struct stage_difference *numbers,
		       const struct buf *changes)
{
	char time[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(turn->chain.taken_ns, time);
	json_object_begin(json, NULL);
	json_string(json, "name", turn->name);
	json_string(json, "taken", time);
	json_bytes(json, "message", turn->chain.message, strlen(turn->chain.message));
	json_u64(json, "added", numbers->added);
	json_u64(json, "modified", numbers->modified);
	json_u64(json, "deleted", numbers->deleted);
	if (changes->size)
		json_raw(json, "changes", changes->bytes, changes->size);
	json_object_end(json);
}

static int put_all(struct listing *listing, const struct stage_snapshot *list, size_t count, struct err *err)
{
	const char *before = NULL;
	struct json json;
	int r = 0;

	json_init(&json, &listing->text);
	if (listing->json)
		json_array_begin(&json, NULL);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct stage_difference numbers = { 0 };
		cleanup_buf struct buf changes = { 0 };

		buf_init(&changes, CHANGES_MAX);
		if (!str_has_prefix(list[i].name, STAGE_TURN_PREFIX))
			continue;
		r = compare(listing, list[i].name, before, &numbers, &changes, err);
		if (r == 0 && listing->json)
			put_object(&json, &list[i], &numbers, &changes);
		else if (r == 0)
			put_line(listing, &list[i], &numbers);
		before = list[i].name;
	}
	if (listing->json) {
		json_array_end(&json);
		buf_put_char(&listing->text, '\n');
	} else if (r == 0 && before) {
		buf_printf(&listing->text, "go back: atoll restore %s NAME; or begin a new session there: "
			   "atoll fork %s NAME -- CMD…\n", listing->session, listing->session);
	}
	return r;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	cleanup_free struct stage_snapshot *list = NULL;
	struct checkpoints_options given = { 0 };
	struct listing listing = { 0 };
	char state[PATH_MAX];
	size_t count;
	int rest, r = cmd_parse(&cmd_checkpoints, &given, argc, argv, &rest, err);

	if (r == 0 && argc - rest > 1)
		r = err_set(err, ERR_USAGE, EINVAL, "checkpoints", "one session at a time");
	if (r == 0)
		r = staged_find(rest < argc ? argv[rest] : NULL, state, &record, err);
	if (r == 0)
		r = stage_lock_open(state, record.id, &lock, err);
	if (r == 0)
		r = stage_snapshot_list(&lock, &list, &count, err);
	if (r < 0)
		return r;
	/* What compares them reads files that do not change; the next checkpoint must not wait for it. */
	stage_lock_done(&lock);
	lock = STAGE_LOCK_NONE;
	listing = (struct listing){ .state = state, .session = record.id, .json = given.json };
	buf_init(&listing.text, TEXT_MAX);
	r = put_all(&listing, list, count, err);
	if (r == 0)
		r = say_out(&listing.text, err);
	buf_done(&listing.text);
	return r;
}

const struct cmd cmd_checkpoints = {
	"checkpoints", "[ID] [--json]", "list the checkpoints of a session, and what each changed",
	CMD_OPTIONS(options), .run = run_verb,
};
