/* SPDX-License-Identifier: Apache-2.0 */
#include "init.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/str.h"
#include "monitor.h"
#include "os/fd.h"
#include "os/pty.h"
#include "spawn.h"

/* Above this a message's pages are given back after use; below they are kept for the next. */
enum { SCRATCH_KEPT = 16 << 10 };

enum { REAPED_AT_ONCE = 256 };

static struct command *find_command(struct init *init, uint32_t id)
{
	for (size_t i = 0; i < init->command_top; i++)
		if (init->commands[i].is_used && init->commands[i].id == id)
			return &init->commands[i];
	return NULL;
}

static struct command *take_slot(struct init *init, uint32_t id)
{
	size_t at = 0;

	while (at < init->command_top && init->commands[at].is_used)
		at++;
	if (at == COMMAND_MAX)
		return NULL;
	if (at == init->command_top)
		init->command_top++;
	init->commands[at] = (struct command){ .id = id, .is_used = true, .master = FD_NONE };
	return &init->commands[at];
}

static void drop_slot(struct init *init, struct command *command)
{
	close_fd(&command->master);
	command->is_used = false;
	while (init->command_top && !init->commands[init->command_top - 1].is_used)
		init->command_top--;
}

static uint64_t to_us(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static struct timeval to_timeval(uint64_t us)
{
	return (struct timeval){ .tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000) };
}

static int report_exit(struct init *init, struct command *command, int status, const struct rusage *usage)
{
	struct init_exit event = {
		.id = command->id,
		.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
		.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	};

	if (usage) {
		event.user_us = to_us(usage->ru_utime);
		event.system_us = to_us(usage->ru_stime);
		event.max_rss_bytes = (uint64_t)usage->ru_maxrss << 10;
	}
	init->is_over |= command->is_last;
	drop_slot(init, command);
	return tell_exited(init, &event);
}

/*
 * Init stays, and the box kills it when it hears this. An exec waits for the box; a command without one may fail before
 * the box has opened /proc/PID/root of init, which needs a live process.
 */
static int report_failure(struct init *init, struct command *command, int errnum, enum init_failure failure)
{
	uint32_t id = command->id;

	drop_slot(init, command);
	return tell_failed(init, id, errnum, failure);
}

static int start_on_pipes(struct init *init, struct command *command, struct spawn_plan *plan)
{
	int r = spawn_command(plan);

	if (r < 0)
		return report_failure(init, command, -r, plan->failure);
	command->pid = r;
	command->is_started = true;
	return tell_started(init, command->id, command->pid, FD_NONE);
}

static int open_events(struct init *init)
{
	if (init->events[0] >= 0)
		return 0;
	if (pipe2(init->events, O_CLOEXEC) < 0)
		return -errno;
	return fd_set_nonblocking(init->events[0], true);
}

/* INIT_STARTED follows when the monitor tells the pid: init does not wait for a process that could be stopped. */
static int start_on_terminal(struct init *init, struct command *command, struct spawn_plan *plan)
{
	struct pty_size size = { .rows = plan->spawn->rows, .columns = plan->spawn->columns };
	cleanup_fd int slave = FD_NONE;
	int r = open_events(init);

	if (r == 0)
		r = pty_open(&command->master, &slave);
	if (r == 0)
		r = pty_set_size(command->master, size);
	if (r == 0)
		r = monitor_start(plan, slave, init->events[1], &init->scratch);
	if (r < 0)
		return report_failure(init, command, -r, INIT_FAILED_SETUP);
	command->monitor = r;
	return 0;
}

/* Which streams came as fds: all without a terminal, else those that the flags name. */
static bool has_fd(uint32_t flags, int stream)
{
	return !(flags & INIT_SPAWN_TTY) || flags & (uint32_t)INIT_SPAWN_PIPE_IN << stream;
}

static size_t fds_wanted(uint32_t flags)
{
	size_t count = 0;

	for (int i = 0; i < 3; i++)
		count += has_fd(flags, i);
	return count;
}

static bool are_flags_sane(uint32_t flags)
{
	const uint32_t pipes = INIT_SPAWN_PIPE_IN | INIT_SPAWN_PIPE_OUT | INIT_SPAWN_PIPE_ERR;

	flags &= ~(uint32_t)INIT_SPAWN_LAST;
	if (flags & ~(pipes | INIT_SPAWN_TTY | INIT_SPAWN_BACKGROUND))
		return false;
	return flags & INIT_SPAWN_TTY ? (flags & pipes) != pipes : flags == 0;
}

static int start(struct init *init, const struct init_spawn *spawn, const int *fds)
{
	struct command *command = take_slot(init, spawn->id);
	struct spawn_plan plan = { .spawn = spawn, .terminal = FD_NONE, .fds = { FD_NONE, FD_NONE, FD_NONE } };
	cleanup_free char **shell_argv = NULL;

	if (!command)
		return tell_failed(init, spawn->id, EAGAIN, INIT_FAILED_SETUP);
	command->is_last = spawn->flags & INIT_SPAWN_LAST;
	shell_argv = calloc(strv_count((const char *const *)spawn->argv) + 2, sizeof *shell_argv);
	if (!shell_argv)
		return report_failure(init, command, ENOMEM, INIT_FAILED_SETUP);
	plan.shell_argv = shell_argv;
	for (int i = 0; i < 3; i++)
		if (has_fd(spawn->flags, i))
			plan.fds[i] = *fds++;
	return spawn->flags & INIT_SPAWN_TTY ? start_on_terminal(init, command, &plan) :
					       start_on_pipes(init, command, &plan);
}

int commands_spawn(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct init *init = context;
	struct init_spawn spawn;
	int r;

	init->is_scratch_large = frame->size > SCRATCH_KEPT;
	r = init_spawn_get(frame, &spawn);
	if (r < 0)
		return r;
	if (!are_flags_sane(spawn.flags) || fd_count != fds_wanted(spawn.flags) || find_command(init, spawn.id))
		r = -EPROTO;
	else
		r = start(init, &spawn, fds);
	free(spawn.argv);
	free(spawn.env);
	return r;
}

/* A command that has just ended has no slot any more; then there is nothing to signal. */
static void signal_command(struct init *init, uint32_t id, int signal_number)
{
	struct command *command = find_command(init, id);

	if (!command)
		return;
	if (!command->is_started) {
		command->waiting_signal = signal_number;
		return;
	}
	/* The queue has a limit per user, which the sandbox can exhaust: then straight to the group. */
	if (command->monitor &&
	    sigqueue(command->monitor, MONITOR_SIGNAL, (union sigval){ .sival_int = signal_number }) == 0 &&
	    signal_number != SIGKILL)
		return;
	if (kill(-command->pid, signal_number) < 0)
		kill(command->pid, signal_number);
}

int commands_signal(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t id = frame_get_u32(frame), number = frame_get_u32(frame);
	int r = frame_finish(frame);

	if (r < 0)
		return r;
	if (number < 1 || number > 64)
		return -EPROTO;
	signal_command(context, id, (int)number);
	return 0;
}

int commands_continue(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t id = frame_get_u32(frame);
	int r = frame_finish(frame);

	if (r == 0)
		signal_command(context, id, SIGCONT);
	return r;
}

static int monitor_started(struct init *init, struct command *command, const struct monitor_event *event)
{
	cleanup_fd int master = take_fd(&command->master);

	command->pid = event->value;
	command->is_started = true;
	if (command->waiting_signal)
		signal_command(init, command->id, command->waiting_signal);
	return tell_started(init, command->id, command->pid, master);
}

static int hear_monitor(struct init *init, const struct monitor_event *event)
{
	struct command *command = find_command(init, event->id);
	struct rusage usage = {
		.ru_utime = to_timeval(event->user_us),
		.ru_stime = to_timeval(event->system_us),
		.ru_maxrss = (long)(event->max_rss_bytes >> 10),
	};

	if (!command)
		return 0;
	switch (event->kind) {
	case MONITOR_STARTED:
		return monitor_started(init, command, event);
	case MONITOR_FAILED:
		return report_failure(init, command, event->value, event->failure);
	case MONITOR_STOPPED:
		return tell_stopped(init, command->id, event->value);
	case MONITOR_EXITED:
		return report_exit(init, command, event->value, &usage);
	}
	return -EPROTO;
}

int commands_read_monitors(struct init *init)
{
	struct monitor_event event;
	int r = 0;

	while (r == 0 && init->events[0] >= 0) {
		ssize_t n = read(init->events[0], &event, sizeof event);

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		r = n == sizeof event ? hear_monitor(init, &event) : -EIO;
	}
	return r;
}

/*
 * The monitor is gone without a last word: the sandbox killed it. Its command is our own child now, unless
 * the monitor had reaped it.
 */
static int lose_monitor(struct init *init, struct command *command)
{
	siginfo_t info;

	if (!command->is_started)
		return report_failure(init, command, EIO, INIT_FAILED_SETUP);
	command->monitor = 0;
	if (waitid(P_PID, (id_t)command->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		return 0;
	return report_exit(init, command, SIGKILL, NULL);
}

static int reap_one(struct init *init, pid_t pid, int status, const struct rusage *usage)
{
	/* What a monitor said before it ended comes first. */
	int r = commands_read_monitors(init);

	for (size_t i = 0; r == 0 && i < init->command_top; i++) {
		struct command *command = &init->commands[i];

		if (!command->is_used)
			continue;
		if (command->monitor == pid)
			return lose_monitor(init, command);
		if (!command->monitor && command->pid == pid)
			return report_exit(init, command, status, usage);
	}
	return r;
}

/* The sandbox may send SIGSTOP to a monitor; it goes on at once. Stops of others are their own business. */
static void resume_monitor(struct init *init, pid_t pid)
{
	for (size_t i = 0; i < init->command_top; i++)
		if (init->commands[i].is_used && init->commands[i].monitor == pid)
			kill(pid, SIGCONT);
}

int commands_reap(struct init *init)
{
	struct rusage usage;
	int status, r = 0;

	for (int i = 0; r == 0 && i < REAPED_AT_ONCE; i++) {
		pid_t pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage);

		/* A child that cannot be reaped would never be reported: then the end of all is better. */
		if (pid < 0 && errno != ECHILD)
			return -errno;
		if (pid <= 0)
			return 0;
		if (WIFSTOPPED(status))
			resume_monitor(init, pid);
		else
			r = reap_one(init, pid, status, &usage);
	}
	return r < 0 ? r : 1;
}
