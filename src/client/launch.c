/* SPDX-License-Identifier: Apache-2.0 */
#include "client/launch.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "detect/agent-trust.h"
#include "os/clock.h"
#include "os/fd.h"
#include "session/auto-gc.h"
#include "session/narrowing.h"
#include "session/record.h"
#include "stage/record/record.h"
#include "wire/link.h"

enum { NOTICE_MAX = 64 << 10 };

struct launch {
	const struct run_request *request;
	const struct run_policy *policy;
};

/* What the waiting half of a detached start learns: the session's id, or why there is none. */
struct outcome {
	int status;
	struct err err;
};

static void print_error(const struct run_request *request, const struct err *err)
{
	const char *advice = err_advice(err);
	char memory[1200];
	struct buf out;

	buf_init_fixed(&out, memory, sizeof memory);
	buf_printf(&out, "atoll: %s%s%s\n", err->message, err_joint(err), advice);
	run_request_tell(request, &out);
}

static void say(const struct run_request *request, const char *format, const char *text)
{
	char memory[600];
	struct buf out;

	buf_init_fixed(&out, memory, sizeof memory);
	buf_printf(&out, format, text);
	run_request_tell(request, &out);
}

static bool has_staged(const struct run_request *request, const char *session)
{
	char path[PATH_MAX];

	return session_path(request->state_dir, session, STAGE_DIRECTORY "/" STAGE_FILE_TREES, path,
			    sizeof path) == 0 &&
	       access(path, F_OK) == 0;
}

/* What a guardian left: a session whose box was killed (build/guardian.h). Said once. */
static void print_lost_sessions(const struct run_request *request)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX], *at, *line;
	size_t size;

	if (str_format(path, sizeof path, "%s/notice", request->state_dir) < 0 ||
	    fd_read_file_at(AT_FDCWD, path, NOTICE_MAX, &text, &size) < 0)
		return;
	unlink(path);
	at = text;
	while ((line = strsep(&at, "\n")))
		if (strlen(line) == SESSION_ID_SIZE - 1)
			say(request, has_staged(request, line)
				    ? "atoll: session %s was cut off: its supervisor was killed; its log and what it "
				      "staged are kept (atoll log, atoll ps -a, atoll diff)\n"
				    : "atoll: session %s was cut off: its supervisor was killed; its log is kept "
				      "(atoll log, atoll ps -a)\n",
			    line);
}

static void print_notes(const struct run_request *request)
{
	/* Quiet or not: nobody shall run with it and not know. */
	if (request->tests.hosts)
		say(request, "atoll: test hook ATOLL_TEST_HOSTS: names lead to %s\n", request->tests.hosts);
	if (request->flags & REQUEST_QUIET)
		return;
	print_lost_sessions(request);
	daily_say(request);
}

/* The same process goes on as `atoll apply`, whose exit status is the run's, or `atoll review`, which keeps that. */
static int become_verb(const struct run_request *request, const char *verb, int status, struct err *err)
{
	char program[PATH_MAX], number[16];
	char *then = str_equal(verb, "review") ? (char *)"--then-exit" : NULL;
	char *argv[] = { program, (char *)verb, (char *)request->session, then, number, NULL };

	if (path_beside(program, sizeof program, request->init_path, "atoll") == 0 &&
	    str_format(number, sizeof number, "%d", status) == 0) {
		sigprocmask(SIG_SETMASK, &(sigset_t){ 0 }, NULL);
		signal(SIGPIPE, SIG_DFL);
		execve(program, argv, request->command.env);
	}
	err_set(err, ERR_STATE, errno, verb, "%s cannot be started: %s", program, err_errno_name(errno));
	err_hint(err, "all changes are kept; run `atoll %s` yourself", verb);
	return 125;
}

static int run(const struct launch *launch, int announce_fd, struct err *err)
{
	int status = 125;
	const char *next = NULL;
	int r = box_run(launch->request, launch->policy, announce_fd, &status, &next, err);

	agent_trust_blame(launch->request->agent, err);
	auto_gc(launch->request);
	/* Else this process ends now, and what the box holds with it. */
	if (next || launch->request->flags & REQUEST_DETACH)
		box_release();
	if (next)
		return become_verb(launch->request, next, status, err);
	return r < 0 ? (err->code == ERR_NONE ? 125 : err_exit_status(err)) : status;
}

/* The half that stays: a session of its own, no terminal, no streams. */
static int run_detached(const struct launch *launch, int announce_fd)
{
	struct outcome outcome = { 0 };
	int error_fd = fcntl(announce_fd, F_DUPFD_CLOEXEC, 3);
	int null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);

	if (error_fd < 0 || null_fd < 0)
		return 125;
	setsid();
	for (int fd = 0; fd <= 2; fd++)
		dup2(null_fd, fd);
	close(null_fd);
	outcome.status = run(launch, announce_fd, &outcome.err);
	/* After the id was announced nobody reads this any more; before it, this is the answer. */
	if (outcome.err.code != ERR_NONE && fd_write_full(error_fd, &outcome, sizeof outcome) < 0)
		return outcome.status;
	return outcome.status;
}

static void print_session(const struct run_request *request)
{
	char memory[512];
	struct json json;
	struct buf out;

	buf_init_fixed(&out, memory, sizeof memory);
	if (request->flags & REQUEST_JSON) {
		json_init(&json, &out);
		json_object_begin(&json, NULL);
		json_string(&json, "session", request->session);
		json_string(&json, "name", request->name);
		json_object_end(&json);
	} else {
		buf_put_text(&out, request->session);
	}
	buf_put_char(&out, '\n');
	if (fd_write_full(1, out.bytes, out.size) < 0)
		return; /* the sandbox lives all the same; `atoll ps` shows it */
}

static int wait_for_start(const struct run_request *request, int fd)
{
	struct outcome outcome;
	ssize_t n;

	do
		n = read(fd, &outcome, sizeof outcome);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)strlen(request->session)) {
		print_session(request);
		return 0;
	}
	if (n == (ssize_t)sizeof outcome) {
		print_error(request, &outcome.err);
		return outcome.status;
	}
	err_set(&outcome.err, ERR_INTERNAL, 0, "start", "the sandbox ended while it was started");
	print_error(request, &outcome.err);
	return 125;
}

static int detach(const struct launch *launch, struct err *err)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, errno, "start", "pipe: %s", err_errno_name(errno));
	pid = fork();
	if (pid < 0)
		return err_set(err, ERR_INTERNAL, errno, "start", "fork: %s", err_errno_name(errno));
	if (pid == 0) {
		close(ends[0]);
		_exit(run_detached(launch, ends[1]));
	}
	close(ends[1]);
	return wait_for_start(launch->request, ends[0]);
}

/* Another program has started it, which hears of everything by its socket: nothing is printed. */
static int run_for_starter(const struct launch *launch)
{
	struct err err = { 0 };
	int status = run(launch, FD_NONE, &err);

	/* It heard of the end of what lived; then this comes behind that, and it does not read on. */
	if (err.code != ERR_NONE)
		link_send_failure(launch->request->starter->socket_fd, &err);
	return status;
}

int launch_box(const struct run_request *request, const struct run_policy *policy)
{
	struct launch launch = { request, policy };
	struct err err = { 0 };
	int status;

	/* The caller refused it by name; to go on would be to run without a wall. */
	assert(!policy->policy->unenforced_count);
	/* `atoll run` in ps is now what supervises a sandbox. */
	prctl(PR_SET_NAME, "atoll-box");
	if (request->starter)
		return run_for_starter(&launch);
	print_notes(request);
	status = request->flags & REQUEST_DETACH ? detach(&launch, &err) : run(&launch, FD_NONE, &err);
	if (err.code != ERR_NONE)
		print_error(request, &err);
	if (err.code != ERR_NONE && narrowing_holds(request->narrowing))
		say(request, "%s", narrowing_hint);
	return status < 0 ? 125 : status;
}
