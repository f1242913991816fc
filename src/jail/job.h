/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside jail/ only: what the parent prepares before clone and what the child does with it afterwards.
 * The child runs in a copy of the parent's memory: prepared data and async-signal-safe calls, no allocation.
 */

#include <stdbool.h>
#include <stdint.h>

#include "jail/jail.h"
#include "policy/policy.h"

/* In memory that both share; the child fills it in, the parent reads it once the child has executed init or failed. */
struct jail_report {
	uint64_t stage_end_ns[JAIL_STAGE_COUNT];   /* CLOCK_MONOTONIC */
	uint32_t missing;
	int landlock_abi;
	bool speculation, core_sched;
	bool is_complete;                          /* all walls stand; only the exec was left */
};

struct jail_job {
	const struct jail_spec *spec;
	struct jail_report *report;
	int *trees;          /* run_as_root: the detached tree of each mount (FD_NONE: none); NULL otherwise */
	int child_socket;    /* the child's end: receives one byte each for "ids" and "go", sends a struct err */
	int parent_socket;   /* the other end, to be closed in the child */
	int parent_pidfd;    /* readable when the parent has died */
	uint64_t namespaces; /* CLONE_NEW* that were asked for */
};

/* Builds the jail around the calling process and executes init. Returns only on failure. start.c */
int child_run(struct jail_job *job, struct err *err) MUST_USE;

/*
 * Whether a wall must be reported as failing (the test hook), and what becomes of one that cannot be built: 0 and a
 * bit in *missing when the policy lets it degrade, else the error. wall.c
 */
bool jail_wall_is_broken(const struct jail_spec *spec, enum wall wall);
int jail_wall_failed(const struct jail_spec *spec, enum wall wall, int errnum, uint32_t *missing, struct err *err,
		     const char *what);

/* The new root with all its mounts, then pivot_root. ruleset_fd (FD_NONE: none) gets a rule for each. mounts.c */
int child_mounts(struct jail_job *job, int ruleset_fd, int abi, struct err *err) MUST_USE;

/*
 * Where the root of the host's view is read-only to the child (run_as_root), the parent opens every source and makes
 * the detached trees. *ret_trees is owned: sources_free(). sources.c
 */
int sources_open(const struct jail_spec *spec, int **ret_trees, struct err *err) MUST_USE;
void sources_free(int *trees, size_t count);

/*
 * A detached tree of one JAIL_BIND or JAIL_DEVICE with its attributes; idmap_fd >= 0: owned by the sandbox's user.
 * -ENOENT without an error when the source does not exist and may be missing. sources.c
 */
int source_tree(const struct jail_mount *mount, int idmap_fd, struct err *err) MUST_USE;
