/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/num.h"
#include "box/control/control.h"
#include "box/control/link.h"
#include "box/modules.h"
#include "box/state/sandbox.h"
#include "box/steps.h"
#include "build/disk-full.h"
#include "gate-exec/gate.h"
#include "os/fd.h"
#include "os/memory.h"
#include "os/proc.h"
#include "os/vmfork.h"

/*
 * The life of the sandbox after it was built: messages of atoll-init, signals for us, the end of PID 1, hits
 * of limits and the clocks, all in one loop. Nothing here blocks but the wait itself.
 */

enum box_init_state { INIT_STATE_BUILDING, INIT_STATE_READY };

enum {
	MS_NS = 1000000,
	SUPERVISED_LOOK_MS = 100,
	FLUSH_MS = 50,
	STOP_LOOK_MS = 20,
	DELIVERY_MS = 1000,
	SETTLED_MS = 1000,
	QUIET_MS = 10000
};

static int lost(struct box *box, const char *what)
{
	run_end(&box->run, ENDED_POLICY);
	return err_set(box->run.err, ERR_INTERNAL, EPROTO, "init", "the sandbox was ended: %s", what);
}

bool serve_is_ready(const struct box *box)
{
	return box->serving.init_state == INIT_STATE_READY;
}

int serve_announce(struct box *box)
{
	cleanup_fd int fd = take_fd(&box->announce_fd);

	link_announce(box);
	return fd < 0 ? 0 : fd_write_full(fd, box->run.request->session, strlen(box->run.request->session));
}

static int on_ready(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct box *box = context;
	int r = frame_finish(frame);

	if (r < 0)
		return r;
	box->serving.init_state = INIT_STATE_READY;
	run_stage(&box->run, "init");
	/* Not by /proc/PID/root: who was killed a moment ago has none, and it is no wall that failed then. */
	box->build.watch_options.root_fd = take_fd(&fds[1]);
	owner_init(&box->owner, &box->run, &box->gates.file, fd_count > 2 ? take_fd(&fds[2]) : FD_NONE);
	r = events_watch_new(box, take_fd(&fds[0]));
	if (r < 0)
		return r;
	/* `atoll doctor` asks for the walls alone: every one of them stands now. */
	if (box->run.request->flags & REQUEST_CHECK)
		run_end(&box->run, ENDED_EXIT);
	/* What waits does not live yet. */
	r = box->parking.is_waiting ? 0 : serve_announce(box);
	if (r < 0)
		return r;
	/* Init starts the command meanwhile, whose exec would wait for it. */
	r = exec_gate_enter(box->gates.exec);
	return r < 0 ? lost(box, "the programs of its policy cannot be looked up") : 0;
}

static int on_started(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct box *box = context;
	struct command *command = command_find(box, frame_get_u32(frame));
	uint32_t pid = frame_get_u32(frame); /* nothing here rests on it */

	if (frame_finish(frame) < 0 || !command || !command->tty != !fd_count)
		return -EBADMSG;
	command->has_begun = true;
	command->name.pid = pid;
	control_resume(box);
	/* While its program starts, which takes longer. */
	if (command->is_main)
		store_expect_end(&box->store);
	if (command->tty && command->is_main && !box->run.request->starter)
		return command_open_console(command, take_fd(&fds[0]));
	if (command->tty && command->lasting && command_take_terminal(command, take_fd(&fds[0])) < 0)
		return lost(box, "a terminal cannot be read");
	link_command_started(box, command, fd_count ? fds[0] : FD_NONE);
	return 0;
}

static int finish_command(struct box *box, struct command *command)
{
	int r;

	command->has_begun = command->has_exited = true;
	control_resume(box);
	/* The kernel needs its time for the death of PID 1: it has the one that the record takes as well. */
	if (command->is_main && box->run.ended == ENDED_NOT)
		(void)!pidref_signal(&box->run.init, SIGKILL); /* run_end() sees to it where that fails */
	r = events_command_end(box, command);
	if (r < 0)
		return r;
	if (!command->is_main)
		return 0;
	box->outcome.command_ended_ns = clock_monotonic_ns();
	box->outcome.exit_code = command->result.code;
	box->outcome.exit_signal = command->result.signal;
	run_end(&box->run, command->result.signal ? ENDED_SIGNAL : ENDED_EXIT);
	return 0;
}

static int on_failed(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct box *box = context;
	struct command *command = command_find(box, frame_get_u32(frame));
	uint32_t errnum = frame_get_u32(frame), failure = frame_get_u32(frame);

	if (frame_finish(frame) < 0 || !command || command->has_exited || failure > INIT_FAILED_SETUP)
		return -EBADMSG;
	command->failed_errno = errnum && errnum < 4096 ? (int)errnum : EPROTO;
	command->failure = (enum init_failure)failure;
	command->result.code = command_failure_status(command);
	if (command->is_main) {
		box->outcome.failure_status = command->result.code;
		box->outcome.failure_errno = command->failed_errno;
		box->outcome.has_no_cwd = command->failure == INIT_FAILED_CWD;
	}
	return finish_command(box, command);
}

static int on_exited(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct box *box = context;
	struct command *command;
	struct init_exit event;
	int r = init_exit_get(frame, &event);

	if (r < 0)
		return r;
	command = command_find(box, event.id);
	if (!command || command->has_exited)
		return -EBADMSG;
	command->result = event;
	return finish_command(box, command);
}

/* The shell that started us must see us stop, and the terminal must be usable meanwhile. */
static int suspend(struct box *box, struct command *command)
{
	sigset_t stop;

	if (command->has_console)
		console_suspend(&command->console);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	/* SIGTSTP and not SIGSTOP: in an orphaned process group, where nobody could continue us, the kernel
	 * drops it. */
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	raise(SIGTSTP);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	if (command->has_console && console_resume(&command->console) < 0)
		return lost(box, "its terminal is gone");
	return command_continue(command);
}

static int on_stopped(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct box *box = context;
	struct command *command = command_find(box, frame_get_u32(frame));
	uint32_t signal_number = frame_get_u32(frame);

	if (frame_finish(frame) < 0 || !command)
		return -EBADMSG;
	if (command->has_console && (signal_number == SIGTTIN || signal_number == SIGTTOU) &&
	    !console_has_input(&command->console)) {
		/* It wants the keyboard now. Where that is not ours to give, the kernel stops us as it would
		 * any other. */
		return console_take_input(&command->console) < 0 ? lost(box, "its terminal is gone")
								 : command_continue(command);
	}
	if (command->has_console)
		return suspend(box, command);
	link_command_stopped(box, command, signal_number);
	return 0;
}

static int on_broken(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct box *box = context;
	int errnum = (int)frame_get_u32(frame);
	const char *wall = frame_get_string(frame);

	if (frame_finish(frame) < 0 || !wall)
		return -EBADMSG;
	run_end(&box->run, ENDED_POLICY);
	err_set(box->run.err, ERR_WALL, errnum, wall, "the wall %s could not be built: %s", wall,
		err_errno_name(errnum));
	err_hint(box->run.err, "run: atoll doctor");
	return errnum > 0 ? -errnum : -EPROTO;
}

enum { ANY = 1 << INIT_STATE_BUILDING | 1 << INIT_STATE_READY, READY = 1 << INIT_STATE_READY };

static const struct frame_rule init_rules[] = {
	{ INIT_READY, 1 << INIT_STATE_BUILDING, 64, 2, 3, on_ready },
	{ INIT_STARTED, READY, 64, 0, 1, on_started },
	{ INIT_FAILED, READY, 64, 0, 0, on_failed },
	{ INIT_EXITED, READY, 128, 0, 0, on_exited },
	{ INIT_STOPPED, READY, 64, 0, 0, on_stopped },
	{ INIT_BROKEN, ANY, 512, 0, 0, on_broken },
};

static int wire_ready(void *context, uint32_t events)
{
	struct box *box = context;
	int r = frame_dispatch(box->serving.wire_fd, &box->run.scratch, box->serving.init_state, init_rules,
			       ARRAY_SIZE(init_rules), box);

	/* It went without having read all that it was sent. The kernel says so once, before what it said last. */
	if (r == -ECONNRESET)
		return 0;
	if (r == 0) { /* init is gone: its pidfd tells the rest */
		loop_remove(box->run.loop, &box->serving.wire_source);
		return 0;
	}
	if (r == -EPROTO || r == -EBADMSG)
		return lost(box, "its first process broke the protocol");
	return r < 0 ? r : 0;
}

static void note_unexpected_end(struct box *box)
{
	box_read_usage(box);
	if (box->run.usage.oom_kills) {
		box->run.ended = ENDED_MEMORY;
		return;
	}
	box->run.ended = ENDED_STOPPED;
	box->outcome.exit_signal = SIGKILL;
}

static int init_ready(void *context, uint32_t events)
{
	struct box *box = context;
	siginfo_t info;
	int r;

	/* What init said before it died comes first: its exit may have crossed with a command's. */
	while (box->serving.wire_source.is_added) {
		struct pollfd wire = { .fd = box->serving.wire_fd, .events = POLLIN };

		if (poll(&wire, 1, 0) <= 0)
			break;
		r = wire_ready(box, EPOLLIN);
		if (r < 0)
			return r;
	}
	r = pidref_wait(&box->run.init, WEXITED, &info, &box->outcome.rusage);
	if (r < 0)
		return r;
	box->run.is_dead = true;
	loop_remove(box->run.loop, &box->serving.init_source);
	loop_remove(box->run.loop, &box->serving.wire_source);
	if (box->run.ended == ENDED_NOT)
		note_unexpected_end(box);
	if (!box->outcome.command_ended_ns)
		box->outcome.command_ended_ns = clock_monotonic_ns();
	return 0;
}

static struct command *main_command(struct box *box)
{
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && box->commands[i]->is_main)
			return box->commands[i];
	return NULL;
}

static int on_signal(struct box *box, int signal_number)
{
	struct command *command = main_command(box);

	switch (signal_number) {
	case SIGWINCH:
		if (command && command->has_console)
			console_resize(&command->console);
		return 0;
	case SIGCONT:
		if (command && command->has_console)
			return console_resume(&command->console) < 0 ? lost(box, "its terminal is gone") : 0;
		return command ? command_signal(command, SIGCONT) : 0;
	case SIGTSTP:
		if (!command)
			return 0;
		if (command->has_console) /* its stop comes back as INIT_STOPPED */
			return command_signal(command, SIGTSTP);
		/* Without a terminal of its own the command's group is orphaned and would ignore SIGTSTP. */
		if (command_signal(command, SIGSTOP) < 0)
			return 0;
		raise(SIGSTOP);
		return 0;
	default:
		break;
	}
	if (box->run.is_dead)
		box->outcome.is_interrupted = true;
	/* Who stands still for a person's decision gets no signal: this is the decision. */
	if (freeze_is_on(&box->supervision.freeze) && box->supervision.freeze.holder->yields_to_signal) {
		run_end(&box->run, ENDED_STOPPED);
		(void)!freeze_end(&box->supervision.freeze); /* what cannot be thawed is dead */
		return 0;
	}
	if (!command || command->has_exited || (signal_number == SIGTERM && ++box->serving.terms > 1)) {
		run_end(&box->run, ENDED_STOPPED);
		return 0;
	}
	return command_signal(command, signal_number);
}

static int signal_ready(void *context, uint32_t events)
{
	struct signalfd_siginfo info;
	struct box *box = context;
	int r = fd_read_full(box->serving.signal_fd, &info, sizeof info);

	return r < 0 ? r : on_signal(box, (int)info.ssi_signo);
}

/* Where no cgroup holds the memory, we do, by looking. */
static int check_supervised_memory(struct box *box)
{
	uint64_t limit = box->run.policy->policy->limits[RESOURCE_MEMORY].value;

	if (limit_group_holder_memory(box->run.limits) != LIMIT_SUPERVISED || box->run.usage.memory_bytes <= limit)
		return 0;
	run_end(&box->run, ENDED_MEMORY);
	return run_limit_hit(&box->run, "resources.memory", limit);
}

static int limit_ready(void *context, uint32_t events)
{
	struct box *box = context;

	box_read_usage(box); /* which also makes the event fd quiet again */
	return box_note_hits(box);
}

static uint64_t moved_bytes(const struct box *box)
{
	uint64_t moved = box->run.output_bytes;

	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++) {
		const struct command *command = box->commands[i];

		if (command && command->has_stdio)
			moved += command->stdio.relays[STDIO_IN].moved_bytes;
		if (command && command->has_console)
			moved += command->console.input.moved_bytes;
		if (command && command->lasting)
			moved += lasting_moved(command->lasting);
	}
	return moved;
}

static int check_commands(struct box *box, uint64_t now_ns)
{
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++) {
		struct command *command = box->commands[i];
		int r;

		if (!command || command->has_exited || now_ns < command->deadline_ns)
			continue;
		r = run_limit_hit(&box->run, "time.command",
				  box->run.policy->policy->limits[RESOURCE_COMMAND_MS].value);
		if (r < 0)
			return r;
		command->deadline_ns = UINT64_MAX;
		command->is_overdue = true;
		if (command->is_main)
			run_end(&box->run, ENDED_TIME);
		else if (command_signal(command, SIGKILL) < 0)
			return lost(box, "its first process does not answer");
	}
	return 0;
}

/* How often memory is looked at; -1: never. */
static int supervised_look_ms(const struct box *box)
{
	if (limit_group_holder_memory(box->run.limits) != LIMIT_SUPERVISED)
		return -1;
	return box->serving.is_resting ? DISK_REST_MS : SUPERVISED_LOOK_MS;
}

static bool must_supervise(const struct box *box, uint64_t now_ns)
{
	int every_ms = supervised_look_ms(box);

	return every_ms >= 0 && now_ns - box->serving.looked_ns >= (uint64_t)every_ms * MS_NS;
}

/* All that is not init's own is a command's, or was once: orphans are children of init. */
static bool runs_nothing(const struct box *box)
{
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && !box->commands[i]->has_exited)
			return false;
	return !proc_has_children(box->run.init.pid);
}

/*
 * Behind a look. Thousands of idle sandboxes would cost more by their looks than by anything else. Where nothing runs
 * inside, only what the loop hears of can begin to use something: a command, or a file that the owner opens, who
 * may write it for a while.
 */
static void rest_looks(struct box *box, uint64_t now_ns)
{
	struct box_serving *serving = &box->serving;

	serving->is_resting = now_ns - serving->heard_ns >= QUIET_MS * (uint64_t)MS_NS && runs_nothing(box);
	if (serving->is_resting)
		disk_watch_rest(&box->build.disk.watch, now_ns);
}

static void wake_looks(struct box *box)
{
	struct box_serving *serving = &box->serving;

	serving->heard_ns = clock_monotonic_ns();
	serving->is_resting = false;
	disk_watch_wake(&box->build.disk.watch, serving->heard_ns);
}

static int check_clocks(struct box *box)
{
	uint64_t now_ns = clock_monotonic_ns(), looked_ns = box->serving.looked_ns;
	uint64_t look_ns = box->build.disk.watch.look_ns;
	enum clock_hit hit;
	int r = freeze_check(&box->supervision.freeze, now_ns);

	/* Frozen: nobody uses anything, and no clock runs. */
	if (r < 0 || freeze_is_on(&box->supervision.freeze))
		return r;
	if (clocks_must_look(&box->supervision.clocks, now_ns) || must_supervise(box, now_ns)) {
		box->serving.looked_ns = now_ns;
		box_read_usage(box);
		clocks_saw(&box->supervision.clocks, now_ns, box->run.usage.cpu_ns, moved_bytes(box));
		r = box_note_hits(box);
		if (r == 0)
			r = check_supervised_memory(box);
		if (r < 0)
			return r;
	}
	r = disk_supervise(&box->build.disk, now_ns);
	if (r < 0 || box->run.ended != ENDED_NOT)
		return r;
	if (box->build.disk.watch.look_ns != look_ns || box->serving.looked_ns != looked_ns)
		rest_looks(box, now_ns);
	hit = clocks_check(&box->supervision.clocks, now_ns);
	if (hit != CLOCK_NONE) {
		run_end(&box->run, ENDED_TIME);
		return run_limit_hit(&box->run, clock_hit_names[hit], 0);
	}
	return check_commands(box, now_ns);
}

/* Of two times in ms the one that comes first; -1: never. */
static int earlier(int a, int b)
{
	return b >= 0 && (a < 0 || b < a) ? b : a;
}

static int left_ms(uint64_t until_ns, uint64_t now_ns)
{
	uint64_t left = until_ns > now_ns ? (until_ns - now_ns) / MS_NS + 1 : 0;

	return until_ns == UINT64_MAX ? -1 : left > INT32_MAX ? INT32_MAX : (int)left;
}

/* Of what check_clocks() looks at while nothing stands still. */
static int used_timeout_ms(const struct box *box, uint64_t now_ns)
{
	int timeout = clocks_timeout_ms(&box->supervision.clocks, now_ns);

	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++) {
		const struct command *command = box->commands[i];

		if (command && !command->has_exited)
			timeout = earlier(timeout, left_ms(command->deadline_ns, now_ns));
	}
	timeout = earlier(timeout, left_ms(box->build.disk.watch.look_ns, now_ns));
	return earlier(timeout, supervised_look_ms(box));
}

static bool has_lasting(const struct box *box)
{
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && box->commands[i]->lasting)
			return true;
	return false;
}

static int timeout_ms(const struct box *box)
{
	uint64_t now_ns = clock_monotonic_ns();
	int timeout;

	if (box->run.ended != ENDED_NOT)
		return (box->run.ended == ENDED_EXIT || box->run.ended == ENDED_SIGNAL) && !has_lasting(box)
			       ? -1
			       : STOP_LOOK_MS;
	if (box->control.stop_ns != UINT64_MAX)
		return STOP_LOOK_MS;
	timeout = freeze_is_on(box->run.freeze) ? freeze_timeout_ms(box->run.freeze, now_ns)
						: used_timeout_ms(box, now_ns);
	timeout = earlier(timeout, left_ms(box->forget_ns, now_ns));
	return earlier(timeout, modules_timeout_ms(box, now_ns));
}

/* Who does not read what a command that lasts wrote holds up no end. */
static bool is_given_up(const struct box *box, const struct command *command)
{
	return command->lasting &&
	       clock_monotonic_ns() - box->outcome.command_ended_ns > DELIVERY_MS * (uint64_t)MS_NS;
}

static bool is_over(const struct box *box, struct command *command)
{
	if (box->run.is_dead)
		return command_is_drained(command) || is_given_up(box, command);
	return command_is_settled(command);
}

/*
 * Forgets commands of `atoll exec` that have ended and whose output was delivered. Who hears of it finds it in the log.
 * 1: none is left; 0: some are; negative: the log failed.
 */
static int settle_commands(struct box *box)
{
	bool is_settled = true;
	int r;

	box->forget_ns = command_forget_old(box, clock_monotonic_ns());
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++) {
		struct command *command = box->commands[i];

		if (!command)
			continue;
		if (is_over(box, command)) {
			r = command->client ? audit_flush(box->run.audit) : 0;
			if (r < 0)
				return r;
			control_command_ended(box, command);
			if (box->run.is_dead)
				command_free(command);
			else if (!command->is_main)
				command_retire(command);
		}
		is_settled = is_settled && !box->commands[i];
	}
	return is_settled;
}

/*
 * Nothing happens for a while: what only the start needed goes, and each time the stack that the last events took. The
 * first program, the first look at what is used, and who judges commands bring some of it back, so it goes once more
 * when those are over. What is in use all the time would only come back by page faults.
 */
static void rest(struct box *box, uint64_t now_ns)
{
	if (now_ns < box->serving.rest_ns) {
		memory_rest_stack();
		return;
	}
	if (!box->serving.rest_ns)
		vmfork_rest();
	box->serving.rest_ns = box->serving.rest_ns ? UINT64_MAX : now_ns + SETTLED_MS * (uint64_t)MS_NS;
	memory_rest();
}

/* With nothing to be written. */
static int wait_idle(struct box *box, int timeout)
{
	int r = loop_step(box->run.loop, timeout);
	uint64_t rest_ns = box->serving.rest_ns;
	uint64_t now_ns = r == 0 && rest_ns && rest_ns != UINT64_MAX ? clock_monotonic_ns() : 0;

	if (now_ns && now_ns >= rest_ns)
		rest(box, now_ns);
	if (r > 0)
		wake_looks(box);
	return r;
}

/* Records are written together, but none waits longer than FLUSH_MS: that much a killed box can lose. */
static int wait_for_event(struct box *box)
{
	int timeout = timeout_ms(box), r;
	bool is_quiet;

	r = file_gate_flush(&box->gates.file, false);
	if (r < 0)
		return r;
	if (!box->run.audit->pending.size && !file_gate_is_pending(&box->gates.file))
		return wait_idle(box, timeout);
	if (timeout < 0 || timeout > FLUSH_MS)
		timeout = FLUSH_MS;
	r = loop_step(box->run.loop, timeout);
	if (r > 0)
		wake_looks(box);
	if (r < 0 || (r > 0 && clock_monotonic_ns() - box->serving.flushed_ns < FLUSH_MS * (uint64_t)MS_NS))
		return r;
	box->serving.flushed_ns = clock_monotonic_ns();
	is_quiet = r == 0;
	r = audit_flush(box->run.audit);
	/* Not before init is ready: until then its second process needs its stack. */
	if (r == 0 && is_quiet && box->serving.init_state == INIT_STATE_READY)
		rest(box, box->serving.flushed_ns);
	return r;
}

/*
 * Everything inside is dead, but somebody does not read what it wrote. A command that ended by itself is
 * waited for, as a shell would; one that was ended gets DELIVERY_MS, and a signal to us ends the wait at
 * once.
 */
static bool is_delivery_over(const struct box *box)
{
	if (!box->run.is_dead)
		return false;
	if (box->outcome.is_interrupted)
		return true;
	return box->run.ended != ENDED_EXIT && box->run.ended != ENDED_SIGNAL &&
	       clock_monotonic_ns() - box->outcome.command_ended_ns > DELIVERY_MS * (uint64_t)MS_NS;
}

static int add(struct box *box, struct loop_source *source, int fd, int (*ready)(void *, uint32_t))
{
	*source = (struct loop_source){ .fd = fd, .events = EPOLLIN, .ready = ready, .context = box };
	return loop_add(box->run.loop, source);
}

int serve_start(struct box *box)
{
	int limit_fd = limit_group_event_fd(box->run.limits);
	int r = add(box, &box->serving.wire_source, box->serving.wire_fd, wire_ready);

	if (r == 0)
		r = add(box, &box->serving.init_source, box->run.init.fd, init_ready);
	if (r == 0)
		r = add(box, &box->serving.signal_source, box->serving.signal_fd, signal_ready);
	if (r == 0 && limit_fd >= 0)
		r = add(box, &box->serving.limit_source, limit_fd, limit_ready);
	return r;
}

int serve(struct box *box)
{
	for (;;) {
		int settled = settle_commands(box), r = settled < 0 ? settled : 0;

		if (r == 0 && ((settled && box->run.is_dead) || is_delivery_over(box)))
			return 0;
		if (r == 0 && box->run.ended == ENDED_NOT)
			r = check_clocks(box);
		if (r == 0)
			r = modules_check(box);
		if (r == 0)
			r = wait_for_event(box);
		if (r < 0)
			return r;
	}
}
