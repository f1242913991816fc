/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A process tree under a limit group, as atoll-box starts one, and hostile things that it may do. Run by the
 * tests on the real machine only; the acts run in the guest and end with it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "limit/limit.h"

/* Written by guests, read by the test: shared memory that is not charged to the group. */
struct guest_board {
	volatile uint64_t counter;
	volatile uint64_t started;   /* processes that could be made */
	volatile uint64_t refused;   /* forks that failed with EAGAIN */
	volatile int ready;
};
extern struct guest_board *board;

void board_reset(void);

enum guest_namespaces {
	GUEST_NO_NAMESPACES,
	GUEST_USER_PID,       /* user, PID and mount namespace; /proc of the host stays visible */
	GUEST_USER_PID_PROC,  /* and its own /proc, as the jail mounts it, and a tmpfs at /mnt */
};

/* Starts act(argument) as the first process of the group. */
pid_t guest_start(struct limit_group *group, enum guest_namespaces namespaces, void (*act)(size_t), size_t argument);

/* Waits for the first process: its wait status. */
int guest_wait(pid_t pid);

/* SIGKILL, and wait. */
void guest_end(pid_t pid);

/* Waits until *value is at least wanted, at most 10 s: whether it came. */
bool board_wait(const volatile uint64_t *value, uint64_t wanted);

void act_anonymous(size_t bytes);      /* touches that much memory, then stays */
void act_memfd(size_t bytes);          /* fills a memfd, never mapped, then stays */
void act_shared(size_t bytes);         /* shared anonymous memory */
void act_tmpfs(size_t bytes);          /* a file in /mnt */
void act_page_tables(size_t bytes);    /* touches one page in every 2 MiB until page tables use that much */
void act_fork(size_t count);           /* tries that many children that stay */
void act_fork_bomb(size_t seconds);    /* every process forks for that long */
void act_burn(size_t milliseconds);    /* CPU time by daemons: double fork, setsid, stopped and continued */
void act_burn_ignored(size_t milliseconds); /* by children of a process that ignores SIGCHLD */
void act_spin(size_t milliseconds);    /* wall time */
void act_count(size_t unused);         /* board->counter goes up until killed */
void act_daemons(size_t count);        /* leaves that many orphans in their own sessions, then ends */
