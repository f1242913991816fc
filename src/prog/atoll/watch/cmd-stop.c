/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "base/num.h"
#include "client/control-client.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "session/control-socket.h"
#include "session/directories.h"

enum { GRACE_DEFAULT_MS = 5000, GRACE_MAX_MS = 24 * 3600 * 1000 };

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

/* Asks and waits until all is over. A session that ends by itself meanwhile has reached the same end. */
static int stop_one(const struct session_record *record, uint32_t grace_ms, struct err *err)
{
	cleanup_fd int fd = control_socket_connect(record->id, err);
	struct client_answer answer = { .fd = FD_NONE };
	cleanup_buf struct buf scratch = { 0 };
	int r;

	if (fd < 0)
		return fd;
	buf_init(&scratch, FRAME_MESSAGE_MAX);
	r = client_send(fd, CONTROL_STOP, 1, grace_ms, err);
	if (r == 0)
		r = client_receive(fd, &scratch, &answer, err);
	if (r < 0)
		return err->errnum == ECONNRESET || err->errnum == EPIPE ? 0 : r;
	close_fd(&answer.fd);
	return answer.frame.type == CONTROL_DONE ? 0
						 : err_set(err, ERR_STATE, EPROTO, "session",
							   "session %s gave no clear answer", record->id);
}

static int stop_named(char **names, uint32_t grace_ms, struct err *err)
{
	bool has_failed = false;

	/* One that is not there does not keep the others running: each is tried, each failure is said. */
	for (; *names; names++) {
		cleanup_session_record struct session_record record = { 0 };
		int r = client_find(*names, &record, err);

		if (r == 0)
			r = stop_one(&record, grace_ms, err);
		if (r < 0) {
			say_error(err);
			has_failed = true;
		}
	}
	return has_failed ? 125 : 0;
}

static int stop_all(const char *state, uint32_t grace_ms, struct err *err)
{
	struct session_record *records;
	bool has_failed = false;
	size_t count;
	int r = session_list(state, &records, &count, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (records[i].is_live && stop_one(&records[i], grace_ms, err) < 0) {
			say_error(err);
			has_failed = true;
		}
		session_record_done(&records[i]);
	}
	free(records);
	return has_failed ? 125 : 0;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct stop_options given = { 0 };
	char state[PATH_MAX];
	uint64_t grace_ms = GRACE_DEFAULT_MS;
	int rest, r = cmd_parse(&cmd_stop, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	if (given.all == (rest < argc)) {
		err_set(err, ERR_USAGE, EINVAL, "stop",
			given.all ? "--all and names exclude each other" : "which session?");
		err_hint(err, "atoll stop ID…, or atoll stop --all; `atoll ps` lists them");
		return -EINVAL;
	}
	if (given.time && (num_parse_duration(given.time, &grace_ms) < 0 || grace_ms > GRACE_MAX_MS)) {
		char shown[ERR_QUOTE_SIZE];

		err_set(err, ERR_USAGE, EINVAL, "stop", "--time %s is no duration up to 24h",
			err_quote(shown, given.time));
		err_hint(err, "write it like 0s, 500ms, 10s or 2m");
		return -EINVAL;
	}
	r = session_state_dir(state, sizeof state, false, err);
	if (r < 0)
		return r;
	return given.all ? stop_all(state, (uint32_t)grace_ms, err)
			 : stop_named(argv + rest, (uint32_t)grace_ms, err);
}

const struct cmd cmd_stop = {
	"stop", "ID… | --all", "stop running sandboxes",
	CMD_OPTIONS(options), .run = run_verb,
};
