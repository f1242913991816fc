/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One command inside: the run's own, or one of `atoll exec`. Spawned through atoll-init, streams relayed
 * here. */

#include "supervise/console.h"
#include "supervise/lasting.h"
#include "supervise/stdio.h"
#include "wire/init.h"

struct box;
struct client;

/* What is told of a command to those who did not start it: owned strings, NULL: no memory. */
struct command_name {
	char **argv;     /* cut after COMMAND_NAME_MAX bytes */
	char *cwd, *tag; /* tag: NULL: none */
	uint32_t pid;	 /* inside; 0: not known yet */
	uint64_t started_realtime_ns;
	uint64_t ended_ns; /* CLOCK_MONOTONIC; 0: it runs */
	const char *ended; /* static: why */
};

enum { COMMAND_NAME_MAX = 4 << 10, COMMAND_TAG_MAX = 255, COMMAND_KEPT_MS = 30000 };

struct command {
	struct box *box;
	uint32_t id;
	bool is_main;
	bool has_stdio, has_console;
	struct lasting *lasting; /* owned; NULL: it does not last */
	struct command_name name;
	unsigned tty;	 /* as asked for */
	bool has_begun;	 /* init said that it started, or that it could not */
	bool has_exited; /* init said so; streams may still deliver */
	bool is_overdue; /* killed by time.command */
	bool outlives_client;
	bool is_told;	 /* clients have heard of its end */
	struct stdio stdio;
	struct console console; /* of the main command; `atoll exec` relays its terminal itself */
	struct client *client;	/* who asked for it; NULL: the run, or a client that left */
	uint64_t started_ns, deadline_ns;
	struct init_exit result;
	int failed_errno; /* could not be started */
	enum init_failure failure;
};

struct command_request {
	char **argv;
	char **env; /* complete */
	const char *cwd;
	const int *fds; /* three, borrowed */
	unsigned tty; /* bits 1 << STDIO_…: streams that are on a pty; 0: no pty at all */
	uint16_t rows, columns;
	bool is_main;
	struct client *client;
	unsigned lasting; /* bits 1 << STDIO_…: streams that last, of which fds are a client's ends; with tty: all */
	const char *tag;  /* NULL: none */
};

/* What a client gives for its command: borrowed NAME=value, the first as far as the policy passes it. */
struct command_variables {
	char **env, **added;
};

/*
 * What a client's command finds in its environment; given NULL: what the run's own does. The same but for what the
 * client gives. Owned by the caller (strv_free()); NULL: out of memory.
 */
char **command_environment(const struct box *box, const struct command_variables *given);

/*
 * Makes the streams and sends INIT_SPAWN. May be called before init lives: the message waits in the socket.
 * -EAGAIN when there are BOX_COMMANDS_MAX already. *ret_command is owned by the box (command_free).
 */
int command_start(struct box *box, const struct command_request *request,
		  struct command **ret_command) MUST_USE;

/* Takes master_fd: joins the user's terminal (fd 0 of this process) to the command's pty. */
int command_open_console(struct command *command, int master_fd) MUST_USE;

/* Takes master_fd: of a command that lasts. */
int command_take_terminal(struct command *command, int master_fd) MUST_USE;

/* It is over and told: it stays among those that ended, for COMMAND_KEPT_MS. */
void command_retire(struct command *command);

/* Forgets those that ended long ago; when that is the next time (UINT64_MAX: nobody waits for it). */
uint64_t command_forget_old(struct box *box, uint64_t now_ns);

/* As command_find(), also among those that ended. */
struct command *command_find_any(struct box *box, uint32_t id);

/* Whether it means the one user of the sandbox, by name or number: root of a staged system is that one as well. */
bool command_user_is_own(const struct box *box, const char *user);

/* NULL when no such command runs. */
struct command *command_find(struct box *box, uint32_t id);

/* Sends a signal to the command's process group, or lets it go on after a stop. */
int command_signal(struct command *command, int signal_number) MUST_USE;
int command_continue(struct command *command) MUST_USE;

/* Whether it has exited and what it wrote until then has been delivered (others may still hold its streams).
 */
bool command_is_settled(struct command *command);

/* 126 or 127 for a command that could not be started; 125 where that was not its fault. */
int command_failure_status(const struct command *command);

/* The exit status as the shell would see it: its own, 128 + signal, 124, 126, 127. */
int command_status(const struct command *command);

/* Whether everything that it wrote has been delivered. */
bool command_is_drained(const struct command *command);

/* Closes its streams and console, and frees it; NULL is nothing. What was not delivered is lost. */
void command_free(struct command *command);
