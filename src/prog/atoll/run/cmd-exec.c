/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `atoll exec`: asks the box of a live session to run one more command in it. Streams travel as descriptors;
 * a terminal stays here and is joined to the pty that the box sends back. Signals, stops and the exit status
 * are passed on, so that the command behaves in a pipeline as it would without the sandbox.
 */
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/str.h"
#include "client/control-client.h"
#include "client/dirs.h"
#include "client/env-additions.h"
#include "client/staged.h"
#include "client/tokens.h"
#include "os/fd.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "session/control-socket.h"
#include "session/directories.h"
#include "stage/snapshot/snapshot.h"
#include "supervise/console.h"
#include "supervise/loop.h"

/* As console_detect() says it: a pty takes the place of all three streams, or of none. */
enum { ALL_STREAMS = 1 << STDIN_FILENO | 1 << STDOUT_FILENO | 1 << STDERR_FILENO };

extern char **environ;

/* The request, then each answer: what is not touched costs nothing, and what grows costs maps and page faults. */
static uint8_t message[FRAME_MESSAGE_MAX];

struct exec_options {
	const char *cwd, *token;
	struct option_list env;
	bool no_tty;
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
	int socket_fd, signal_fd;
	struct loop loop;
	struct loop_source socket_source, signal_source;
	struct console console;
	bool has_console, is_over;
	const char *session; /* its id */
	int status;
	const char *command;
	struct buf message;
	struct err *err;
};

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
	return client_send(attendance->socket_fd, CONTROL_CONTINUE, 0, 0, attendance->err);
}

static int join_terminal(struct attendance *attendance, int *master_fd)
{
	int r;

	if (*master_fd < 0)
		return 0;
	r = console_open(&attendance->console, &attendance->loop, take_fd(master_fd), true, NULL, NULL);
	if (r < 0)
		return err_set(attendance->err, ERR_INTERNAL, -r, "terminal",
			       "the terminal cannot be joined: %s", strerror(-r));
	attendance->has_console = true;
	return 0;
}

/* 127 is the command's own status too: only with an errno does it mean that there was none. */
static int take_exit(struct attendance *attendance, struct frame *frame)
{
	uint32_t status = frame_get_u32(frame), errnum = frame_get_u32(frame);
	const char *ended = frame_get_string(frame);
	char shown[ERR_QUOTE_SIZE];

	if (!ended || frame_finish(frame) < 0 || status > 255)
		return -EPROTO;
	attendance->status = (int)status;
	attendance->is_over = true;
	if (!errnum)
		return 0;
	if (str_equal(ended, "stdout") || str_equal(ended, "stderr")) {
		struct err lost = { 0 };

		err_set(&lost, ERR_STATE, (int)errnum, "exec",
			"%s cannot be written: %s; the rest of what the command wrote there is lost", ended,
			strerror((int)errnum));
		say_error(&lost);
		attendance->status = status ? (int)status : 125;
		return 0;
	}
	err_set(attendance->err, errnum == ENOENT ? ERR_NOT_FOUND : ERR_NOT_RUNNABLE, (int)errnum, "exec",
		"%s cannot be started: %s", err_quote(shown, attendance->command), strerror((int)errnum));
	if (errnum == EACCES || errnum == EPERM)
		err_hint(attendance->err, "what the policy refused is in: atoll log --denied %s", attendance->session);
	return -(int)errnum;
}

static int take_answer(struct attendance *attendance, struct client_answer *answer)
{
	int r;

	switch (answer->frame.type) {
	case CONTROL_STARTED:
		return join_terminal(attendance, &answer->fd);
	case CONTROL_STOPPED:
		return stop_with_command(attendance);
	case CONTROL_EXITED:
		r = take_exit(attendance, &answer->frame);
		if (r != -EPROTO)
			return r;
		break;
	default:
		break;
	}
	return err_set(attendance->err, ERR_INTERNAL, EPROTO, "session",
		       "the session sent an answer that makes no sense");
}

static int on_answer(void *context, uint32_t events)
{
	struct attendance *attendance = context;
	struct client_answer answer;
	int r = client_receive(attendance->socket_fd, &attendance->message, &answer, attendance->err);

	if (r < 0)
		return r;
	r = take_answer(attendance, &answer);
	close_fd(&answer.fd);
	return r;
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
	return client_send(attendance->socket_fd, CONTROL_SIGNAL, 1, info.ssi_signo, attendance->err);
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
	attendance->socket_source = (struct loop_source){
		.fd = attendance->socket_fd,
		.events = EPOLLIN,
		.ready = on_answer,
		.context = attendance,
	};
	attendance->signal_source = (struct loop_source){
		.fd = attendance->signal_fd,
		.events = EPOLLIN,
		.ready = on_signal,
		.context = attendance,
	};
	r = loop_add(&attendance->loop, &attendance->socket_source);
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

static int set_too_large(struct err *err)
{
	err_set(err, ERR_USAGE, E2BIG, "exec", "the command and its variables are larger than %d bytes",
		FRAME_MESSAGE_MAX);
	err_hint(err, "put them into a file that the command reads");
	return -E2BIG;
}

/* All of it before the box is called: that wakes with the connection, and should find the request there. */
static int write_request(const struct session_record *record, const struct exec_options *given, char **command,
			 struct buf *out, struct err *err)
{
	char cwd[PATH_MAX], *added[ENV_ADDITIONS_MAX];
	struct control_exec request = { .argv = command, .env = environ, .env_added = added };
	int r = find_cwd(given->cwd, record->project, cwd, &request.cwd, err);

	if (r == 0)
		r = env_additions_make(&given->env, added, err);
	if (r < 0)
		return r;
	if (!given->no_tty && console_detect() == ALL_STREAMS) {
		request.flags |= CONTROL_EXEC_TTY;
		console_size(&request.rows, &request.columns);
	}
	return control_exec_put(out, &request) < 0 ? set_too_large(err) : 0;
}

static int send_request(const struct attendance *attendance)
{
	int fds[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	int r = frame_send(attendance->socket_fd, &attendance->message, fds, ARRAY_SIZE(fds));

	if (r == -EMSGSIZE)
		return set_too_large(attendance->err);
	return r < 0 ? err_set(attendance->err, ERR_STATE, -r, "session", "the session cannot be asked: %s",
			       strerror(-r)) : 0;
}

static int run_in(struct attendance *attendance)
{
	struct err *err = attendance->err;
	int r;

	attendance->signal_fd = block_signals();
	if (attendance->signal_fd < 0)
		return err_set(err, ERR_INTERNAL, -attendance->signal_fd, "exec",
			       "signals cannot be passed on: %s", strerror(-attendance->signal_fd));
	r = send_request(attendance);
	if (r == 0)
		r = attend(attendance);
	if (r < 0 && !err->code)
		err_set(err, ERR_INTERNAL, -r, "exec", "the command cannot be attended: %s", strerror(-r));
	close_fd(&attendance->signal_fd);
	return r < 0 ? r : attendance->status;
}

/*
 * `stage.auto: exec`: what the session holds gets a name before the command can change it. Without that the command
 * does not run: whoever asks for snapshots means to go back.
 */
static int snapshot_before(const struct session_record *record, struct err *err)
{
	struct staged_snapshot wanted = { .prefix = STAGE_AUTO_PREFIX };
	char state[PATH_MAX], name[STAGE_SNAPSHOT_NAME_SIZE];
	int r;

	if (!record->is_staged || !record->is_kept_at_exec)
		return 0;
	r = session_state_dir(state, sizeof state, false, err);
	return r < 0 ? r : staged_snapshot(state, record, &wanted, name, err);
}

/* To the box, which answers before it takes a command. */
static int send_held(struct buf *held, int socket_fd, struct err *err)
{
	struct client_answer answer = { .fd = FD_NONE };
	cleanup_buf struct buf scratch, out;
	struct token_allowance allowance;
	struct token_held head;
	struct frame frame;
	int r = frame_open(&frame, held->bytes, held->size);

	buf_init(&scratch, FRAME_MESSAGE_MAX);
	buf_init(&out, TOKEN_HELD_MAX);
	frame_begin(&out, CONTROL_TOKEN);
	if (r == 0)
		r = token_held_get(&frame, &head);
	if (r == 0)
		token_held_put(&out, &head);
	for (uint32_t i = 0; r == 0 && i < head.count; i++) {
		r = token_allowance_get(&frame, &allowance);
		if (r == 0) {
			token_allowance_put(&out, &allowance);
			free(allowance.argv);
		}
	}
	if (r == 0)
		r = frame_end(&out);
	if (r == 0)
		r = frame_send(socket_fd, &out, NULL, 0);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "token", "the session cannot be told: %s", strerror(-r));
	r = client_receive(socket_fd, &scratch, &answer, err);
	close_fd(&answer.fd);
	return r;
}

/* 1: atoll-token said why not. */
static int present_token(const char *file, const struct session_record *record, int socket_fd, struct err *err)
{
	struct token_presented presented = {
		.file = file, .project = record->project, .policy = record->policy,
		.session = *record->name ? record->name : NULL,
	};
	cleanup_buf struct buf held;
	int r;

	buf_init(&held, TOKEN_HELD_MAX);
	if (!file)
		return 0;
	r = token_present(&presented, &held, err);
	return r != 0 ? r : send_held(&held, socket_fd, err);
}

/* No program's name begins with a dash: what was meant is an option. */
static int set_misplaced(const char *session, const char *option, struct err *err)
{
	char shown[ERR_QUOTE_SIZE], shown_session[ERR_QUOTE_SIZE];

	err_set(err, ERR_USAGE, EINVAL, "exec", "%s stands behind the session, where the command begins",
		err_quote(shown, option));
	err_hint(err, "options come first: atoll exec %s… %s -- CMD", shown, err_quote(shown_session, session));
	return -EINVAL;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_fd int socket_fd = FD_NONE;
	struct attendance attendance = { .signal_fd = FD_NONE, .err = err };
	struct exec_options given = { 0 };
	const char *session = NULL;
	int rest, r = cmd_parse(&cmd_exec, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	/* `exec -- CMD` means the newest session of this project, `exec ID [--] CMD` that one. */
	if (rest < argc && !str_equal(argv[rest - 1], "--")) {
		session = argv[rest++];
		if (rest < argc && str_equal(argv[rest], "--"))
			rest++;
		else if (rest < argc && argv[rest][0] == '-')
			return set_misplaced(session, argv[rest], err);
	}
	if (rest >= argc) {
		err_set(err, ERR_USAGE, EINVAL, "exec", "there is no command to run");
		err_hint(err, "say which: atoll exec [ID] -- CMD ARG…");
		return -EINVAL;
	}
	r = fd_secure_standard();
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "exec",
			       "/dev/null cannot stand in for a closed stdin, stdout or stderr: %s",
			       strerror(-r));
	buf_init_fixed(&attendance.message, message, sizeof message);
	attendance.command = argv[rest];
	attendance.session = record.id;
	r = client_find(session, &record, err);
	if (r == 0)
		r = write_request(&record, &given, argv + rest, &attendance.message, err);
	if (r == 0)
		r = attendance.socket_fd = socket_fd = control_socket_connect(record.id, err);
	if (r >= 0)
		r = snapshot_before(&record, err);
	if (r == 0)
		r = present_token(given.token, &record, socket_fd, err);
	if (r == 1)
		return 125;
	return r != 0 ? r : run_in(&attendance);
}

const struct cmd cmd_exec = {
	"exec", "[ID] -- CMD…", "run a command in a running sandbox",
	CMD_OPTIONS(options), .runs_command = true, .run = run_verb,
};
