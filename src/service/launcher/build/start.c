/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/start.h"

#include "base/str.h"
#include "service/launcher/build/run.h"
#include "service/launcher/build/scripts.h"
#include "service/launcher/store/user.h"

enum { MS_PER_S = 1000 };

bool start_is_wanted(const struct sandbox *sandbox)
{
	const struct service_message *made = sandbox->made.message;

	return made && (service_string(made, "start_command") || service_string(made, "ready_command"));
}

static void finish(struct sandbox *sandbox, int code, const char *what)
{
	const struct outcome outcome = { .code = code, .what = what, .hint = "" };
	await_done *done = sandbox->beginning.started;

	sandbox->beginning.started = NULL;
	sandbox->beginning.waits_for = 0;
	if (done)
		done(sandbox, NULL, &outcome);
}

static int fill(const struct sandbox *sandbox, const char *const *words, bool lasts, atoll_record *record,
		struct atoll_error *error)
{
	static const char *const none[] = { NULL };
	const struct service_message *made = sandbox->made.message;
	const char *const *env = service_strings(made, "env");
	const char *cwd = service_string(made, "cwd");
	int r = atoll_set_strings(record, "argv", words, error);

	if (r == 0)
		r = atoll_set_string(record, "cwd", cwd ? cwd : USER_HOME, error);
	if (r == 0)
		r = atoll_set_strings(record, "env_add", env ? env : none, error);
	if (r == 0 && lasts)
		r = atoll_set_string(record, "streams", "pipe", error);
	if (r == 0 && lasts)
		r = atoll_set_u64(record, "keep", 1, error);
	if (r == 0 && lasts)
		r = atoll_set_u64(record, "unattached", 1, error);
	if (r == 0 && lasts)
		r = atoll_set_string(record, "tag", "start", error);
	if (r == 0 && !lasts)
		r = atoll_set_u64(record, "timeout_ms", sandbox->daemon->settings->ready_s * MS_PER_S, error);
	return r;
}

static void run(struct sandbox *sandbox, const char *const *words, bool lasts, await_done *done)
{
	struct atoll_error error = { .size = sizeof error };
	atoll_record *record = atoll_record_new(ATOLL_COMMAND);
	uint64_t ticket = 0;
	int r = record ? fill(sandbox, words, lasts, record, &error) : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_exec(sandbox->handle, record, &ticket, NULL, &error);
	atoll_record_free(record);
	await_answer(sandbox, NULL, r, ticket, &error, done);
}

static void look(struct sandbox *sandbox)
{
	if (!sandbox->beginning.waits_for || sandbox->beginning.ended != sandbox->beginning.waits_for)
		return;
	finish(sandbox, sandbox->beginning.is_ready ? 0 : ATOLL_E_TIMEOUT,
	       "the ready command of the template did not succeed in its time");
}

static void is_waiting(struct sandbox *sandbox, struct call *unused, const struct outcome *outcome)
{
	if (outcome->code) {
		finish(sandbox, outcome->code, outcome->what);
		return;
	}
	atoll_get_u64(outcome->result, "command", &sandbox->beginning.waits_for);
	look(sandbox);
}

static void has_begun(struct sandbox *sandbox, struct call *unused, const struct outcome *outcome)
{
	const char *ready = service_string(sandbox->made.message, "ready_command");
	const char *words[6];

	if (outcome->code || !ready) {
		finish(sandbox, outcome->code, outcome->what);
		return;
	}
	script_ready(ready, words);
	run(sandbox, words, false, is_waiting);
}

void start_begin(struct sandbox *sandbox, await_done *done)
{
	const char *start = service_string(sandbox->made.message, "start_command");
	const struct outcome nothing = { .code = 0, .what = "", .hint = "" };
	const char *words[6];

	sandbox->beginning.started = done;
	if (!start) {
		has_begun(sandbox, NULL, &nothing);
		return;
	}
	script_command(start, words);
	run(sandbox, words, true, has_begun);
}

bool start_ended(struct sandbox *sandbox, const atoll_record *event)
{
	uint64_t exit = 0, signal = 0, errnum = 0;
	bool is_waited;

	if (!sandbox->beginning.started)
		return false;
	atoll_get_u64(event, "command", &sandbox->beginning.ended);
	atoll_get_u64(event, "exit", &exit);
	atoll_get_u64(event, "signal", &signal);
	atoll_get_u64(event, "errno", &errnum);
	sandbox->beginning.is_ready = !exit && !signal && !errnum;
	is_waited = sandbox->beginning.ended == sandbox->beginning.waits_for;
	look(sandbox);
	return is_waited;
}
