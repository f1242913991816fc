/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/run.h"

#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "service/launcher/build/archives.h"
#include "service/launcher/build/scripts.h"
#include "service/launcher/call/await.h"
#include "service/launcher/store/user.h"
#include "session/directories.h"

enum { MS_PER_S = 1000 };

static void say(struct build *build, const char *level, const char *text)
{
	build_log_add(&build->log, build_now_ms(), level, text);
}

static void set_step(struct build *build, size_t number)
{
	(void)!str_format(build->log.step, sizeof build->log.step, "%zu", number);
}

/* ---- the end ---- */

/* The sandbox goes; whatever it says from now on is nobody's. */
static void leave(struct build *build)
{
	struct sandbox *sandbox = build->sandbox;

	build->phase = BUILD_IN_END;
	build->sandbox = NULL;
	plan_done(&build->plan);
	settings_done(&build->settings);
	kept_done(&build->request);
	if (!sandbox)
		return;
	sandbox->beginning.build = NULL;
	build->daemon->hooks.verbs->kill(sandbox, NULL);
}

void build_fail(struct build *build, const char *step, const char *message)
{
	if (build->phase == BUILD_IN_END)
		return;
	say(build, "error", message);
	if (build_write_end(build, BUILD_ERROR, step, message, NULL) < 0)
		(void)!call_note(build->daemon, "template.build", NULL, "the end of a build cannot be written down");
	leave(build);
}

static void fail_here(struct build *build, const char *message)
{
	char step[BUILD_STEP_SIZE];

	if (str_copy(step, sizeof step, build->log.step) == 0)
		build_fail(build, step, message);
}

void build_publish(struct build *build, const struct build_cached *state)
{
	struct build_cached end = *state;

	end.used_ms = build_now_ms();
	memcpy(end.owner, build->owner, sizeof end.owner);
	memcpy(end.hash, build->plan.end, sizeof end.hash);
	if (builds_put_cached(build->daemon->store, &end) < 0 ||
	    build_write_end(build, BUILD_READY, "", "", &end) < 0 || build->daemon->hooks.verbs->hold(build->daemon) < 0) {
		fail_here(build, "the template cannot be written down");
		return;
	}
	say(build, "info", "the template is ready");
	leave(build);
}

/* ---- commands ---- */

static void go_on(struct build *build);

/* One that ended: with a status, by a signal, or it did not begin. */
static void command_is_over(struct build *build)
{
	build_log_flush(&build->log, build_now_ms());
	build->command = 0;
	if (build->problem[0] && build->phase == BUILD_IN_START)
		fail_here(build, "the ready command did not succeed in its time");
	else if (build->problem[0])
		fail_here(build, build->problem);
	else
		go_on(build);
}

static void started(struct sandbox *sandbox, struct call *unused, const struct outcome *outcome)
{
	struct build *build = sandbox->beginning.build;

	if (!build || build->phase == BUILD_IN_END)
		return;
	if (outcome->code) {
		fail_here(build, outcome->what);
		return;
	}
	atoll_get_u64(outcome->result, "command", &build->command);
	/* Its end may have come before this answer. */
	if (build->ended == build->command)
		command_is_over(build);
}

struct order {
	const char *const *words;
	const char *cwd;
	int stdin_fd;                    /* borrowed; FD_NONE: null */
	uint64_t timeout_ms;
	bool lasts;                      /* until the sandbox ends; nobody waits for it */
};

static int fill(struct build *build, const struct order *order, atoll_record *record, struct atoll_error *error)
{
	static const char *const none[] = { NULL };
	const char *const *env = (const char *const *)build->settings.env;
	int r = atoll_set_strings(record, "argv", order->words, error);

	if (r == 0)
		r = atoll_set_string(record, "cwd", order->cwd, error);
	if (r == 0)
		r = atoll_set_strings(record, "env_add", env[0] ? env : none, error);
	if (r == 0)
		r = atoll_set_string(record, "streams", "capture", error);
	if (r == 0 && order->stdin_fd >= 0)
		r = atoll_set_fd(record, "stdin", order->stdin_fd, error);
	if (r == 0 && order->timeout_ms)
		r = atoll_set_u64(record, "timeout_ms", order->timeout_ms, error);
	return r;
}

static void forget_start(struct sandbox *sandbox, struct call *unused, const struct outcome *outcome)
{
	if (outcome->code && sandbox->beginning.build)
		fail_here(sandbox->beginning.build, outcome->what);
}

static void run(struct build *build, const struct order *order)
{
	struct atoll_error error = { .size = sizeof error };
	atoll_record *record = atoll_record_new(ATOLL_COMMAND);
	uint64_t ticket = 0;
	int r = record ? fill(build, order, record, &error) : ATOLL_E_NO_MEMORY;

	build->command = 0;
	if (r == 0)
		r = atoll_exec(build->sandbox->handle, record, &ticket, NULL, &error);
	atoll_record_free(record);
	await_answer(build->sandbox, NULL, r, ticket, &error, order->lasts ? forget_start : started);
}

/* How a command ended, in words; "": well. */
static void describe_end(const atoll_record *event, char *out, size_t size)
{
	uint64_t exit = 0, signal = 0, errnum = 0;
	const char *ended = "";

	atoll_get_u64(event, "exit", &exit);
	atoll_get_u64(event, "signal", &signal);
	atoll_get_u64(event, "errno", &errnum);
	atoll_get_string(event, "ended", &ended);
	out[0] = 0;
	if (errnum)
		(void)!str_format(out, size, "the command cannot be started: %s", err_errno_name((int)errnum));
	else if (str_equal(ended, "time"))
		(void)!str_format(out, size, "the command did not end in its time");
	else if (signal)
		(void)!str_format(out, size, "the command was ended by signal %u", (unsigned)signal);
	else if (exit)
		(void)!str_format(out, size, "the command ended with exit code %u", (unsigned)exit);
}

void build_event(struct sandbox *sandbox, const atoll_record *event)
{
	struct build *build = sandbox->beginning.build;
	uint64_t type = 0, stream = 0, command = 0;
	const void *bytes;
	size_t size;

	atoll_get_u64(event, "event", &type);
	atoll_get_u64(event, "command", &command);
	if (type == ATOLL_EVENT_OUTPUT && atoll_get_u64(event, "stream", &stream) &&
	    atoll_get_bytes(event, "bytes", &bytes, &size))
		build_log_output(&build->log, build_now_ms(), (unsigned)stream, bytes, size);
	if (type != ATOLL_EVENT_EXIT || (build->command && command != build->command))
		return;
	build->ended = command;
	describe_end(event, build->problem, sizeof build->problem);
	if (build->command)
		command_is_over(build);
}

/* ---- steps ---- */

static void taken(struct sandbox *sandbox, struct call *unused, const struct outcome *outcome)
{
	struct build *build = sandbox->beginning.build;
	struct build_cached *last;
	int r;

	if (!build || build->phase == BUILD_IN_END)
		return;
	if (outcome->code) {
		fail_here(build, outcome->what);
		return;
	}
	last = &build->last;
	last->used_ms = build_now_ms();
	memcpy(last->owner, build->owner, sizeof last->owner);
	memcpy(last->session, sandbox->session, sizeof last->session);
	r = str_copy(last->snapshot, sizeof last->snapshot, build->snapshot);
	if (r == 0 && build->at < build->plan.count) {
		memcpy(last->hash, build->plan.steps[build->at].hash, sizeof last->hash);
		r = builds_put_cached(build->daemon->store, last);
	}
	if (r == 0)
		r = build->daemon->hooks.verbs->hold(build->daemon);
	if (r < 0) {
		fail_here(build, "the state behind a step cannot be written down");
		return;
	}
	build->at++;
	go_on(build);
}

/* What is staged by now, so that a later build can begin with it. */
static void take_snapshot(struct build *build)
{
	struct atoll_error error = { .size = sizeof error };
	atoll_record *record = atoll_record_new(ATOLL_SNAPSHOT);
	uint64_t ticket = 0;
	int r = record && credential_new_id(build->snapshot) == 0 ? 0 : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_set_string(record, "name", build->snapshot, &error);
	if (r == 0)
		r = atoll_snapshot(build->sandbox->handle, record, &ticket, NULL, &error);
	atoll_record_free(record);
	await_answer(build->sandbox, NULL, r, ticket, &error, taken);
}

static bool check_user(struct build *build, const char *user)
{
	char root[PATH_MAX];
	struct err err = { 0 };
	bool is_root = str_equal(user, "root") && session_root_of(build->daemon->places.state, build->sandbox->session,
								  root, sizeof root) == 0;

	if (!user || !*user || user_check(user, is_root, &err) == 0)
		return true;
	fail_here(build, err.message);
	return false;
}

static void run_script(struct build *build, const char *script, const char *const arguments[4], int stdin_fd)
{
	const char *words[9] = { "/bin/sh", "-c", script, "sh" };
	const struct order order = { words, USER_HOME, stdin_fd, BUILD_STEP_TIME_MS, false };

	for (size_t i = 0; i < 4 && arguments[i]; i++)
		words[4 + i] = arguments[i];
	run(build, &order);
}

static bool is_gzip(int fd)
{
	uint8_t magic[2] = { 0 };

	return pread(fd, magic, sizeof magic, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
}

static void copy(struct build *build, const struct build_step *step)
{
	const char *mode = step->argument_count > 3 ? step->arguments[3] : "";
	size_t length = strlen(step->arguments[1]);
	bool is_directory = length && step->arguments[1][length - 1] == '/';
	char path[PATH_MAX], to[PATH_MAX + 1];
	const char *arguments[4];
	struct err err = { 0 };
	cleanup_fd int fd = archives_open(build->daemon->places.directory, build->owner, step->files);

	if (fd < 0) {
		fail_here(build, "the files of this step were not uploaded");
		return;
	}
	if (settings_path(&build->settings, step->arguments[1], path, &err) < 0 ||
	    str_format(to, sizeof to, "%s%s", path, is_directory ? "/" : "") < 0) {
		fail_here(build, err.message);
		return;
	}
	if (strspn(mode, "01234567") != strlen(mode)) {
		fail_here(build, "the permissions of this step are no octal number");
		return;
	}
	arguments[0] = step->arguments[0];
	arguments[1] = to;
	arguments[2] = mode;
	arguments[3] = is_gzip(fd) ? "-xzof" : "-xof";
	if (check_user(build, step->argument_count > 2 ? step->arguments[2] : NULL))
		run_script(build, script_copy, arguments, fd);
}

static void do_step(struct build *build, const struct build_step *step)
{
	const char *user = step->type == STEP_RUN && step->argument_count > 1 ? step->arguments[1] : "";
	const char *words[6];
	const struct order order = { words, build->settings.cwd, FD_NONE, BUILD_STEP_TIME_MS, false };
	const char *arguments[4] = { build->settings.cwd };

	if (step->type == STEP_COPY) {
		copy(build, step);
	} else if (step->type == STEP_WORKDIR) {
		run_script(build, script_directory, arguments, FD_NONE);
	} else if (check_user(build, *user ? user : build->settings.user)) {
		script_command(step->arguments[0], words);
		run(build, &order);
	}
}

static void tell_step(struct build *build, const char *before)
{
	const struct build_step *step = &build->plan.steps[build->at];
	char shown[400], text[512];

	set_step(build, build->at + 1);
	plan_step_show(step, shown, sizeof shown);
	if (str_format(text, sizeof text, "%s[%zu/%zu] %s", before, build->at + 1, build->plan.count, shown) == 0)
		say(build, "info", text);
}

int build_skip(struct build *build, size_t count, struct err *err)
{
	int r = 0;

	for (; r == 0 && build->at < count; build->at++) {
		tell_step(build, "CACHED ");
		r = settings_apply(&build->settings, &build->plan.steps[build->at], err);
	}
	return r;
}

/* The next step that a command does; false: there is none, or the build has failed. */
static bool find_step(struct build *build)
{
	for (; build->at < build->plan.count; build->at++) {
		const struct build_step *step = &build->plan.steps[build->at];
		struct err err = { 0 };

		tell_step(build, "");
		if (settings_apply(&build->settings, step, &err) < 0) {
			fail_here(build, err.message);
			return false;
		}
		if (step->type == STEP_USER && !check_user(build, build->settings.user))
			return false;
		if (plan_step_is_done(step))
			return true;
	}
	return false;
}

/* ---- start ---- */

/*
 * What the template will be is on disk already: what the start command writes is not part of it, since it runs anew in
 * each sandbox. That it begins and becomes ready is seen here.
 */
static void try_start(struct build *build)
{
	const char *start = service_string(build->request.message, "start");
	const char *ready = service_string(build->request.message, "ready");
	const char *words[6], *waiting[6];
	const struct order lasting = { words, build->settings.cwd, FD_NONE, 0, true };
	const struct order order = { waiting, build->settings.cwd, FD_NONE,
				     build->daemon->settings->ready_s * MS_PER_S, false };

	build->phase = BUILD_IN_START;
	(void)!str_copy(build->log.step, sizeof build->log.step, "finalize");
	if (start) {
		say(build, "info", "running the start command");
		script_command(start, words);
		run(build, &lasting);
	}
	if (build->phase == BUILD_IN_END)
		return;
	if (!ready) {
		build_publish(build, &build->last);
		return;
	}
	say(build, "info", "waiting for the ready command");
	script_ready(ready, waiting);
	run(build, &order);
}

static void go_on(struct build *build)
{
	if (build->phase == BUILD_IN_END)
		return;
	if (build->phase == BUILD_IN_START) {
		build_publish(build, &build->last);
		return;
	}
	/* Behind a command: its state first. */
	if (build->ended) {
		build->ended = 0;
		take_snapshot(build);
		return;
	}
	if (find_step(build))
		do_step(build, &build->plan.steps[build->at]);
	else if (build->phase != BUILD_IN_END && !build->last.session[0])
		take_snapshot(build);
	else if (build->phase != BUILD_IN_END)
		try_start(build);
}

void build_begin(struct build *build, struct sandbox *sandbox)
{
	build->sandbox = sandbox;
	sandbox->beginning.build = build;
	go_on(build);
}

void build_gone(struct sandbox *sandbox, const char *ended)
{
	struct build *build = sandbox->beginning.build;
	char text[128];

	if (!build)
		return;
	build->sandbox = NULL;
	sandbox->beginning.build = NULL;
	if (str_format(text, sizeof text, "the sandbox of the build has ended: %s", ended) == 0)
		fail_here(build, text);
}
