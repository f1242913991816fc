/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A child under a real filter with a listener, for the tests of the supervisor: it runs one function and ends.
 * The test is its supervisor.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "watch/watch.h"

struct guest {
	pid_t pid;
	int listener_fd;     /* until the watch takes it */
	int start_fd;        /* closed: the child begins */
};

/* What the supervisor saw. */
struct seen {
	unsigned execs, refusals, networks;
	char exe[4096];
	char first[256], last[256];     /* arguments of the last exec */
	size_t argc, left_out;
	char syscall[32];
	unsigned long argument;         /* the first of the last refused call */
	struct watch_network network;   /* the last */
	int errnum;
	int fail_with;                  /* what the handlers return */
	pid_t kill_pid;                 /* killed inside the handler */
};

/* The child notifies for these calls, runs the function when told, and exits with its result. */
struct guest guest_start(const int *calls, size_t count, int (*run)(void *argument), void *argument);

extern const struct watch_handlers seen_handlers;

/* For the next guests; no ids: those of the test. */
extern struct watch_options guest_options;

/* Their on_gate and on_gated; NULL: there is no gate. */
extern int (*guest_on_gate)(void *context, const struct watch_network *event);
extern int (*guest_on_gated)(void *context, pid_t pid, const struct sockaddr *source, const struct sockaddr *target);

/* Where guest_options has file calls mediated. */
extern int (*guest_on_file)(void *context, const struct watch_file *event);
extern int (*guest_on_file_done)(void *context, const struct watch_file *event);
extern void (*guest_on_file_gone)(void *context, uint64_t id);

/* Supervises until the child has ended. Its wait status; *ret_served is the last negative of watch_serve, or 0. */
int guest_supervise(struct guest *guest, bool network_is_empty, struct seen *seen, int *ret_served);

/* All of it: start, supervise, exit code. */
int guest_run(const int *calls, size_t count, int (*run)(void *argument), void *argument, struct seen *seen);
