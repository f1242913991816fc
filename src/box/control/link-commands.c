/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>

#include "approve/token-grants.h"
#include "base/str.h"
#include "box/control/exec-snapshot.h"
#include "box/control/link-state.h"
#include "wire/token.h"

/* What a linked client asks of commands: to run one, who they are, and what becomes of those that last. */

enum { MS_NS = 1000000, ROWS_MAX = 96 << 10 };

struct run_fields {
	char **argv;
	const char *cwd, *tag, *user;
	struct command_variables variables;
	uint64_t pty, keep, timeout_ms;
	uint64_t lasting;        /* bits 1 << STDIO_…, of a terminal all */
	const void *token;       /* borrowed; NULL: none */
	size_t token_size;
};

static int get_run_field(struct run_fields *run, const struct field *field)
{
	struct {
		const char *key;
		char ***strings;
		const char **text;
		uint64_t *number;
	} const table[] = {
		{ "argv", &run->argv, NULL, NULL },      { "env", &run->variables.env, NULL, NULL },
		{ "env_add", &run->variables.added, NULL, NULL }, { "cwd", NULL, &run->cwd, NULL },
		{ "pty", NULL, NULL, &run->pty },             { "keep", NULL, NULL, &run->keep },
		{ "timeout_ms", NULL, NULL, &run->timeout_ms }, { "lasting", NULL, NULL, &run->lasting },
		{ "tag", NULL, &run->tag, NULL },             { "user", NULL, &run->user, NULL },
	};

	if (str_equal(field->key, "token") && field->kind == FIELD_BYTES && field->size) {
		run->token = field->bytes;
		run->token_size = field->size;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!str_equal(table[i].key, field->key))
			continue;
		if (table[i].strings && field->kind == FIELD_STRINGS && !*table[i].strings)
			*table[i].strings = field->strings;
		else if (table[i].text && field->kind == FIELD_STRING)
			*table[i].text = field->bytes;
		else if (table[i].number && field->kind == FIELD_U64)
			*table[i].number = field->number;
		else
			return -EBADMSG;
		return 0;
	}
	return -EBADMSG;
}

static int get_run(struct frame *frame, struct run_fields *run)
{
	struct field field = { 0 };
	int r;

	while ((r = field_get(frame, &field)) == 1) {
		r = get_run_field(run, &field);
		if (r < 0) {
			free(field.strings);
			return r;
		}
		field = (struct field){ 0 };
	}
	return r < 0 || !run->argv || !run->argv[0] ? -EBADMSG : 0;
}

/* Whose home is laid out from elsewhere begins there: of the project nothing need be inside. */
static const char *default_directory(const struct box *box)
{
	const struct run_starter *starter = box->run.request->starter;

	return starter && starter->home_from ? box->run.policy->policy->home : box->run.request->project;
}

/* "pty" is rows << 16 | columns, and then there are no streams. */
static int start_command(struct client *client, const struct run_fields *run, const int *fds, struct command **ret)
{
	struct box *box = client->box;
	char *none[] = { NULL };
	struct command_variables variables = run->variables;
	char **env;
	int r;

	variables.env = variables.env ? variables.env : none;
	variables.added = variables.added ? variables.added : none;
	env = command_environment(box, &variables);
	r = env ? command_start(box, &(struct command_request){
		.argv = run->argv, .env = env, .cwd = run->cwd ? run->cwd : default_directory(box), .fds = fds,
		.tty = run->pty ? STDIO_ALL : 0, .rows = (uint16_t)(run->pty >> 16), .columns = (uint16_t)run->pty,
		.client = client, .lasting = (unsigned)run->lasting, .tag = run->tag }, ret) : -ENOMEM;
	strv_free(env);
	if (r < 0)
		return r;
	(*ret)->outlives_client = run->keep || run->lasting;
	if (run->timeout_ms && run->timeout_ms < UINT64_MAX / MS_NS / 2 &&
	    (*ret)->started_ns + run->timeout_ms * MS_NS < (*ret)->deadline_ns)
		(*ret)->deadline_ns = (*ret)->started_ns + run->timeout_ms * MS_NS;
	return 0;
}

/* What a token lets happen holds from before the command that it came with. 1: it does not hold, as *err says. */
static int add_token(struct client *client, const struct run_fields *run, struct err *err)
{
	struct frame frame;
	int r;

	if (!run->token)
		return 0;
	/* It lies in the buffer that messages are received in. */
	r = frame_open(&frame, (void *)run->token, run->token_size);
	if (r < 0 || frame.type != TOKEN_HOLDS)
		return err_set(err, ERR_USAGE, EBADMSG, "token", "this token is not valid") < 0;
	return token_grants_add(&client->box->approval.queue, &frame, err);
}

/* 1: as above. */
static int prepare_run(struct client *client, const struct run_fields *run, struct err *err)
{
	int r = exec_snapshot_use(client, err);

	return r < 0 ? r : add_token(client, run, err);
}

static int refuse_user(struct client *client, uint64_t ticket, const char *user)
{
	struct err err = { 0 };

	err_set(&err, ERR_STATE, EOPNOTSUPP, "user", "this sandbox has one user, who is not %.64s", user);
	err_hint(&err, "leave \"user\" out; where the whole system is staged, that user is root");
	return link_reply_error(client, ticket, &err);
}

static size_t streams_wanted(const struct run_fields *run)
{
	return run->pty ? run->lasting != 0 : STDIO_COUNT;
}

int link_on_run(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame);
	struct command *command = NULL;
	struct run_fields run = { 0 };
	struct err err = { 0 };
	int r = get_run(frame, &run);

	if (r == 0 && (fd_count != streams_wanted(&run) || run.lasting > STDIO_ALL ||
		       (run.tag && strlen(run.tag) > COMMAND_TAG_MAX)))
		r = -EBADMSG;
	if (r == 0 && freeze_is_on(client->box->run.freeze))
		r = link_reply_errno(client, ticket, "exec", EBUSY, "everything in this sandbox is frozen");
	else if (r == 0 && run.user && !command_user_is_own(client->box, run.user))
		r = refuse_user(client, ticket, run.user);
	else if (r == 0 && !link_is_ending(client, ticket) && (r = prepare_run(client, &run, &err)) != 0)
		r = link_reply_failure(client, ticket, r, &err);
	else if (r == 0 && client->box->run.ended == ENDED_NOT) {
		r = start_command(client, &run, fds, &command);
		if (r < 0)
			r = link_reply_errno(client, ticket, "exec", -r,
					r == -EAGAIN ? "too many commands run in this sandbox"
						     : "cannot start a command in this sandbox");
		else
			link_reply_u64(client, ticket, "command", command->id);
	}
	free(run.argv);
	free(run.variables.env);
	free(run.variables.added);
	return r;
}

int link_on_kill(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), id = frame_get_u64(frame), number = frame_get_u64(frame);
	struct command *command;

	if (frame_finish(frame) < 0 || number < 1 || number > 64 || id > UINT32_MAX)
		return -EBADMSG;
	command = command_find(client->box, (uint32_t)id);
	if (!command || command->has_exited)
		return link_reply_errno(client, ticket, "signal", ESRCH, "no such command runs in this sandbox");
	if (command_signal(command, (int)number) < 0 ||
	    (number == SIGCONT && command_continue(command) < 0))
		return link_reply_errno(client, ticket, "signal", EIO, "the sandbox does not listen");
	link_reply_done(client, ticket);
	return 0;
}

/* ---- those that run, and last ---- */

static void put_row(struct buf *out, const struct command *command)
{
	const struct command_name *name = &command->name;
	struct lasting_state state = { 0 };

	if (command->lasting)
		lasting_look(command->lasting, &state);
	frame_begin(out, LINK_ROW);
	field_put_u64(out, "number", command->id);
	field_put_u64(out, "main", command->is_main);
	field_put_u64(out, "pid", name->pid);
	field_put_strings(out, "argv", (const char *const *)name->argv);
	field_put_string(out, "cwd", name->cwd);
	field_put_string(out, "tag", name->tag);
	field_put_u64(out, "lasts", command->lasting != NULL);
	field_put_u64(out, "terminal", command->tty != 0);
	field_put_u64(out, "attached", state.attached);
	field_put_u64(out, "dropped", state.dropped);
	field_put_u64(out, "started_ns", name->started_realtime_ns);
	if (!command->has_exited)
		return;
	field_put_string(out, "ended", name->ended ? name->ended : "exit");
	field_put_u64(out, "status", (uint64_t)command_status(command));
	if (command->result.signal)
		field_put_u64(out, "signal", (uint64_t)command->result.signal);
	else
		field_put_u64(out, "exit", (uint64_t)command->result.code);
}

/* The one with the lowest number above this one; NULL: none. */
static const struct command *next_command(const struct box *box, uint64_t after)
{
	const struct command *found = NULL;

	for (size_t i = 0; i < BOX_COMMANDS_MAX + BOX_ENDED_MAX; i++) {
		const struct command *command = i < BOX_COMMANDS_MAX ? box->commands[i]
								     : box->ended[i - BOX_COMMANDS_MAX];

		if (command && command->id > after && (!found || command->id < found->id))
			found = command;
	}
	return found;
}

/* Those after a number, as many as fit; what is asked after for more. */
static int put_rows(const struct box *box, uint64_t after, struct buf *rows, uint64_t *ret_next)
{
	const struct command *command;
	struct buf row;
	int r = 0;

	*ret_next = 0;
	buf_init(&row, ROWS_MAX);
	while (r == 0 && (command = next_command(box, after))) {
		put_row(&row, command);
		r = frame_end(&row);
		if (r < 0 || rows->size + row.size > ROWS_MAX) {
			*ret_next = after;
			break;
		}
		buf_put(rows, row.bytes, row.size);
		r = buf_error(rows);
		after = command->id;
	}
	buf_done(&row);
	return r;
}

int link_on_commands(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), after = frame_get_u64(frame), next;
	struct buf rows, *out;
	int r;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	(void)command_forget_old(client->box, clock_monotonic_ns());
	buf_init(&rows, ROWS_MAX);
	r = put_rows(client->box, after, &rows, &next);
	if (r == 0) {
		out = link_reply_begin(client, ticket, ERR_NONE);
		field_put_bytes(out, "rows", rows.bytes, rows.size);
		field_put_string(out, "kind", "command");
		field_put_u64(out, "next", next);
		link_reply_send(client, NULL, 0);
	} else {
		r = link_reply_errno(client, ticket, "commands", -r, "the commands cannot be listed");
	}
	buf_done(&rows);
	return r;
}

/* NULL: it was answered that there is none. */
static struct command *find_lasting(struct client *client, uint64_t ticket, uint64_t id)
{
	struct command *command = id <= UINT32_MAX ? command_find_any(client->box, (uint32_t)id) : NULL;
	struct err err = { 0 };

	if (command && command->lasting)
		return command;
	if (command)
		err_set(&err, ERR_NOT_FOUND, 0, "attach",
			"command %u of this sandbox does not last: it was started without \"keep\"", command->id);
	else
		err_set(&err, ERR_NOT_FOUND, ESRCH, "attach", "there is no such command in this sandbox");
	(void)link_reply_error(client, ticket, &err);
	return NULL;
}

static int get_attach(struct frame *frame, bool *ret_is_fresh, bool *ret_has_input)
{
	struct field field = { 0 };
	int r;

	*ret_is_fresh = false;
	*ret_has_input = true;
	while ((r = field_get(frame, &field)) == 1) {
		if (field.kind == FIELD_U64 && str_equal(field.key, "fresh"))
			*ret_is_fresh = field.number;
		else if (field.kind == FIELD_U64 && str_equal(field.key, "output_only"))
			*ret_has_input = !field.number;
		else
			r = -EBADMSG;
		field_done(&field);
		if (r < 0)
			return r;
	}
	return r;
}

static void reply_streams(struct client *client, uint64_t ticket, const struct command *command, int fds[3])
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	struct lasting_state state;
	struct buf *out = link_reply_begin(client, ticket, ERR_NONE);
	int sent[STDIO_COUNT];
	size_t count = 0;

	lasting_look(command->lasting, &state);
	field_put_u64(out, "command", command->id);
	field_put_u64(out, "dropped", state.dropped);
	for (int i = 0; i < STDIO_COUNT; i++) {
		if (fds[i] < 0)
			continue;
		field_put_fd(out, state.is_terminal ? "terminal" : names[i], count);
		sent[count++] = fds[i];
	}
	link_reply_send(client, sent, count);
}

int link_on_attach(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), id = frame_get_u64(frame);
	int theirs[STDIO_COUNT] = { FD_NONE, FD_NONE, FD_NONE };
	bool is_fresh, has_input;
	struct command *command;
	int r = get_attach(frame, &is_fresh, &has_input);

	if (r < 0)
		return r;
	command = find_lasting(client, ticket, id);
	if (!command)
		return 0;
	r = lasting_attach_new(command->lasting, has_input, is_fresh, theirs);
	if (r < 0)
		return link_reply_errno(client, ticket, "attach", -r,
					r == -EAGAIN ? "too many programs are attached to this command"
						     : "cannot attach to this command");
	reply_streams(client, ticket, command, theirs);
	for (int i = 0; i < STDIO_COUNT; i++)
		close_fd(&theirs[i]);
	return 0;
}

int link_on_resize(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), id = frame_get_u64(frame), size = frame_get_u64(frame);
	struct command *command;
	int r;

	if (frame_finish(frame) < 0 || size > UINT32_MAX || !(size >> 16) || !(uint16_t)size)
		return -EBADMSG;
	command = find_lasting(client, ticket, id);
	if (!command)
		return 0;
	r = lasting_resize(command->lasting, (uint16_t)(size >> 16), (uint16_t)size);
	if (r < 0)
		return link_reply_errno(client, ticket, "resize", -r, "this command has no terminal");
	link_reply_done(client, ticket);
	return 0;
}

int link_on_close_input(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint64_t ticket = frame_get_u64(frame), id = frame_get_u64(frame);
	struct err err = { 0 };
	struct command *command;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	command = find_lasting(client, ticket, id);
	if (!command)
		return 0;
	if (lasting_close_input(command->lasting) == 0) {
		link_reply_done(client, ticket);
		return 0;
	}
	err_set(&err, ERR_USAGE, EINVAL, "stdin", "the input of a terminal is not closed from outside");
	err_hint(&err, "write the character that ends it, mostly 0x04 (Ctrl-D)");
	return link_reply_error(client, ticket, &err);
}
