/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of atoll-init: the wire to the box and the table of running commands. One process, no threads,
 * no heap beyond the message in hand.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "wire/init.h"

enum { COMMAND_MAX = 256 };

struct command {
	uint32_t id;
	bool is_used;
	bool is_started;         /* pid is known */
	bool is_last;            /* INIT_SPAWN_LAST */
	pid_t pid;               /* also the number of its process group */
	pid_t monitor;           /* on a terminal: its parent; 0: init is */
	int master;              /* on a terminal: until INIT_STARTED takes it to the box */
	int waiting_signal;      /* came before the pid was known; 0: none */
};

struct init {
	int wire_fd, signal_fd;
	int events[2];           /* from the monitors; FD_NONE before the first terminal */
	struct buf scratch;      /* the message in hand */
	bool is_scratch_large;   /* it used many pages, which go back */
	bool is_over;            /* the last command ran and has ended, and the box knows */
	bool is_reaping;         /* commands_reap() said that there may be more */
	size_t command_top;      /* used slots are below: an idle table touches no page */
	struct command commands[COMMAND_MAX];
};

/* commands.c: the table and what is told about it. All return 0 or -errno (the wire is broken: init ends). */

/* frame_rule handlers of INIT_SPAWN, INIT_SIGNAL and INIT_CONTINUE; context is the struct init. */
int commands_spawn(void *context, struct frame *frame, int *fds, size_t fd_count) MUST_USE;
int commands_signal(void *context, struct frame *frame, int *fds, size_t fd_count) MUST_USE;
int commands_continue(void *context, struct frame *frame, int *fds, size_t fd_count) MUST_USE;

/* Reads what the monitors tell, without blocking. */
int commands_read_monitors(struct init *init) MUST_USE;

/*
 * Reaps children that have ended, the orphans of the sandbox included, and reports commands. 1: there may be more, but
 * a sandbox that forks faster than this reaps must not keep init from its wire.
 */
int commands_reap(struct init *init) MUST_USE;

/* tell.c: one message to the box each. */
int tell_ready(const struct init *init, int listener_fd, int root_fd, int rules_fd) MUST_USE;
int tell_started(const struct init *init, uint32_t id, pid_t pid, int master_fd) MUST_USE;
int tell_failed(const struct init *init, uint32_t id, int errnum, enum init_failure failure) MUST_USE;
int tell_stopped(const struct init *init, uint32_t id, int signal_number) MUST_USE;
int tell_exited(const struct init *init, const struct init_exit *event) MUST_USE;
int tell_broken(const struct init *init, int errnum, const char *wall) MUST_USE;
