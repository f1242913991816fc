/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/inside/commands.h"

#include <fcntl.h>

#include "base/str.h"
#include "os/fd.h"
#include "service/launcher/call/await.h"
#include "service/launcher/store/user.h"

enum { ROWS_DEFAULT = 24, COLUMNS_DEFAULT = 80 };

static const char *const stream_keys[] = { "stdin", "stdout", "stderr", "terminal" };

/* ---- start ---- */

static int set_environment(const struct call *call, atoll_record *record, struct atoll_error *error)
{
	static const char *const none[] = { NULL };
	const char *const *made = service_strings(call->sandbox->made.message, "env");
	const char *const *own = service_strings(call->message, "env");
	size_t count = 0, made_count = strv_count(made), own_count = strv_count(own);
	const char **all = calloc(made_count + own_count + 1, sizeof *all);
	int r;

	if (!all)
		return ATOLL_E_NO_MEMORY;
	/* Of two of one name some shells take the first, and some the last. */
	for (size_t i = 0; i < made_count; i++)
		if (!strv_has_name(own, made[i]))
			all[count++] = made[i];
	for (size_t i = 0; i < own_count; i++)
		all[count++] = own[i];
	r = atoll_set_strings(record, "env_add", all[0] ? all : none, error);
	free(all);
	return r;
}

static int set_streams(const struct call *call, atoll_record *record, struct atoll_error *error)
{
	bool has_pty = call_number(call, "pty", 0) != 0;
	int null_fd, r = atoll_set_string(record, "streams", has_pty ? "pty" : "pipe", error);

	if (r == 0 && has_pty)
		r = atoll_set_u64(record, "rows", call_number(call, "rows", ROWS_DEFAULT), error);
	if (r == 0 && has_pty)
		r = atoll_set_u64(record, "columns", call_number(call, "columns", COLUMNS_DEFAULT), error);
	if (r < 0 || has_pty || call_number(call, "stdin", 1))
		return r;
	null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
	if (null_fd < 0)
		return ATOLL_E_LIMIT;
	r = atoll_set_fd(record, "stdin", null_fd, error);
	close_fd(&null_fd);
	return r;
}

static int fill_command(const struct call *call, const char *cwd, atoll_record *record, struct atoll_error *error)
{
	const char *tag = call_string(call, "tag");
	uint64_t timeout_ms = call_number(call, "timeout_ms", 0);
	int r = atoll_set_strings(record, "argv", service_strings(call->message, "argv"), error);

	if (r == 0)
		r = atoll_set_string(record, "cwd", cwd, error);
	if (r == 0)
		r = set_environment(call, record, error);
	if (r == 0)
		r = set_streams(call, record, error);
	if (r == 0)
		r = atoll_set_u64(record, "keep", !call_number(call, "bound", 0), error);
	if (r == 0 && tag && *tag)
		r = atoll_set_string(record, "tag", tag, error);
	if (r == 0 && timeout_ms)
		r = atoll_set_u64(record, "timeout_ms", timeout_ms, error);
	return r;
}

/* Moves them into fds. */
static void put_streams(struct buf *out, int streams[ARRAY_SIZE(stream_keys)], int *fds, size_t *count)
{
	for (size_t i = 0; i < ARRAY_SIZE(stream_keys); i++) {
		if (streams[i] < 0)
			continue;
		field_put_fd(out, stream_keys[i], *count);
		fds[(*count)++] = take_fd(&streams[i]);
	}
}

static void take_streams(atoll_record *result, int ret_streams[ARRAY_SIZE(stream_keys)])
{
	for (size_t i = 0; i < ARRAY_SIZE(stream_keys); i++)
		ret_streams[i] = atoll_take_fd(result, stream_keys[i]);
}

/*
 * The reply waits for STARTED, which has the pid, or for EXIT,
	where it could not be started. The streams are taken over
 * now, for the result lives no longer.
 */
static void exec_done(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	struct running *running = outcome->code ? NULL : calloc(1, sizeof *running);
	uint64_t command = 0;

	if (!running) {
		call_fail_atoll(call, outcome->code ? outcome->code : ATOLL_E_NO_MEMORY, outcome->what, outcome->hint);
		return;
	}
	atoll_get_u64(outcome->result, "command", &command);
	*running = (struct running){ .next = sandbox->commands.running, .command = command, .call = call };
	take_streams(outcome->result, running->fds);
	sandbox->commands.running = running;
	/* What would have said its start came before this answer, or was lost. */
	if (command <= sandbox->commands.last)
		commands_lost(sandbox);
}

static struct ahead *find_ahead(struct commands *commands, const char *language)
{
	for (size_t i = 0; language && i < AHEAD_MAX; i++)
		if (commands->ahead[i].command && str_equal(commands->ahead[i].language, language))
			return &commands->ahead[i];
	return NULL;
}

/* One that runs already and that nobody has; false: there is none. */
static bool give_ahead(struct call *call)
{
	const char *language = call_string(call, "warm");
	struct ahead *ahead = find_ahead(&call->sandbox->commands, language);
	int fds[FRAME_FD_MAX];
	size_t count = 0;
	struct buf *out;

	if (language && !ahead)
		(void)!str_copy(call->daemon->registry.not_ahead, sizeof call->daemon->registry.not_ahead, language);
	if (!ahead)
		return false;
	out = call_begin_reply(call, 200);
	field_put_u64(out, "command", ahead->command);
	field_put_u64(out, "pid", ahead->pid ? ahead->pid : ahead->command);
	field_put_string(out, "mark", ahead->mark);
	for (size_t i = 0; i < ARRAY_SIZE(ahead->fds); i++) {
		field_put_fd(out, stream_keys[i], count);
		fds[count++] = take_fd(&ahead->fds[i]);
	}
	ahead_done(ahead);
	call_end_reply(call, fds, count);
	return true;
}

void commands_exec(struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	const char *cwd = call_string(call, "cwd");
	atoll_record *record;
	char path[PATH_MAX];
	struct err err = { 0 };
	uint64_t ticket = 0;
	int r = call_check_user(call, &err);

	if (r < 0) {
		call_fail_err(call, 401, &err);
		return;
	}
	if (give_ahead(call))
		return;
	if (!cwd || !*cwd)
		cwd = service_string(call->sandbox->made.message, "cwd");
	if (user_path(cwd && *cwd ? cwd : "~", path, &err) < 0) {
		call_fail_err(call, 400, &err);
		return;
	}
	record = atoll_record_new(ATOLL_COMMAND);
	r = record ? fill_command(call, path, record, &error) : ATOLL_E_NO_MEMORY;
	if (r == 0)
		r = atoll_exec(call->sandbox->handle, record, &ticket, NULL, &error);
	atoll_record_free(record);
	await_answer(call->sandbox, call, r, ticket, &error, exec_done);
}

/* ---- what becomes of it ---- */

static struct running *find_running(const struct sandbox *sandbox, uint64_t command)
{
	struct running *running = sandbox->commands.running;

	while (running && running->command != command)
		running = running->next;
	return running;
}

static void forget_running(struct sandbox *sandbox, struct running *running)
{
	struct running **at = &sandbox->commands.running;

	while (*at != running)
		at = &(*at)->next;
	*at = running->next;
	for (size_t i = 0; i < ARRAY_SIZE(running->fds); i++)
		close_fd(&running->fds[i]);
	free(running);
}

/* Nothing where it was answered before. */
static void reply_started(struct running *running, uint64_t pid)
{
	struct call *call = running->call;
	int fds[FRAME_FD_MAX];
	size_t count = 0;
	struct buf *out;

	if (!call)
		return;
	running->call = NULL;
	out = call_begin_reply(call, 200);
	field_put_u64(out, "command", running->command);
	field_put_u64(out, "pid", pid ? pid : running->command);
	put_streams(out, running->fds, fds, &count);
	call_end_reply(call, fds, count);
}

void commands_started(struct sandbox *sandbox, const atoll_record *event)
{
	uint64_t command = 0, pid = 0;
	struct running *running;

	atoll_get_u64(event, "command", &command);
	atoll_get_u64(event, "pid", &pid);
	if (command > sandbox->commands.last)
		sandbox->commands.last = command;
	running = find_running(sandbox, command);
	if (!running)
		return;
	/* The terminal of a command that does not last comes with this event. */
	if (running->fds[3] < 0)
		running->fds[3] = atoll_take_fd((atoll_record *)event, "terminal");
	reply_started(running, pid);
}

static void put_number(struct buf *out, const atoll_record *from, const char *key)
{
	uint64_t number;

	if (atoll_get_u64(from, key, &number))
		field_put_u64(out, key, number);
}

static void put_end(struct buf *out, const atoll_record *from)
{
	const char *ended;

	put_number(out, from, "exit");
	put_number(out, from, "signal");
	put_number(out, from, "errno");
	if (atoll_get_string(from, "ended", &ended))
		field_put_string(out, "ended", ended);
}

/* It never began: a program or a directory that is not there. */
static void fail_start(struct running *running, uint64_t errnum)
{
	const char *const *argv = service_strings(running->call->message, "argv");
	char shown[ERR_QUOTE_SIZE];

	call_fail(running->call, 400, NULL, "%s cannot be started: %s", err_quote(shown, argv[0]),
		  err_errno_name((int)errnum));
	running->call = NULL;
}

static void tell_end(struct sandbox *sandbox, uint64_t command, const atoll_record *from)
{
	struct buf *out = &sandbox->daemon->reply;

	service_begin_event(out, SERVICE_EXIT);
	field_put_string(out, "sandbox", sandbox->id);
	field_put_u64(out, "command", command);
	put_end(out, from);
	if (service_end(out, 0) == 0)
		front_send(&sandbox->daemon->front, out, NULL, 0);
}

void commands_ended(struct sandbox *sandbox, const atoll_record *event)
{
	uint64_t command = 0, errnum = 0;
	struct running *running;
	bool has_failed;

	atoll_get_u64(event, "command", &command);
	atoll_get_u64(event, "errno", &errnum);
	if (command > sandbox->commands.last)
		sandbox->commands.last = command;
	for (size_t i = 0; i < AHEAD_MAX; i++)
		if (command == sandbox->commands.ahead[i].command)
			ahead_done(&sandbox->commands.ahead[i]);
	running = find_running(sandbox, command);
	has_failed = running && running->call && errnum;
	if (has_failed)
		fail_start(running, errnum);
	else if (running)
		reply_started(running, 0);
	if (running)
		forget_running(sandbox, running);
	if (!has_failed)
		tell_end(sandbox, command, event);
}

void commands_gone(struct sandbox *sandbox)
{
	for (size_t i = 0; i < AHEAD_MAX; i++)
		ahead_done(&sandbox->commands.ahead[i]);
	while (sandbox->commands.running) {
		struct running *running = sandbox->commands.running;

		if (running->call)
			call_fail_atoll(running->call, ATOLL_E_GONE, "the sandbox has ended", "");
		forget_running(sandbox, running);
	}
}

/* ---- those that run ---- */

/* Asks for the commands behind the call's own `count`, the number of the last one that was seen. */
static void ask_list(struct sandbox *sandbox, struct call *call, await_done *done)
{
	struct atoll_error error = { .size = sizeof error };
	uint64_t ticket = 0;
	int r = atoll_commands(sandbox->handle, call->count, &ticket, NULL, &error);

	await_answer(sandbox, call, r, ticket, &error, done);
}

static int next_row(atoll_cursor *rows, atoll_record **ret_row)
{
	return atoll_cursor_next(rows, ret_row, NULL);
}

static void put_row(struct call *call, const atoll_record *from)
{
	struct buf *row = &call->daemon->row;
	const char *const *argv, *text;
	uint64_t number = 0, pid = 0;

	atoll_get_u64(from, "number", &number);
	atoll_get_u64(from, "pid", &pid);
	service_begin_row(row);
	field_put_u64(row, "command", number);
	field_put_u64(row, "pid", pid ? pid : number);
	if (atoll_get_string(from, "tag", &text) && *text)
		field_put_string(row, "tag", text);
	if (atoll_get_strings(from, "argv", &argv))
		field_put_strings(row, "argv", argv);
	if (atoll_get_string(from, "cwd", &text))
		field_put_string(row, "cwd", text);
	service_put_row(&call->rows, row);
}

static void ask_lost(struct sandbox *sandbox, uint64_t after);

/* Of one row: who waits for its start is answered, and its end is told, once more where it was told before. */
static void catch_up_row(struct sandbox *sandbox, const atoll_record *row)
{
	uint64_t number = 0, pid = 0;
	struct running *running;
	const char *ended;

	atoll_get_u64(row, "number", &number);
	atoll_get_u64(row, "pid", &pid);
	if (number > sandbox->commands.last)
		sandbox->commands.last = number;
	running = find_running(sandbox, number);
	if (running) {
		running->is_listed = true;
		reply_started(running, pid);
	}
	if (!atoll_get_string(row, "ended", &ended))
		return;
	tell_end(sandbox, number, row);
	if (running)
		forget_running(sandbox, running);
}

/* A command that the box has forgotten has ended, and nobody knows how. */
static void give_up(struct sandbox *sandbox)
{
	atoll_record *nothing = atoll_record_new(ATOLL_COMMAND);
	struct running *running = sandbox->commands.running, *next;

	for (; running; running = next) {
		bool is_over = running->command <= sandbox->commands.last && !running->is_listed;

		next = running->next;
		running->is_listed = false;
		if (!is_over)
			continue;
		reply_started(running, 0);
		tell_end(sandbox, running->command, nothing);
		forget_running(sandbox, running);
	}
	atoll_record_free(nothing);
}

static void catch_up(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	atoll_cursor *rows = NULL;
	atoll_record *row;
	uint64_t next = 0;

	sandbox->commands.is_catching_up = false;
	if (outcome->code || atoll_rows(sandbox->handle, outcome->result, &rows, NULL) < 0)
		return;
	while (next_row(rows, &row) == 1) {
		catch_up_row(sandbox, row);
		atoll_record_free(row);
	}
	atoll_cursor_free(rows);
	if (atoll_get_u64(outcome->result, "next", &next) && next)
		ask_lost(sandbox, next);
	else
		give_up(sandbox);
}

static void ask_lost(struct sandbox *sandbox, uint64_t after)
{
	struct atoll_error error = { .size = sizeof error };
	uint64_t ticket = 0;
	int r;

	sandbox->commands.is_catching_up = true;
	r = atoll_commands(sandbox->handle, after, &ticket, NULL, &error);
	await_answer(sandbox, NULL, r, ticket, &error, catch_up);
}

void commands_lost(struct sandbox *sandbox)
{
	if (!sandbox->commands.is_catching_up)
		ask_lost(sandbox, 0);
}

static void list_done(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	struct buf *out;
	atoll_cursor *rows = NULL;
	atoll_record *row;
	const char *ended;

	if (outcome->code || atoll_rows(sandbox->handle, outcome->result, &rows, NULL) < 0) {
		call_fail_atoll(call, outcome->code ? outcome->code : ATOLL_E_PROTOCOL, outcome->what, outcome->hint);
		return;
	}
	out = call_begin_reply(call, 200);
	while (next_row(rows, &row) == 1) {
		if (!atoll_get_string(row, "ended", &ended))
			put_row(call, row);
		atoll_record_free(row);
	}
	atoll_cursor_free(rows);
	buf_put(out, call->rows.bytes, call->rows.size);
	call_end_reply(call, NULL, 0);
}

void commands_list(struct call *call)
{
	ask_list(call->sandbox, call, list_done);
}

/* Whether a row is the command that the call means: by number, by pid, or by tag. */
static bool is_meant(const struct call *call, const atoll_record *row)
{
	const char *tag = call_string(call, "tag"), *own = NULL;
	uint64_t number = 0, pid = 0;

	atoll_get_u64(row, "number", &number);
	atoll_get_u64(row, "pid", &pid);
	atoll_get_string(row, "tag", &own);
	if (service_get(call->message, "pid"))
		return call_number(call, "pid", 0) == (pid ? pid : number);
	return tag && *tag && str_equal(tag, own);
}

/* What is done with a command once its number is known. */
static void act(struct sandbox *sandbox, struct call *call, uint64_t command);

/* The newest that is meant: a pid and a tag may be used again. */
static void find_done(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	atoll_cursor *rows = NULL;
	uint64_t found = 0;
	atoll_record *row;

	if (outcome->code || atoll_rows(sandbox->handle, outcome->result, &rows, NULL) < 0) {
		call_fail_atoll(call, outcome->code ? outcome->code : ATOLL_E_PROTOCOL, outcome->what, outcome->hint);
		return;
	}
	while (next_row(rows, &row) == 1) {
		uint64_t number = 0;

		atoll_get_u64(row, "number", &number);
		if (is_meant(call, row) && number > found)
			found = number;
		atoll_record_free(row);
	}
	atoll_cursor_free(rows);
	if (found)
		act(sandbox, call, found);
	else
		call_fail(call, 404, NULL, "there is no such process");
}

static void with_command(struct call *call)
{
	uint64_t command = call_number(call, "command", 0);

	if (command)
		act(call->sandbox, call, command);
	else if (service_get(call->message, "pid") || call_string(call, "tag"))
		ask_list(call->sandbox, call, find_done);
	else
		call_fail(call, 400, NULL, "no process is named: pid or tag");
}

static void attach_done(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	int streams[ARRAY_SIZE(stream_keys)], fds[FRAME_FD_MAX];
	struct buf *out;
	size_t count = 0;

	if (outcome->code) {
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
		return;
	}
	out = call_begin_reply(call, 200);
	field_put_u64(out, "command", call->count);
	kept_put(out, call->message, "pid");
	take_streams(outcome->result, streams);
	if (streams[3] >= 0)
		field_put_u64(out, "pty", 1);
	put_streams(out, streams, fds, &count);
	call_end_reply(call, fds, count);
}

static void act(struct sandbox *sandbox, struct call *call, uint64_t command)
{
	struct atoll_error error = { .size = sizeof error };
	uint64_t ticket = 0;
	int r;

	call->count = command;
	switch (call->message->operation) {
	case SERVICE_ATTACH:
		r = atoll_attach(sandbox->handle, command, NULL, &ticket, NULL, &error);
		await_answer(sandbox, call, r, ticket, &error, attach_done);
		return;
	case SERVICE_SIGNAL:
		r = atoll_signal(sandbox->handle, command, (int32_t)call_number(call, "signal", 0), &ticket, NULL,
		&error);
		await_answer(sandbox, call, r, ticket, &error, await_reply);
		return;
	case SERVICE_RESIZE:
		r = atoll_resize(sandbox->handle, command, (uint32_t)call_number(call, "rows", ROWS_DEFAULT),
				 (uint32_t)call_number(call, "columns", COLUMNS_DEFAULT), &error);
		if (r < 0)
			call_fail_atoll(call, r, error.what, error.hint);
		else
			call_reply(call, 204);
		return;
	default:
		r = atoll_close_input(sandbox->handle, command, &ticket, NULL, &error);
		await_answer(sandbox, call, r, ticket, &error, await_reply);
	}
}

void commands_attach(struct call *call)
{
	with_command(call);
}

void commands_signal(struct call *call)
{
	with_command(call);
}

void commands_resize(struct call *call)
{
	with_command(call);
}

void commands_close_input(struct call *call)
{
	with_command(call);
}

void commands_interpret(struct call *call)
{
	static const char *const keys[][2] = { { "token", "envd" }, { "traffic_token", "traffic" } };
	char token[CREDENTIAL_TOKEN_SIZE];
	bool may = false;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		credential_token(call->daemon->secret, keys[i][1], call->sandbox->id, token);
		may |= credential_is_equal(call_string(call, keys[i][0]), token);
	}
	if (may)
		call_reply(call, 204);
	else
		call_fail(call, 401, NULL, "the access token of the sandbox, or that of its ports, is needed");
}
