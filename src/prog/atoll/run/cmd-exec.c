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

#include "base/str.h"
#include "client/dirs.h"
#include "client/tokens.h"
#include "os/fd.h"
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
	const char *cwd, *token;
	struct option_list env;
	bool no_tty, has_terminal;
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

/* 127 is the command's own status too: only with an errno does it mean that there was none. */
static int take_exit(struct attendance *attendance, const atoll_record *event)
{
	const char *ended = library_text(event, "ended");
	int errnum = (int)library_number(event, "errno");
	char shown[ERR_QUOTE_SIZE];

	attendance->status = (int)library_number(event, "status");
	attendance->is_over = true;
	if (!errnum)
		return 0;
	if (str_equal(ended, "stdout") || str_equal(ended, "stderr")) {
		struct err lost = { 0 };

		err_set(&lost, ERR_STATE, errnum, "exec",
			"%s cannot be written: %s; the rest of what the command wrote there is lost", ended,
			strerror(errnum));
		say_error(&lost);
		attendance->status = attendance->status ? attendance->status : 125;
		return 0;
	}
	err_set(attendance->err, errnum == ENOENT ? ERR_NOT_FOUND : ERR_NOT_RUNNABLE, errnum, "exec",
		"%s cannot be started: %s", err_quote(shown, attendance->command), strerror(errnum));
	if (errnum == EACCES || errnum == EPERM)
		err_hint(attendance->err, "atoll log --denied %s shows what the policy refused",
			 atoll_id(attendance->sandbox));
	return -errnum;
}

static int set_too_large(struct err *err)
{
	err_set(err, ERR_USAGE, E2BIG, "exec", "the command and its variables are larger than %d bytes",
		FRAME_MESSAGE_MAX);
	err_hint(err, "put them into a file that the command reads");
	return -E2BIG;
}

static int ask(struct attendance *attendance)
{
	struct atoll_error error = LIBRARY_ERROR;
	uint64_t ticket;
	int r = atoll_exec(attendance->sandbox, attendance->request, &ticket, NULL, &error);

	if (r == ATOLL_E_LIMIT && (error.errnum == EMSGSIZE || error.errnum == ENOBUFS))
		return set_too_large(attendance->err);
	return r < 0 ? library_fail(&error, attendance->err) : 0;
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

static int block_signals(void)
{
	static const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH };
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		sigaddset(&set, passed[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
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
static int put_streams(atoll_record *request, bool has_terminal, struct atoll_error *error)
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	uint16_t rows, columns;
	int r = 0;

	if (!has_terminal) {
		for (int i = 0; r == 0 && i < 3; i++)
			r = atoll_set_fd(request, names[i], i, error);
		return r;
	}
	console_size(&rows, &columns);
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
		r = put_streams(request, given->has_terminal, &error);
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
	/* The start of a command says nothing but which terminal it has. */
	given.has_terminal = !given.no_tty && console_detect() == ALL_STREAMS;
	if (given.has_terminal)
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
	attendance.signal_fd = r == 0 ? block_signals() : FD_NONE;
	if (r == 0 && attendance.signal_fd < 0)
		r = err_set(err, ERR_INTERNAL, -attendance.signal_fd, "exec", "signals cannot be passed on: %s",
			    strerror(-attendance.signal_fd));
	/* All is ready before the box is called: it wakes with the connection, and should find the request there. */
	if (r == 0 && atoll_find(context, session.id, &sandbox, &error) < 0)
		r = library_fail(&error, err);
	attendance.sandbox = sandbox;
	return r != 0 ? r : run_in(&attendance);
}

const struct cmd cmd_exec = {
	"exec", "[ID] -- CMD…", "run a command in a running sandbox",
	CMD_OPTIONS(options), .runs_command = true, .run = run_verb,
};
