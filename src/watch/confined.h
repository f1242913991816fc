/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who may have confined itself with Landlock, inside: what the supervisor does in such a caller's place would be
 * outside of the rules that it gave itself, so nothing is done for it. Runs in atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CONFINED_MAX = 256 };

struct confined_process {
	pid_t pid;
	uint64_t started;            /* clock ticks since the machine was */
};

struct confined {
	size_t count;
	bool is_full;                /* there were more, or whose descendant somebody is cannot be told */
	uint64_t first;              /* when the first of all of them had started; UINT64_MAX: there was none */
	struct confined_process processes[CONFINED_MAX];
};

/* Nobody is known to have confined himself; nothing of it needs to be freed. */
void confined_init(struct confined *confined);

/* tid is about to; its process and all that it starts are confined from now on. */
void confined_add(struct confined *confined, pid_t tid);

/* A process is about to become the parent of others' orphans: who started them is not to be seen any more. */
void confined_add_subreaper(struct confined *confined);

/*
 * Whether tid may be confined: it or one that it descends from is among them, or nobody can tell, since whoever started
 * it has ended. init_pid: the sandbox's first process.
 */
bool confined_may_have(const struct confined *confined, pid_t tid, pid_t init_pid);
