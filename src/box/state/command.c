/* SPDX-License-Identifier: Apache-2.0 */
#include "box/state/command.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/num.h"
#include "base/str.h"
#include "box/state/sandbox.h"
#include "gate-net/gate.h"
#include "session/environment.h"

enum { MS_NS = 1000000 };

char **command_environment(const struct box *box, const struct command_variables *given)
{
	const struct run_request *run = box->run.request;
	char session[32], home[PATH_MAX + 8];
	const char *forced[] = { session, home, NULL };
	struct environment_input input = {
		.policy = box->run.policy->policy,
		.caller = (const char *const *)(run->command.env_exact ? run->command.env_exact : run->command.env),
		.added = (const char *const *)run->command.env_added,
		.placeholders = (const char *const *)run->secrets.placeholders,
		.trusts_gate = gate_reads_requests(&box->gates.net),
		.forced = forced,
	};

	if (given) {
		input.fallback = input.caller;
		input.kept = input.added;
		input.caller = (const char *const *)given->env;
		input.added = (const char *const *)given->added;
	}
	if (str_format(session, sizeof session, "ATOLL_SESSION=%s", run->session) < 0 ||
	    str_format(home, sizeof home, "HOME=%s", run->home[0] ? run->home : "/") < 0)
		return NULL;
	return environment_make(&input);
}

static int on_output(void *context, uint64_t n)
{
	struct box *box = context;
	uint64_t limit = box->run.policy->policy->limits[RESOURCE_OUTPUT].value;
	int r;

	box->run.output_bytes += n;
	if (limit == NUM_UNLIMITED || box->run.output_bytes <= limit)
		return 0;
	if (box->run.ended != ENDED_NOT)
		return box->run.ended == ENDED_OUTPUT;
	run_end(&box->run, ENDED_OUTPUT);
	r = run_limit_hit(&box->run, "resources.output", limit);
	return r < 0 ? r : 1;
}

static struct command **free_slot(struct box *box)
{
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (!box->commands[i])
			return &box->commands[i];
	return NULL;
}

static uint64_t deadline_of(const struct box *box, uint64_t now_ns)
{
	uint64_t ms = box->run.policy->policy->limits[RESOURCE_COMMAND_MS].value;

	return ms >= (UINT64_MAX - now_ns) / MS_NS ? UINT64_MAX : now_ns + ms * MS_NS;
}

static mode_t current_umask(void)
{
	mode_t mask = umask(022);

	umask(mask);
	return mask;
}

static uint32_t spawn_flags(unsigned tty)
{
	uint32_t flags = INIT_SPAWN_TTY;

	if (!tty)
		return 0;
	for (int i = 0; i < STDIO_COUNT; i++)
		if (!(tty & 1u << i))
			flags |= INIT_SPAWN_PIPE_IN << i;
	/* With an output that goes elsewhere the keyboard may belong to somebody else in the pipeline. */
	if (tty & 1 << STDIO_IN && tty != STDIO_ALL)
		flags |= INIT_SPAWN_BACKGROUND;
	return flags;
}

static int send_spawn(struct box *box, const struct command *command, const struct command_request *request)
{
	struct init_spawn spawn = {
		.id = command->id,
		.flags = spawn_flags(request->tty) | (request->is_main ? INIT_SPAWN_LAST : 0),
		.umask = current_umask(),
		.rows = request->rows,
		.columns = request->columns,
		.cwd = request->cwd,
		.argv = request->argv,
		.env = request->env,
	};
	int fds[STDIO_COUNT], r = init_spawn_put(&box->run.out, &spawn);
	size_t count = 0;

	for (int i = 0; i < STDIO_COUNT; i++)
		if (!(request->tty & 1u << i))
			fds[count++] = command->stdio.inside[i];
	return r < 0 ? r : frame_send(box->serving.wire_fd, &box->run.out, fds, count);
}

int command_start(struct box *box, const struct command_request *request, struct command **ret_command)
{
	struct command **slot = free_slot(box);
	struct command *command;
	int r = 0;

	if (!slot)
		return -EAGAIN;
	command = calloc(1, sizeof *command);
	if (!command)
		return -ENOMEM;
	command->box = box;
	command->id = ++box->next_command;
	command->is_main = request->is_main;
	command->tty = request->tty;
	command->client = request->client;
	command->started_ns = clock_monotonic_ns();
	command->deadline_ns = deadline_of(box, command->started_ns);
	if (request->tty != STDIO_ALL) {
		r = stdio_open(&command->stdio, box->run.loop, request->fds, STDIO_ALL & ~request->tty,
			       on_output, box);
		command->has_stdio = r == 0;
	}
	if (r == 0)
		r = send_spawn(box, command, request);
	if (r < 0) {
		command_free(command);
		return r;
	}
	if (command->has_stdio)
		stdio_close_inside(&command->stdio);
	*slot = command;
	*ret_command = command;
	return 0;
}

int command_open_console(struct command *command, int master_fd)
{
	bool reads_now = command->tty == STDIO_ALL;
	int r = console_open(&command->console, command->box->run.loop, master_fd, reads_now, on_output,
			     command->box);

	command->has_console = r == 0;
	return r;
}

struct command *command_find(struct box *box, uint32_t id)
{
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && box->commands[i]->id == id)
			return box->commands[i];
	return NULL;
}

static int send_to_init(struct box *box, uint16_t type, uint32_t id, int value)
{
	int r;

	if (box->run.is_dead)
		return 0;
	/* It reads nothing while it is frozen: freeze_check() ends that before its socket is full. */
	freeze_count_message(box->run.freeze);
	frame_begin(&box->run.out, type);
	frame_put_u32(&box->run.out, id);
	if (value >= 0)
		frame_put_u32(&box->run.out, (uint32_t)value);
	r = frame_end(&box->run.out);
	return r < 0 ? r : frame_send(box->serving.wire_fd, &box->run.out, NULL, 0);
}

int command_signal(struct command *command, int signal_number)
{
	return send_to_init(command->box, INIT_SIGNAL, command->id, signal_number);
}

int command_continue(struct command *command)
{
	return send_to_init(command->box, INIT_CONTINUE, command->id, -1);
}

bool command_is_drained(const struct command *command)
{
	if (command->has_console && command->console.output.is_open)
		return false;
	return !command->has_stdio || !stdio_has_output(&command->stdio);
}

static bool is_settled(struct relay *relay)
{
	int unread = 0;

	if (!relay->is_open)
		return true;
	if (relay_drain(relay) < 0)
		return true;
	return !relay->is_open ||
	       (!relay->pending_size && ioctl(relay->in, FIONREAD, &unread) == 0 && unread == 0);
}

bool command_is_settled(struct command *command)
{
	if (!command->has_exited)
		return false;
	if (command->has_console && !is_settled(&command->console.output))
		return false;
	return !command->has_stdio || (is_settled(&command->stdio.relays[STDIO_OUT]) &&
				       is_settled(&command->stdio.relays[STDIO_ERR]));
}

int command_failure_status(const struct command *command)
{
	if (command->failure != INIT_FAILED_EXEC)
		return 125;
	return command->failed_errno == ENOENT || command->failed_errno == ENOTDIR ? 127 : 126;
}

int command_status(const struct command *command)
{
	if (command->is_overdue)
		return 124;
	return command->result.signal ? 128 + command->result.signal : command->result.code;
}

void command_free(struct command *command)
{
	if (!command)
		return;
	if (command->has_console)
		console_close(&command->console);
	if (command->has_stdio)
		stdio_close(&command->stdio);
	if (command->is_main && command->has_stdio)
		command->box->outcome.lost_errno = stdio_lost(&command->stdio, &command->box->outcome.lost_name);
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (command->box->commands[i] == command)
			command->box->commands[i] = NULL;
	free(command);
}
