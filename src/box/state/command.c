/* SPDX-License-Identifier: Apache-2.0 */
#include "box/state/command.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/num.h"
#include "base/str.h"
#include "box/state/sandbox.h"
#include "build/accounts.h"
#include "gate-net/gate.h"
#include "os/fd.h"
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

/* How many of the words fit into COMMAND_NAME_MAX. */
static size_t told_words(char *const *argv)
{
	size_t count = 0, size = 0;

	while (argv[count] && (size += strlen(argv[count]) + 1) <= COMMAND_NAME_MAX)
		count++;
	return count;
}

static void set_name(struct command_name *name, const struct command_request *request)
{
	size_t count = told_words(request->argv);

	name->started_realtime_ns = clock_realtime_ns();
	name->cwd = str_dup(request->cwd);
	name->tag = request->tag ? str_dup(request->tag) : NULL;
	name->argv = calloc(count + 1, sizeof *name->argv);
	for (size_t i = 0; name->argv && i < count; i++)
		name->argv[i] = str_dup(request->argv[i]);
}

static int open_lasting(struct command *command, const struct command_request *request)
{
	struct box *box = command->box;
	const struct lasting_owner owner = { box->run.loop, &box->rings, on_output, box };
	int fds[STDIO_COUNT] = { FD_NONE, FD_NONE, FD_NONE }, r;

	box->rings.max = LASTING_BUDGET_SIZE;
	r = lasting_new(&command->lasting, &owner, request->tty ? 0 : request->lasting, command->stdio.inside);
	for (int i = 0; r == 0 && i < STDIO_COUNT; i++) {
		if (request->tty ? i > 0 : !(request->lasting & 1u << i))
			continue;
		fds[i] = fd_duplicate(request->fds[i]);
		r = fds[i] < 0 ? fds[i] : 0;
	}
	if (r == 0)
		return lasting_attach(command->lasting, fds, false);
	for (int i = 0; i < STDIO_COUNT; i++)
		close_fd(&fds[i]);
	return r;
}

static int open_streams(struct command *command, const struct command_request *request)
{
	int r = 0;

	if (request->tty != STDIO_ALL) {
		r = stdio_open(&command->stdio, command->box->run.loop, request->fds,
			       STDIO_ALL & ~request->tty & ~request->lasting, on_output, command->box);
		command->has_stdio = r == 0;
	}
	return r == 0 && request->lasting ? open_lasting(command, request) : r;
}

int command_start(struct box *box, const struct command_request *request, struct command **ret_command)
{
	struct command **slot = free_slot(box);
	struct command *command;
	int r;

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
	set_name(&command->name, request);
	r = open_streams(command, request);
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

bool command_user_is_own(const struct box *box, const char *user)
{
	uid_t uid = box->run.identity ? box->run.identity->uid_inside : UINT32_MAX;
	const struct run_starter *starter = box->run.request->starter;
	const char *name = starter && starter->user_name ? starter->user_name : accounts_agent;
	uint64_t number;

	if (str_equal(user, uid == 0 ? "root" : name))
		return true;
	return num_parse_u64(user, &number) == 0 && number == uid;
}

int command_take_terminal(struct command *command, int master_fd)
{
	return lasting_take_master(command->lasting, master_fd);
}

struct command *command_find_any(struct box *box, uint32_t id)
{
	for (size_t i = 0; i < BOX_ENDED_MAX; i++)
		if (box->ended[i] && box->ended[i]->id == id)
			return box->ended[i];
	return command_find(box, id);
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
	if (command->lasting && !lasting_is_drained(command->lasting))
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
	if (command->lasting && !lasting_is_settled(command->lasting))
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

static void name_done(struct command_name *name)
{
	strv_free(name->argv);
	free(name->cwd);
	free(name->tag);
}

/* Its place among those that run is free from here on. */
void command_retire(struct command *command)
{
	struct box *box = command->box;
	struct command **slot = &box->ended[0];

	for (size_t i = 0; i < BOX_ENDED_MAX && *slot; i++)
		if (!box->ended[i] || box->ended[i]->name.ended_ns < (*slot)->name.ended_ns)
			slot = &box->ended[i];
	command_free(*slot);
	*slot = command;
	command->name.ended_ns = clock_monotonic_ns();
	if (command->lasting)
		lasting_end(command->lasting);
	if (command->has_stdio)
		stdio_close(&command->stdio);
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] == command)
			box->commands[i] = NULL;
}

uint64_t command_forget_old(struct box *box, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = 0; i < BOX_ENDED_MAX; i++) {
		struct command *command = box->ended[i];
		uint64_t until_ns = command ? command->name.ended_ns + COMMAND_KEPT_MS * (uint64_t)MS_NS : UINT64_MAX;

		if (now_ns >= until_ns)
			command_free(command);
		else if (command && command->lasting && until_ns < next_ns)
			next_ns = until_ns;
	}
	return next_ns;
}

void command_free(struct command *command)
{
	if (!command)
		return;
	lasting_free(command->lasting);
	name_done(&command->name);
	for (size_t i = 0; i < BOX_ENDED_MAX; i++)
		if (command->box->ended[i] == command)
			command->box->ended[i] = NULL;
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
