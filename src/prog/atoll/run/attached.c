/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/run/attached.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll/verb/say.h"
#include "supervise/console.h"
#include "supervise/relay.h"

enum { ALL_STREAMS = 1 << STDIN_FILENO | 1 << STDOUT_FILENO | 1 << STDERR_FILENO };

struct attached {
	const struct attached_request *request;
	struct detach_keys keys;
	struct loop loop;
	struct loop_source events, signals;
	struct relay relays[3];  /* of streams; of a terminal that we have none for, the first two */
	struct console console;
	int signal_fd, status;
	bool has_terminal;       /* the command */
	bool has_console;        /* and we */
	bool has_exited, is_left;
	struct err *err;
};

/* 127 is the command's own status too: only with an errno does it mean that there was none. */
int attached_exit_status(const atoll_sandbox *sandbox, const atoll_record *exit, const char *name, struct err *err)
{
	const char *ended = library_text(exit, "ended");
	int errnum = (int)library_number(exit, "errno"), status = (int)library_number(exit, "status");
	char shown[ERR_QUOTE_SIZE];
	struct err lost = { 0 };

	if (!errnum)
		return status;
	if (str_equal(ended, "stdout") || str_equal(ended, "stderr")) {
		err_set(&lost, ERR_STATE, errnum, "exec",
			"%s cannot be written: %s; the rest of what the command wrote there is lost", ended,
			strerror(errnum));
		say_error(&lost);
		return status ? status : 125;
	}
	err_set(err, errnum == ENOENT ? ERR_NOT_FOUND : ERR_NOT_RUNNABLE, errnum, "exec", "%s cannot be started: %s",
		err_quote(shown, name), strerror(errnum));
	if (errnum == EACCES || errnum == EPERM)
		err_hint(err, "atoll log --denied %s shows what the policy refused", atoll_id(sandbox));
	return -errnum;
}

int attached_block_signals(bool with_stop)
{
	static const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH };
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		sigaddset(&set, passed[i]);
	if (with_stop)
		sigaddset(&set, SIGTSTP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* ---- what happens there ---- */

static int take_exit(struct attached *attached, const atoll_record *exit)
{
	int r = attached_exit_status(attached->request->sandbox, exit, attached->request->name, attached->err);

	attached->has_exited = true;
	attached->status = r;
	return r < 0 ? r : 0;
}

static int take_event(struct attached *attached, const atoll_record *event)
{
	uint64_t type = library_number(event, "event");

	if (type == ATOLL_EVENT_END && !attached->has_exited)
		return err_set(attached->err, ERR_STATE, ECONNRESET, "session", "the session has ended");
	if (type != ATOLL_EVENT_EXIT || library_number(event, "command") != attached->request->command)
		return 0;
	return take_exit(attached, event);
}

static int on_event(void *context, uint32_t events)
{
	struct attached *attached = context;
	struct atoll_error error = LIBRARY_ERROR;
	atoll_record *event;
	int r = 0, taken = 0;

	(void)events;
	while (taken == 0 && (r = atoll_next(attached->request->sandbox, &event, &error)) == 1) {
		taken = take_event(attached, event);
		atoll_record_free(event);
	}
	return taken < 0 ? taken : r < 0 ? library_fail(&error, attached->err) : 0;
}

/* ---- what goes there ---- */

static int send_size(struct attached *attached)
{
	struct atoll_error error = LIBRARY_ERROR;
	uint16_t rows, columns;

	if (!attached->has_console)
		return 0;
	console_size(&rows, &columns);
	if (atoll_resize(attached->request->sandbox, attached->request->command, rows, columns, &error) == 0 ||
	    library_is_gone(&error))
		return 0;
	return library_fail(&error, attached->err);
}

/* Nobody waits for its answer: a command that has ended says so itself. */
static int pass_signal(struct attached *attached, int32_t number)
{
	struct atoll_error error = LIBRARY_ERROR;
	uint64_t ticket;

	if (atoll_signal(attached->request->sandbox, attached->request->command, number, &ticket, NULL, &error) == 0 ||
	    library_is_gone(&error))
		return 0;
	return library_fail(&error, attached->err);
}

static int on_signal(void *context, uint32_t events)
{
	struct attached *attached = context;
	struct signalfd_siginfo info;

	(void)events;
	if (read(attached->signal_fd, &info, sizeof info) != sizeof info)
		return 0;
	if (info.ssi_signo == SIGWINCH)
		return send_size(attached);
	/* The terminal is gone, and the command is to go on. */
	if (info.ssi_signo == SIGHUP || attached->request->keeps_signals) {
		attached->is_left = true;
		return 0;
	}
	return pass_signal(attached, (int32_t)info.ssi_signo);
}

static size_t on_typed(void *context, uint8_t *bytes, size_t n, size_t room)
{
	struct attached *attached = context;
	size_t left = detach_keys_sift(&attached->keys, bytes, n, room);

	attached->is_left = attached->is_left || attached->keys.is_complete;
	return left;
}

/* Our input is at its end, or nobody reads it any more: then this says nothing new. */
static void input_ended(void *context)
{
	struct attached *attached = context;
	uint64_t ticket;

	if (!attached->has_terminal && !attached->has_exited)
		(void)atoll_close_input(attached->request->sandbox, attached->request->command, &ticket, NULL, NULL);
}

/* The command closed it, or whoever reads what we write has left: then there is nothing to stay for. */
static void output_ended(void *context)
{
	struct attached *attached = context;
	struct pollfd out = { .fd = STDOUT_FILENO };

	if (poll(&out, 1, 0) == 1 && out.revents & POLLERR)
		attached->is_left = true;
}

/* ---- streams ---- */

/* Not a new description where the place in a file would be another one. */
static int open_own_input(struct relay *relay)
{
	struct stat st;
	int fd;

	if (fstat(STDIN_FILENO, &st) < 0)
		return -errno;
	fd = S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode) ? relay_reopen(STDIN_FILENO, O_RDONLY) : -EINVAL;
	if (fd >= 0)
		return fd;
	relay->in_is_shared = true;
	return fd_duplicate(STDIN_FILENO);
}

/* Takes theirs. */
static int open_input(struct attached *attached, int theirs)
{
	struct relay *relay = &attached->relays[0];
	int in = attached->request->has_no_input ? FD_NONE : open_own_input(relay), r;

	if (in < 0) {
		close(theirs);
		return attached->request->has_no_input ? 0 : in;
	}
	relay->out_is_own = true;
	relay->on_close = input_ended;
	relay->context = attached;
	r = relay_open(relay, &attached->loop, in, theirs);
	/* /dev/null, or a directory: nothing to read from. */
	if (r == -EPERM)
		input_ended(attached);
	return r == -EPERM ? 0 : r;
}

static int open_output(struct attached *attached, int which, int theirs)
{
	struct relay *relay = &attached->relays[which];
	int out = fd_duplicate(which);

	if (out < 0) {
		close(theirs);
		return out;
	}
	relay->on_close = output_ended;
	relay->context = attached;
	return relay_open(relay, &attached->loop, theirs, out);
}

static int join_terminal(struct attached *attached, int socket_fd)
{
	int r, copy;

	attached->has_terminal = true;
	attached->has_console = !attached->request->has_no_input && console_detect() == ALL_STREAMS;
	if (!attached->has_console) {
		copy = fd_duplicate(socket_fd);
		r = copy < 0 ? copy : open_output(attached, STDOUT_FILENO, copy);
		if (r == 0)
			return open_input(attached, socket_fd);
		close(socket_fd);
		return r;
	}
	r = console_open(&attached->console, &attached->loop, socket_fd, false, NULL, NULL);
	attached->console.on_typed = on_typed;
	attached->console.typed_context = attached;
	if (r == 0)
		r = console_take_input(&attached->console);
	return r < 0 ? r : send_size(attached);
}

static int join(struct attached *attached)
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	int r, fd = atoll_take_fd(attached->request->streams, "terminal");

	if (fd >= 0)
		return join_terminal(attached, fd);
	r = 0;
	for (int i = 0; r == 0 && i < 3; i++) {
		fd = atoll_take_fd(attached->request->streams, names[i]);
		if (fd >= 0)
			r = i == 0 ? open_input(attached, fd) : open_output(attached, i, fd);
	}
	return r;
}

static void leave(struct attached *attached)
{
	for (int i = 0; i < 3; i++)
		relay_close(&attached->relays[i]);
	if (attached->has_console)
		console_close(&attached->console);
}

static bool has_output(const struct attached *attached)
{
	return attached->relays[1].is_open || attached->relays[2].is_open ||
	       (attached->has_console && console_has_output(&attached->console));
}

static int begin(struct attached *attached)
{
	int r = attached->signal_fd = attached_block_signals(false);

	if (r >= 0)
		r = loop_init(&attached->loop);
	attached->events = (struct loop_source){ .fd = atoll_fd(attached->request->sandbox), .events = EPOLLIN,
						 .ready = on_event, .context = attached };
	attached->signals = (struct loop_source){ .fd = attached->signal_fd, .events = EPOLLIN, .ready = on_signal,
						  .context = attached };
	if (r == 0)
		r = loop_add(&attached->loop, &attached->events);
	if (r == 0)
		r = loop_add(&attached->loop, &attached->signals);
	return r < 0 ? r : join(attached);
}

int attached_keys(const char *given, struct detach_keys *ret_keys, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	if (detach_keys_parse(ret_keys, given ? given : "ctrl-p,ctrl-q") == 0)
		return 0;
	err_set(err, ERR_USAGE, EINVAL, "attach", "%s names no keys", err_quote(shown, given));
	err_hint(err, "at most %d with commas between them, each a character or ctrl-a to ctrl-z", DETACH_KEYS_MAX);
	return -EINVAL;
}

static void tell_left(const struct attached_request *request)
{
	char line[160];

	if (str_format(line, sizeof line, "atoll: left command %u, which goes on; atoll attach -c %u %s comes back\n",
		       (unsigned)request->command, (unsigned)request->command, atoll_id(request->sandbox)) == 0)
		say_notice(line);
}

int attached_follow(const struct attached_request *request, struct err *err)
{
	struct attached attached = { .request = request, .keys = request->keys, .loop.epoll_fd = FD_NONE,
				     .signal_fd = FD_NONE, .err = err };
	int r;

	attached.has_exited = request->has_ended;
	attached.status = request->status;
	r = begin(&attached);
	while (r >= 0 && !attached.is_left && (!attached.has_exited || has_output(&attached)))
		r = loop_step(&attached.loop, -1);
	leave(&attached);
	loop_done(&attached.loop);
	close_fd(&attached.signal_fd);
	if (r < 0 && !err->code)
		err_set(err, ERR_INTERNAL, -r, "attach", "the command cannot be followed: %s", strerror(-r));
	if (r >= 0 && !attached.has_exited)
		tell_left(request);
	return r < 0 ? r : attached.has_exited ? attached.status : 0;
}
