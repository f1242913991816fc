/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/library.h"
#include "prog/atoll/verb/say.h"

enum { GRACE_DEFAULT_MS = 5000, GRACE_MAX_MS = 24 * 3600 * 1000, TOGETHER_MAX = 128 };

/* Those that were asked to end; owned. */
struct stopping {
	atoll_sandbox *list[TOGETHER_MAX];
	size_t count;
	bool has_failed;
};

struct stop_options {
	bool all;
	const char *time;
};

static const struct option options[] = {
	{ 'a', "all", NULL, "stop every running sandbox of yours", OPTION_FLAG,
	  offsetof(struct stop_options, all) },
	{ 't', "time", "GRACE", "how long commands may take to end before they are killed (5s)", OPTION_TEXT,
	  offsetof(struct stop_options, time) },
};

/* Until it is over. Its answer comes with the end, or its end alone does. */
static void await(struct stopping *stopping, atoll_sandbox *sandbox, struct err *err)
{
	struct atoll_error error = LIBRARY_ERROR;
	uint64_t event = 0;

	while (event != ATOLL_EVENT_DONE && event != ATOLL_EVENT_END) {
		cleanup_record atoll_record *record = NULL;

		if (atoll_wait(sandbox, -1, &record, &error) < 1) {
			(void)library_fail(&error, err);
			say_error(err);
			stopping->has_failed = true;
			break;
		}
		event = library_number(record, "event");
		if (event == ATOLL_EVENT_DONE && library_number(record, "code") &&
		    library_number(record, "code") != -(uint64_t)ATOLL_E_GONE) {
			(void)library_fail_event(record, err);
			say_error(err);
			stopping->has_failed = true;
		}
	}
}

static void await_all(struct stopping *stopping, struct err *err)
{
	for (size_t i = 0; i < stopping->count; i++) {
		await(stopping, stopping->list[i], err);
		atoll_sandbox_free(stopping->list[i]);
	}
	stopping->count = 0;
}

/* Each is asked before the first is waited for. */
static void begin(struct stopping *stopping, atoll_sandbox *sandbox, uint32_t grace_ms, struct err *err)
{
	struct atoll_error error = LIBRARY_ERROR;
	uint64_t ticket;

	if (stopping->count == TOGETHER_MAX)
		await_all(stopping, err);
	if (atoll_stop(sandbox, grace_ms, &ticket, NULL, &error) == 0) {
		stopping->list[stopping->count++] = sandbox;
		return;
	}
	/* One that has ended by itself meanwhile has reached the same end. */
	if (!library_is_gone(&error)) {
		(void)library_fail(&error, err);
		say_error(err);
		stopping->has_failed = true;
	}
	atoll_sandbox_free(sandbox);
}

static int stop_named(atoll_context *context, char **names, uint32_t grace_ms, struct err *err)
{
	struct stopping stopping = { 0 };

	/* One that is not there does not keep the others running: each is tried, each failure is said. */
	for (; *names; names++) {
		atoll_sandbox *sandbox;

		if (library_find(context, *names, &sandbox, err) == 0) {
			begin(&stopping, sandbox, grace_ms, err);
			continue;
		}
		say_error(err);
		stopping.has_failed = true;
	}
	await_all(&stopping, err);
	return stopping.has_failed ? 125 : 0;
}

static int stop_all(atoll_context *context, uint32_t grace_ms, struct err *err)
{
	cleanup_record atoll_record *filter = atoll_record_new(ATOLL_FILTER);
	struct atoll_error error = LIBRARY_ERROR;
	cleanup_cursor atoll_cursor *cursor = NULL;
	struct stopping stopping = { 0 };
	atoll_record *row;
	int r = atoll_set_u64(filter, "running", 1, &error);

	if (r == 0)
		r = atoll_list(context, filter, &cursor, &error);
	if (r < 0)
		return library_fail(&error, err);
	while ((r = library_next(cursor, &row, err)) == 1) {
		atoll_sandbox *sandbox;

		if (atoll_find(context, library_text(row, "id"), &sandbox, &error) == 0) {
			begin(&stopping, sandbox, grace_ms, err);
		} else {
			(void)library_fail(&error, err);
			say_error(err);
			stopping.has_failed = true;
		}
		atoll_record_free(row);
	}
	await_all(&stopping, err);
	return r < 0 ? r : stopping.has_failed ? 125 : 0;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_context atoll_context *context = NULL;
	struct stop_options given = { 0 };
	uint64_t grace_ms = GRACE_DEFAULT_MS;
	int rest, r = cmd_parse(&cmd_stop, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	if (given.all == (rest < argc)) {
		err_set(err, ERR_USAGE, EINVAL, "stop",
			given.all ? "--all cannot be used with names" : "which session?");
		err_hint(err, "atoll stop ID…, or atoll stop --all; `atoll ps` lists them");
		return -EINVAL;
	}
	if (given.time && (num_parse_duration(given.time, &grace_ms) < 0 || grace_ms > GRACE_MAX_MS)) {
		char shown[ERR_QUOTE_SIZE];

		err_set(err, ERR_USAGE, EINVAL, "stop", "--time needs a duration up to 24h, not %s",
			err_quote(shown, given.time));
		err_hint(err, "write it like 0s, 500ms, 10s or 2m");
		return -EINVAL;
	}
	r = library_context(LIBRARY_EVENT(END), &context, err);
	if (r < 0)
		return r;
	return given.all ? stop_all(context, (uint32_t)grace_ms, err)
			 : stop_named(context, argv + rest, (uint32_t)grace_ms, err);
}

const struct cmd cmd_stop = {
	"stop", "ID… | --all", "stop running sandboxes",
	CMD_OPTIONS(options), .run = run_verb,
};
