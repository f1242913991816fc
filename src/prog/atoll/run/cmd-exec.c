/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `atoll exec`: runs one more command in a live session, by libatoll. Streams travel as descriptors;
 * a terminal stays here and is joined to the pty that comes back. Signals, stops and the exit status
 * are passed on, so that the command behaves in a pipeline as it would without the sandbox.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/json.h"
#include "base/str.h"
#include "client/dirs.h"
#include "client/tokens.h"
#include "os/fd.h"
#include "prog/atoll/run/attached.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/library.h"
#include "prog/atoll/verb/say.h"
#include "session/env-additions.h"
#include "supervise/console.h"
#include "wire/token.h"

/* As console_detect() says it: a pty takes the place of all three streams, or of none. */
enum { ALL_STREAMS = 1 << STDIN_FILENO | 1 << STDOUT_FILENO | 1 << STDERR_FILENO };

extern char **environ;

enum { AGAIN_MS = 100 };

struct exec_options {
	const char *cwd, *token, *tag, *keys;
	struct option_list env;
	bool no_tty, tty, keep, detach, json, has_terminal;
};

static const struct option options[] = {
	{ 'e', "env", "NAME[=VALUE]", "set or pass a variable whatever the policy says", OPTION_LIST,
	  offsetof(struct exec_options, env) },
	{ 'C', "cwd", "DIR", "start the command in this directory", OPTION_TEXT,
	  offsetof(struct exec_options, cwd) },
	{ 0, "token", "FILE", "let happen what this capability token allows; - reads it from stdin", OPTION_TEXT,
	  offsetof(struct exec_options, token) },
	{ 0, "no-tty", NULL, "give the command no terminal of its own", OPTION_FLAG,
	  offsetof(struct exec_options, no_tty) },
	{ 0, "keep", NULL, "the command goes on when atoll exec has ended: atoll attach comes back", OPTION_FLAG,
	  offsetof(struct exec_options, keep) },
	{ 'd', "detach", NULL, "the same, and nobody follows it: print its number", OPTION_FLAG,
	  offsetof(struct exec_options, detach) },
	{ 't', "tty", NULL, "with -d: give it a terminal of its own", OPTION_FLAG, offsetof(struct exec_options, tty) },
	{ 0, "tag", "NAME", "another name for the command, in atoll ps --commands and atoll attach", OPTION_TEXT,
	  offsetof(struct exec_options, tag) },
	{ 0, "detach-keys", "KEYS", "with --keep: " ATTACHED_KEYS_TEXT, OPTION_TEXT,
	  offsetof(struct exec_options, keys) },
	{ 0, "json", NULL, "with -d: print an object", OPTION_FLAG, offsetof(struct exec_options, json) },
};

/* One command in flight. */
struct attendance {
	atoll_sandbox *sandbox;
	const atoll_record *request;
	uint64_t number;         /* of the command in its sandbox; 0: it is asked for */
	uint64_t early_signals;  /* bits 1 << signal: that came before */
	int signal_fd;
	struct loop loop;
	struct loop_source event_source, signal_source;
	struct console console;
	bool has_console, is_over;
	int status;
	const char *command;
	struct err *err;
};

/* Nobody waits for its answer: a command that has ended says so itself. */
static int pass_signal(struct attendance *attendance, int32_t number)
{
	struct atoll_error error = LIBRARY_ERROR;
	uint64_t ticket;

	if (!attendance->number) {
		attendance->early_signals |= UINT64_C(1) << number;
		return 0;
	}
	if (atoll_signal(attendance->sandbox, attendance->number, number, &ticket, NULL, &error) == 0 ||
	    library_is_gone(&error))
		return 0;
	return library_fail(&error, attendance->err);
}

/* The client may be stopped only after the command has: else it would go on in a terminal that the shell took
 * back. */
static int stop_with_command(struct attendance *attendance)
{
	if (attendance->has_console)
		console_suspend(&attendance->console);
	if (kill(getpid(), SIGSTOP) < 0)
		return -errno;
	if (attendance->has_console) {
		int r = console_resume(&attendance->console);

		if (r < 0)
			return err_set(attendance->err, ERR_INTERNAL, -r, "terminal",
				       "the terminal cannot be taken again: %s", strerror(-r));
	}
	return pass_signal(attendance, SIGCONT);
}

static int join_terminal(struct attendance *attendance, atoll_record *event)
{
	int r, master_fd = atoll_take_fd(event, "terminal");

	if (library_number(event, "errno"))
		return err_set(attendance->err, ERR_STATE, (int)library_number(event, "errno"), "terminal",
			       "the terminal cannot be joined: %s", strerror((int)library_number(event, "errno")));
	if (master_fd < 0)
		return 0;
	r = console_open(&attendance->console, &attendance->loop, master_fd, true, NULL, NULL);
	if (r < 0)
		return err_set(attendance->err, ERR_INTERNAL, -r, "terminal",
			       "the terminal cannot be joined: %s", strerror(-r));
	attendance->has_console = true;
	return 0;
}

static int take_exit(struct attendance *attendance, const atoll_record *event)
{
	int r = attached_exit_status(attendance->sandbox, event, attendance->command, attendance->err);

	attendance->is_over = true;
	attendance->status = r;
	return r < 0 ? r : 0;
}

static int set_too_large(struct err *err)
{
	err_set(err, ERR_USAGE, E2BIG, "exec", "the command and its variables are larger than %d bytes",
		FRAME_MESSAGE_MAX);
	err_hint(err, "put them into a file that the command reads");
	return -E2BIG;
}

static int set_refused(const struct atoll_error *error, struct err *err)
{
	if (error->code == ATOLL_E_LIMIT && (error->errnum == EMSGSIZE || error->errnum == ENOBUFS))
		return set_too_large(err);
	return library_fail(error, err);
}

static int ask(struct attendance *attendance)
{
	struct atoll_error error = LIBRARY_ERROR;
	uint64_t ticket;
	int r = atoll_exec(attendance->sandbox, attendance->request, &ticket, NULL, &error);

	return r < 0 ? set_refused(&error, attendance->err) : 0;
}

/* The answer to the one request; those to signals say nothing that the command does not. */
static int take_answer(struct attendance *attendance, const atoll_record *event)
{
	int r = 0;

	if (attendance->number)
		return 0;
	/* While all stands still, for a snapshot, nothing is started. */
	if (library_number(event, "code") == -(uint64_t)ATOLL_E_BUSY) {
		(void)poll(NULL, 0, AGAIN_MS);
		return ask(attendance);
	}
	if (library_number(event, "code"))
		return library_fail_event(event, attendance->err);
	attendance->number = library_number(event, "command");
	for (int number = 1; r == 0 && number < 64; number++)
		if (attendance->early_signals & UINT64_C(1) << number)
			r = pass_signal(attendance, number);
	return r;
}

static int take_event(struct attendance *attendance, atoll_record *event)
{
	uint64_t type = library_number(event, "event");

	if (type == ATOLL_EVENT_END)
		return err_set(attendance->err, ERR_STATE, ECONNRESET, "session", "the session has ended");
	if (type == ATOLL_EVENT_DONE)
		return take_answer(attendance, event);
	if (library_number(event, "command") != attendance->number)
		return 0;
	return type == ATOLL_EVENT_STARTED   ? join_terminal(attendance, event)
	       : type == ATOLL_EVENT_STOPPED ? stop_with_command(attendance)
	       : type == ATOLL_EVENT_EXIT    ? take_exit(attendance, event)
					     : 0;
}

static int on_event(void *context, uint32_t events)
{
	struct attendance *attendance = context;
	struct atoll_error error = LIBRARY_ERROR;
	atoll_record *event;
	int r = 0, taken = 0;

	while (r == 0 && !attendance->is_over && (r = atoll_next(attendance->sandbox, &event, &error)) == 1) {
		taken = take_event(attendance, event);
		atoll_record_free(event);
		r = taken;
	}
	return taken < 0 ? taken : r < 0 ? library_fail(&error, attendance->err) : 0;
}

static int on_signal(void *context, uint32_t events)
{
	struct attendance *attendance = context;
	struct signalfd_siginfo info;

	if (read(attendance->signal_fd, &info, sizeof info) != sizeof info)
		return 0;
	if (info.ssi_signo == SIGWINCH) {
		if (attendance->has_console)
			console_resize(&attendance->console);
		return 0;
	}
	return pass_signal(attendance, (int32_t)info.ssi_signo);
}

static int attend(struct attendance *attendance)
{
	int r = loop_init(&attendance->loop);

	if (r < 0)
		return r;
	attendance->event_source = (struct loop_source){
		.fd = atoll_fd(attendance->sandbox),
		.events = EPOLLIN,
		.ready = on_event,
		.context = attendance,
	};
	attendance->signal_source = (struct loop_source){
		.fd = attendance->signal_fd,
		.events = EPOLLIN,
		.ready = on_signal,
		.context = attendance,
	};
	r = loop_add(&attendance->loop, &attendance->event_source);
	if (r == 0)
		r = loop_add(&attendance->loop, &attendance->signal_source);
	while (r >= 0 && !attendance->is_over)
		r = loop_step(&attendance->loop, -1);
	if (attendance->has_console)
		console_close(&attendance->console);
	loop_done(&attendance->loop);
	return r < 0 ? r : 0;
}

/* Where the command starts, as the sandbox names it; NULL leaves it to the session. */
static int find_cwd(const char *given, const char *project, char out[PATH_MAX], const char **ret_cwd,
		    struct err *err)
{
	*ret_cwd = NULL;
	if (given) {
		*ret_cwd = out;
		return dirs_absolute(given, "working directory", out, err);
	}
	if (getcwd(out, PATH_MAX) && path_is_below(out, project))
		*ret_cwd = out;
	return 0;
}

/* A terminal takes the place of all three streams, or of none. */
static int put_streams(atoll_record *request, const struct exec_options *given, struct atoll_error *error)
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	uint16_t rows, columns;
	int r = given->keep ? atoll_set_u64(request, "keep", 1, error) : 0;

	if (r == 0 && given->detach)
		r = atoll_set_u64(request, "unattached", 1, error);
	if (r == 0 && given->tag)
		r = atoll_set_string(request, "tag", given->tag, error);
	if (r == 0 && given->keep && !given->has_terminal)
		return atoll_set_string(request, "streams", "pipe", error);
	if (!given->has_terminal) {
		for (int i = 0; r == 0 && i < 3; i++)
			r = atoll_set_fd(request, names[i], i, error);
		return r;
	}
	console_size(&rows, &columns);
	if (r == 0)
		r = atoll_set_string(request, "streams", "pty", error);
	if (r == 0)
		r = atoll_set_u64(request, "rows", rows, error);
	return r == 0 ? atoll_set_u64(request, "columns", columns, error) : r;
}

static int make_request(const struct session_record *session, const struct exec_options *given, char **command,
			atoll_record *request, struct err *err)
{
	char cwd[PATH_MAX], *added[ENV_ADDITIONS_MAX];
	struct atoll_error error = LIBRARY_ERROR;
	const char *start;
	int r = find_cwd(given->cwd, session->project, cwd, &start, err);

	if (r == 0)
		r = env_additions_make(&given->env, added, err);
	if (r < 0)
		return r;
	r = atoll_set_strings(request, "argv", (const char *const *)command, &error);
	if (r == 0)
		r = atoll_set_strings(request, "env", (const char *const *)environ, &error);
	if (r == 0)
		r = atoll_set_strings(request, "env_add", (const char *const *)added, &error);
	if (r == 0 && start)
		r = atoll_set_string(request, "cwd", start, &error);
	if (r == 0)
		r = put_streams(request, given, &error);
	return r < 0 ? library_fail(&error, err) : 0;
}

static int run_in(struct attendance *attendance)
{
	struct err *err = attendance->err;
	int r = ask(attendance);

	if (r == 0)
		r = attend(attendance);
	if (r < 0 && !err->code)
		err_set(err, ERR_INTERNAL, -r, "exec", "the command cannot be followed: %s", strerror(-r));
	close_fd(&attendance->signal_fd);
	return r < 0 ? r : attendance->status;
}

/* 1: atoll-token said why not. */
static int present_token(const char *file, const struct session_record *session, atoll_record *request,
			 struct err *err)
{
	struct token_presented presented = {
		.file = file, .project = session->project, .policy = session->policy,
		.session = *session->name ? session->name : NULL,
	};
	struct atoll_error error = LIBRARY_ERROR;
	cleanup_buf struct buf held;
	int r;

	buf_init(&held, TOKEN_HELD_MAX);
	if (!file)
		return 0;
	r = token_present(&presented, &held, err);
	if (r == 0 && atoll_set_bytes(request, "token", held.bytes, held.size, &error) < 0)
		r = library_fail(&error, err);
	return r;
}

/* No program's name begins with a dash: what was meant is an option. */
static int set_misplaced(const char *session, const char *option, struct err *err)
{
	char shown[ERR_QUOTE_SIZE], shown_session[ERR_QUOTE_SIZE];

	err_set(err, ERR_USAGE, EINVAL, "exec", "%s stands after the session, where the command begins",
		err_quote(shown, option));
	err_hint(err, "options come first: atoll exec %s… %s -- CMD", shown, err_quote(shown_session, session));
	return -EINVAL;
}

/* `exec -- CMD` means the newest session of this project, `exec ID [--] CMD` that one. */
static int split_words(char **argv, int argc, int *rest, const char **ret_session, struct err *err)
{
	*ret_session = NULL;
	if (*rest < argc && !str_equal(argv[*rest - 1], "--")) {
		*ret_session = argv[(*rest)++];
		if (*rest < argc && str_equal(argv[*rest], "--"))
			(*rest)++;
		else if (*rest < argc && argv[*rest][0] == '-')
			return set_misplaced(*ret_session, argv[*rest], err);
	}
	if (*rest < argc)
		return 0;
	err_set(err, ERR_USAGE, EINVAL, "exec", "there is no command to run");
	err_hint(err, "write: atoll exec [ID] -- CMD ARG…");
	return -EINVAL;
}

/* ---- commands that last ---- */

static int ask_and_wait(const struct attendance *attendance, atoll_record **ret_result)
{
	struct atoll_error error = LIBRARY_ERROR;
	int r;

	/* While all stands still, for a snapshot, nothing is started. */
	while ((r = atoll_exec(attendance->sandbox, attendance->request, NULL, ret_result, &error)) == ATOLL_E_BUSY)
		(void)poll(NULL, 0, AGAIN_MS);
	return r < 0 ? set_refused(&error, attendance->err) : 0;
}

/* Whether it could be started at all: its first event says that. */
static int wait_for_start(const struct attendance *attendance, uint64_t number)
{
	struct atoll_error error = LIBRARY_ERROR;
	atoll_record *event;
	int r;

	while ((r = atoll_wait(attendance->sandbox, -1, &event, &error)) == 1) {
		uint64_t type = library_number(event, "event");
		bool is_its = library_number(event, "command") == number;

		if (type == ATOLL_EVENT_EXIT && is_its)
			r = attached_exit_status(attendance->sandbox, event, attendance->command, attendance->err);
		atoll_record_free(event);
		if (is_its && (type == ATOLL_EVENT_STARTED || type == ATOLL_EVENT_EXIT))
			return r < 0 ? r : 0;
		if (type == ATOLL_EVENT_END)
			break;
	}
	return r < 0 ? library_fail(&error, attendance->err)
		     : err_set(attendance->err, ERR_STATE, ECONNRESET, "session", "the session has ended");
}

static int print_number(const atoll_sandbox *sandbox, uint64_t number, bool as_json, struct err *err)
{
	char memory[128];
	struct json json;
	struct buf out;

	buf_init_fixed(&out, memory, sizeof memory);
	if (as_json) {
		json_init(&json, &out);
		json_object_begin(&json, NULL);
		json_string(&json, "session", atoll_id(sandbox));
		json_u64(&json, "command", number);
		json_object_end(&json);
	} else {
		buf_put_u64_decimal(&out, number);
	}
	buf_put_char(&out, '\n');
	return say_out(&out, err);
}

static int run_lasting(const struct attendance *attendance, const struct exec_options *given)
{
	cleanup_record atoll_record *result = NULL;
	struct attached_request attached = { .sandbox = attendance->sandbox, .name = attendance->command };
	int r = attached_keys(given->keys, &attached.keys, attendance->err);

	if (r == 0)
		r = ask_and_wait(attendance, &result);
	if (r < 0)
		return r;
	attached.streams = result;
	attached.command = library_number(result, "command");
	if (!given->detach)
		return attached_follow(&attached, attendance->err);
	r = wait_for_start(attendance, attached.command);
	return r < 0 ? r : print_number(attendance->sandbox, attached.command, given->json, attendance->err);
}

static int check_options(struct exec_options *given, struct err *err)
{
	if (!given->detach && (given->tty || given->json))
		return err_set(err, ERR_USAGE, EINVAL, "exec", "--%s is for --detach alone",
			       given->tty ? "tty" : "json");
	if (given->keys && (given->detach || !given->keep))
		return err_set(err, ERR_USAGE, EINVAL, "exec", "--detach-keys is for --keep alone");
	if (given->no_tty && given->tty)
		return err_set(err, ERR_USAGE, EINVAL, "exec", "--tty and --no-tty are two");
	given->keep = given->keep || given->detach;
	/* A terminal takes the place of all three streams. */
	given->has_terminal = given->detach ? given->tty : !given->no_tty && console_detect() == ALL_STREAMS;
	return 0;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	uint64_t events = LIBRARY_EVENT(STOPPED) | LIBRARY_EVENT(EXIT);
	cleanup_session_record struct session_record session = { 0 };
	cleanup_context atoll_context *context = NULL;
	cleanup_sandbox atoll_sandbox *sandbox = NULL;
	cleanup_record atoll_record *request = NULL;
	struct attendance attendance = { .signal_fd = FD_NONE, .err = err };
	struct atoll_error error = LIBRARY_ERROR;
	struct exec_options given = { 0 };
	const char *name = NULL;
	int rest, r = cmd_parse(&cmd_exec, &given, argc, argv, &rest, err);

	if (r == 0)
		r = split_words(argv, argc, &rest, &name, err);
	if (r < 0)
		return r;
	r = fd_secure_standard();
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "exec",
			       "/dev/null cannot replace a closed stdin, stdout or stderr: %s",
			       strerror(-r));
	r = check_options(&given, err);
	if (r < 0)
		return r;
	/* The start of a command says nothing but which terminal it has, and that it could be started. */
	if (given.has_terminal || given.detach)
		events |= LIBRARY_EVENT(STARTED);
	request = atoll_record_new(ATOLL_COMMAND);
	r = library_context(events, &context, err);
	if (r == 0)
		r = library_find_record(name, &session, err);
	if (r == 0)
		r = make_request(&session, &given, argv + rest, request, err);
	if (r == 0)
		r = present_token(given.token, &session, request, err);
	if (r == 1)
		return 125;
	attendance.request = request;
	attendance.command = argv[rest];
	attendance.signal_fd = r == 0 && !given.keep ? attached_block_signals(true) : FD_NONE;
	if (r == 0 && !given.keep && attendance.signal_fd < 0)
		r = err_set(err, ERR_INTERNAL, -attendance.signal_fd, "exec", "signals cannot be passed on: %s",
			    strerror(-attendance.signal_fd));
	/* All is ready before the box is called: it wakes with the connection, and should find the request there. */
	if (r == 0 && atoll_find(context, session.id, &sandbox, &error) < 0)
		r = library_fail(&error, err);
	attendance.sandbox = sandbox;
	return r != 0 ? r : given.keep ? run_lasting(&attendance, &given) : run_in(&attendance);
}

const struct cmd cmd_exec = {
	"exec", "[ID] -- CMD…", "run a command in a running sandbox",
	CMD_OPTIONS(options), .runs_command = true, .run = run_verb,
};
