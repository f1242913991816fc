/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Execs that are let through and looked at once more when the new program is there, before it runs: a bounded list of
 * traced threads. It judges nothing. Runs in atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum { EXEC_STOPS_MAX = 512, EXEC_STOP_LIMIT_MS = 30000 };

struct exec_stop {
	pid_t tid;                   /* that asked */
	pid_t tgid;                  /* of its process, whose number it has once the new program is there */
	uint64_t token;              /* of whoever wants to look */
	uint64_t until_ns;           /* CLOCK_MONOTONIC: then it is killed */
	bool is_dying;               /* it was refused: only its end is waited for */
	bool is_stray;               /* it was not the one that was meant: let go as soon as it stops */
};

struct exec_stops {
	int signal_fd;               /* owned: readable when something may have happened; FD_NONE: not yet */
	int timer_fd;                /* owned: readable when something has been held for too long; as above */
	uint64_t limit_ms;           /* how long an exec may take: EXEC_STOP_LIMIT_MS */
	size_t count;
	struct exec_stop execs[EXEC_STOPS_MAX];
};

/*
 * Without descriptors until the first exec is held. At the end who is still held is killed and its end awaited, for two
 * seconds at most, and both fds are closed.
 */
void exec_stop_init(struct exec_stops *held);
void exec_stop_done(struct exec_stops *held);

/*
 * The thread, which waits in a notification, will be held. 0; 1: it is held already, since its last exec failed a
 * moment ago, and *ret_before is the token of that one. -EPERM: something else traces it. -EAGAIN: another thread of
 * its process is executing a program, or too many are held. -ESRCH: it is gone.
 */
int exec_stop_begin(struct exec_stops *held, pid_t tid, uint64_t token, uint64_t *ret_before) MUST_USE;

/*
 * It has turned out that the thread which was seized by exec_stop_begin() need not be the one that was meant. It is let
 * go, whatever it does, and its token is not heard of again.
 */
void exec_stop_abandon(struct exec_stops *held, pid_t tid);

/* To be called once it has its answer: an exec that fails is let go then, before its program goes on. */
void exec_stop_continued(const struct exec_stops *held, pid_t tid);

/* Calls for each that something happened to; all at once, and once for every readiness of either fd. */
struct exec_stop_events {
	/* The program is there. 0: let it run; 1: kill it; negative: kill it, and that is the result. */
	int (*on_image)(void *context, uint64_t token, pid_t pid);
	/* The exec failed, or the process ended before. */
	void (*on_over)(void *context, uint64_t token);
	/* It has been held for too long and was killed: its own program does not go on, and the new one never runs. */
	int (*on_late)(void *context, uint64_t token, pid_t tid, int errnum);
	void *context;
};

/* 0, or the negative value that a callback returned. Never blocks. */
int exec_stop_look(struct exec_stops *held, const struct exec_stop_events *events) MUST_USE;
