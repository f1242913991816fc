/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll doctor` finds out: each wall of the boundary is really tried on this machine, in a child that is
 * thrown away, and what is missing is explained with its consequence and the command that gets it.
 * Changes nothing on the host.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limit_capability;

enum finding_state {
	FINDING_OK,
	FINDING_NOTE,      /* neither good nor bad */
	FINDING_WEAK,      /* missing; a policy may allow to go without */
	FINDING_MISSING,   /* missing; no sandbox can be built */
	FINDING_STATE_COUNT,
};

extern const char *const finding_state_names[FINDING_STATE_COUNT];

struct finding {
	enum finding_state state;
	const char *what;          /* static */
	char detail[256];
	char consequence[384];     /* "" unless weak or missing */
	char fix[512];             /* commands; "" when there is none */
};

enum { FINDINGS_MAX = 48 };

struct findings {
	struct finding items[FINDINGS_MAX];
	size_t count;
};

/* Adds one; the rest of it is set by the caller. Never NULL: beyond the maximum the last one is used again. */
struct finding *findings_add(struct findings *findings, enum finding_state state, const char *what,
			     const char *detail, ...)
	__attribute__((format(printf, 4, 5)));

/* The steps of making a jail, in their order. */
enum trial_step {
	TRIAL_CLONE, TRIAL_IDS, TRIAL_PRIVATE, TRIAL_TMPFS, TRIAL_BIND, TRIAL_READ_ONLY, TRIAL_PROC, TRIAL_LOOPBACK,
	TRIAL_OVERLAY, TRIAL_PIVOT, TRIAL_COUNT,
};

enum { TRIAL_NOT_REACHED = -1 };

struct trial {
	int errnums[TRIAL_COUNT];  /* 0: worked; else why not; TRIAL_NOT_REACHED behind a step that all others need */
	uint64_t ns;               /* how long the whole took */
};

/* Makes all namespaces and the mounts of a jail in a child, as the jail does. */
void trial_run(struct trial *ret_trial);

/* Whether a child can be made in these namespaces (CLONE_NEW*): 0 or the errno. */
int trial_namespaces(unsigned long flags);

/* Loads a filter with a listener in a child: 0 or the errno; whether the wake-up can be synchronous. */
int trial_seccomp(bool *ret_sync);

/* What holds limits, asked in a child: a scope that it gets for that ends with it. 0 or the errno. */
int trial_limits(struct limit_capability *ret_capability);

/* Whether the tree at path can be mounted with mapped ids: 0 or the errno. Root only. */
int trial_idmap(const char *path);

/* The groups of checks. */
void doctor_machine(struct findings *findings);       /* kernel, container, WSL, security modules */
void doctor_namespaces(struct findings *findings, const char *programs_dir);
void doctor_kernel(struct findings *findings);        /* Landlock, seccomp, and single system calls */
void doctor_limits(struct findings *findings);
void doctor_service(struct findings *findings);       /* whether this user's atolld runs, and what waits in its pool */
void doctor_undoable(struct findings *findings);      /* whether what was applied in this project can be taken back */
