/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How one staged state differs from another, for `atoll dry-run`: what a trial did, and whether what was done
 * afterwards is what the trial had shown. Paths to stdout for people or as JSON, numbers to STAGE_DIFFERENCE_FD.
 */

#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-stage/diff/comparison.h"
#include "prog/atoll-stage/show/show.h"

enum { LINES_DEFAULT = 20, FLUSH_AT = 64 << 10, BUFFER_MAX = 1 << 20, PATH_SHOWN = 4096 };

struct compare_options {
	struct verb_session session;
	const char *snapshot, *before, *before_snapshot, *lines;
	struct comparison_options how;
	bool json, numbers;
};

static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct compare_options),
	{ 0, "snapshot", "NAME", "the state that this snapshot of it holds", OPTION_TEXT,
	  offsetof(struct compare_options, snapshot) },
	{ 0, "before", "ID", "compare with this session; else with the host", OPTION_TEXT,
	  offsetof(struct compare_options, before) },
	{ 0, "before-snapshot", "NAME", "with the state that this snapshot of it holds", OPTION_TEXT,
	  offsetof(struct compare_options, before_snapshot) },
	{ 0, "lines", "N", "for people: at most so many paths (20)", OPTION_TEXT,
	  offsetof(struct compare_options, lines) },
	{ 0, "json", NULL, "one JSON array, with exact names", OPTION_FLAG, offsetof(struct compare_options, json) },
	{ 0, "rough", NULL, "while others were at work: only kinds of changes count, and what is gone", OPTION_FLAG,
	  offsetof(struct compare_options, how.is_rough) },
	{ 0, "times", NULL, "list files and links whose time of last change alone differs", OPTION_FLAG,
	  offsetof(struct compare_options, how.has_times) },
	{ 0, "numbers", NULL, "write the numbers to descriptor 3", OPTION_FLAG,
	  offsetof(struct compare_options, numbers) },
};

static int open_state(struct compared *state, const struct verb_session *session, const char *snapshot,
		      struct err *err)
{
	int r;

	state->opened = OPENED_NONE;
	r = opened_open(&state->opened, session, err);
	if (r == 0 && snapshot)
		r = opened_at_snapshot(&state->opened, snapshot, err);
	return r == 0 ? opened_stacks(&state->opened, err) : r;
}

static void state_done(struct compared *state)
{
	stage_changes_done(&state->changes);
	opened_done(&state->opened);
}
#define cleanup_state __attribute__((cleanup(state_done)))

/* ---- for people ---- */

static const char *without_base(const struct verb_session *session, const char *path)
{
	size_t length = session->base ? strlen(session->base) : 0;

	return length > 1 && path_is_below(path, session->base) && path[length] ? path + length + 1 : path;
}

static void put_line(const struct verb_session *session, const struct comparison_item *item, struct buf *out)
{
	static const char signs[STAGE_CHANGE_KIND_COUNT] = {
		[STAGE_ADDED] = '+', [STAGE_MODIFIED] = '~', [STAGE_DELETED] = '-',
	};
	const char *path = without_base(session, item->path);
	char size[32];

	buf_printf(out, "    %c ", signs[item->kind]);
	buf_put_escaped(out, path, strlen(path), PATH_SHOWN);
	if (item->is_directory)
		buf_put_char(out, '/');
	if (item->kind != STAGE_DELETED && item->size) {
		num_format_size_human(item->size, size);
		buf_printf(out, "  %s", size);
	}
	if (item->is_time_alone)
		buf_put_text(out, "  time of last change only");
	buf_put_text(out, item->is_refused ? "  refused: it can never reach the host\n"
			  : item->is_flagged ? "  protected\n" : "\n");
}

/* Protected paths first, whatever else there is. */
static int put_text(const struct comparison *comparison, const struct verb_session *session, uint64_t lines,
		    struct err *err)
{
	cleanup_buf struct buf out;
	uint64_t left = 0;
	int r = 0;

	buf_init(&out, BUFFER_MAX);
	for (int flagged = 1; flagged >= 0; flagged--) {
		for (size_t i = 0; r == 0 && i < comparison->count; i++) {
			const struct comparison_item *item = &comparison->items[i];

			if (item->is_implied || item->is_flagged != flagged)
				continue;
			if (lines) {
				lines--;
				put_line(session, item, &out);
			} else {
				left++;
			}
			if (out.size >= FLUSH_AT)
				r = show_flush(&out, err);
		}
	}
	if (left)
		buf_printf(&out, "    and %llu more\n", (unsigned long long)left);
	return r == 0 ? show_flush(&out, err) : r;
}

static int put_json(const struct comparison *comparison, struct err *err)
{
	cleanup_buf struct buf out;
	struct json json;
	int r = 0;

	buf_init(&out, BUFFER_MAX);
	json_init(&json, &out);
	json_array_begin(&json, NULL);
	for (size_t i = 0; r == 0 && i < comparison->count; i++) {
		const struct comparison_item *item = &comparison->items[i];

		if (item->is_implied)
			continue;
		json_object_begin(&json, NULL);
		json_bytes(&json, "path", item->path, strlen(item->path));
		json_string(&json, "kind", stage_change_kind_names[item->kind]);
		json_bool(&json, "directory", item->is_directory);
		json_bool(&json, "flagged", item->is_flagged);
		json_bool(&json, "refused", item->is_refused);
		json_bool(&json, "time_only", item->is_time_alone);
		json_object_end(&json);
		if (out.size >= FLUSH_AT)
			r = show_flush(&out, err);
	}
	json_array_end(&json);
	return r == 0 ? show_flush(&out, err) : r;
}

static int print_comparison(const struct compare_options *given, uint64_t lines, const struct comparison *comparison,
			    struct err *err)
{
	int r = given->json ? put_json(comparison, err) : put_text(comparison, &given->session, lines, err);

	if (r == 0 && given->numbers) {
		r = fd_write_full(STAGE_DIFFERENCE_FD, &comparison->numbers, sizeof comparison->numbers);
		if (r < 0)
			err_set(err, ERR_INTERNAL, -r, "stage", "descriptor %d cannot be written: %s",
				STAGE_DIFFERENCE_FD, strerror(-r));
	}
	return r < 0 ? r : comparison->count ? STAGE_DIFFERS : 0;
}

static int compare(const struct compare_options *given, uint64_t lines, struct err *err)
{
	struct verb_session other = given->session;
	cleanup_state struct compared now = { .opened = OPENED_NONE }, before = { .opened = OPENED_NONE };
	struct comparison comparison;
	int r = open_state(&now, &given->session, given->snapshot, err);

	other.id = given->before;
	if (r == 0 && other.id)
		r = open_state(&before, &other, given->before_snapshot, err);
	if (r == 0)
		r = opened_confine_both(&now.opened, other.id ? &before.opened : NULL, CONFINE_STAGE_READING, err);
	if (r == 0)
		r = comparison_make(&comparison, other.id ? &before : NULL, &now, &given->how, err);
	if (r < 0)
		return r;
	r = print_comparison(given, lines, &comparison, err);
	comparison_done(&comparison);
	return r;
}

int cmd_compare(int argc, char **argv, struct err *err)
{
	struct compare_options given = { 0 };
	uint64_t lines = LINES_DEFAULT;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r != 0)
		return r < 0 ? r : options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
	if (given.lines && num_parse_u64(given.lines, &lines) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "stage", "--lines needs a number");
	return compare(&given, lines, err);
}
