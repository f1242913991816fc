/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside jail/ only: what the parent prepares before clone and what the child does with it afterwards.
 * The child and its second process run beside the parent (os/beside.h), each with a job of its own: prepared data and
 * async-signal-safe calls, no allocation, and nothing is written that another of the three has.
 */

#include <stdbool.h>
#include <stdint.h>

#include "jail/jail.h"
#include "policy/policy.h"

/* In memory that both share; the child fills it in, the parent reads it once the child has executed init or failed. */
struct jail_report {
	uint64_t stage_end_ns[JAIL_STAGE_COUNT];   /* CLOCK_MONOTONIC */
	uint32_t missing;
	uint64_t namespaces;                       /* CLONE_NEW* that the child made */
	int landlock_abi;
	bool speculation, core_sched;
	bool is_complete;                          /* all walls stand; only the exec was left */
	dev_t own_devices[JAIL_OWN_DEVICES_MAX];   /* as in jail_enforcement */
	size_t own_device_count;
	const struct jail_mount *mounts;           /* the spec's, in the shared memory behind this (pack.c) */
	size_t mount_count;
	struct {                                   /* what the second process has done: second.c */
		uint32_t missing;
		uint64_t namespaces;
	} second;
};

struct jail_job {
	const struct jail_spec *spec;
	struct jail_spec planned; /* spec with the mounts of its plan; in the child with those of the report */
	struct jail_report *report;
	int child_socket;    /* the child's end: receives "ids" and the trees (run_as_root), sends a struct err */
	int parent_socket;   /* the other end, to be closed in the child */
	int parent_pidfd;    /* readable when the parent has died */
	int second_socket;   /* in the child: to its second process */
	/* In the child: the detached mounts of the JAIL_FUSE that are still to be attached, in order. */
	int served[JAIL_FUSE_MAX];
	size_t served_count, served_next;
	bool is_late_made;   /* in the parent: spec->late has been called */
	bool has_gate;       /* in the parent: the gate's sockets have come */
};

/*
 * Copies mounts, and all that they point to, into memory that lies at the same address in another process. -E2BIG where
 * size_bytes do not hold them. pack.c
 */
int mounts_pack(const struct jail_mount *mounts, size_t count, void *memory, size_t size_bytes,
		const struct jail_mount **ret_mounts) MUST_USE;

/* In the parent, before the first JAIL_LATE is mounted: spec->late, once, however often this is called. start.c */
int late_make(struct jail_job *job, struct err *err) MUST_USE;

/* In the child: one byte from the parent, or -EPIPE when that has died or given up. child.c */
int child_await(const struct jail_job *job) MUST_USE;

/* Builds the jail around the calling process and executes init. Returns only on failure. start.c */
int child_run(struct jail_job *job, struct err *err) MUST_USE;

/*
 * Whether a wall must be reported as failing (the test hook), and what becomes of one that cannot be built: 0 and a
 * bit in *missing when the policy lets it degrade, else the error. wall.c
 */
bool jail_wall_is_broken(const struct jail_spec *spec, enum wall wall);
int jail_wall_failed(const struct jail_spec *spec, enum wall wall, int errnum, uint32_t *missing, struct err *err,
		     const char *what);

/* The same for a wall without which nothing of the jail holds: no policy can let it be missing. Always an error. */
int jail_wall_demanded(const struct jail_spec *spec, enum wall wall, int errnum, struct err *err, const char *what);

/*
 * The child's namespaces beside those of clone, with the host name; the network namespace, with loopback and the gate,
 * is made by the second process. namespaces.c
 */
int child_namespaces(struct jail_job *job, struct err *err) MUST_USE;
int child_network(struct jail_job *job, struct err *err) MUST_USE;

/*
 * The child's second process: started in the child's mount namespace, it makes the network namespace, which the child
 * enters later, and detaches the old root when it is released. It ends by itself, with status 0 if all went well;
 * atoll-init must see that. second.c
 */
int second_start(struct jail_job *job, struct err *err) MUST_USE;
int second_join_network(struct jail_job *job, struct err *err) MUST_USE;
int second_release_root(const struct jail_job *job, struct err *err) MUST_USE;

/*
 * The network gate, in the child's network namespace: its addresses, and its sockets, which are sent to the parent; and
 * there: takes them, or the error that the child tells instead. gate.c
 */
int child_gate(const struct jail_job *job, struct err *err) MUST_USE;
int gate_receive(struct jail_job *job, struct err *err) MUST_USE;

/* Whether a message with these descriptors is the one that gate_receive() waits for: then it has taken them. gate.c */
bool gate_take(struct jail_job *job, const int *fds, size_t count);

/*
 * The mounts of all JAIL_FUSE, in the child, whose devices are sent to the parent; and there: has spec->serve find
 * somebody who serves each, or takes the error that the child tells instead (1). fuse.c
 */
int child_fuse(struct jail_job *job, struct err *err) MUST_USE;
int fuse_receive(struct jail_job *job, struct err *err) MUST_USE;

/* What the child told as its error, cleaned. start.c */
int told_error(struct err *told, struct err *err) MUST_USE;

/* The new root with all its mounts, then pivot_root. ruleset_fd (FD_NONE: none) gets a rule for each. mounts.c */
int child_mounts(struct jail_job *job, int ruleset_fd, int abi, struct err *err) MUST_USE;

/*
 * run_as_root: the parent makes the tree of every JAIL_BIND and JAIL_DEVICE, and of all that a JAIL_OVERLAY consists
 * of, and sends them in order. 1: the child has gone and has an error to tell. sources.c
 */
int sources_send(struct jail_job *job, struct err *err) MUST_USE;

/* The next of these trees, in the child; -ENOENT where an optional source does not exist. sources.c */
int source_receive(const struct jail_job *job, struct err *err) MUST_USE;

/*
 * What a JAIL_OVERLAY consists of, in the order in which the trees are sent: 0 is the host's directory, 1 the live
 * layer, then those between. *ret_part borrows from mount. False behind the last one. sources.c
 */
bool source_part(const struct jail_mount *mount, size_t index, struct jail_mount *ret_part);

/* O_PATH fd of the source, in the caller's own mount namespace; -ENOENT as above. sources.c */
int source_open(const struct jail_mount *mount, struct err *err) MUST_USE;

/* The detached tree of one JAIL_BIND or JAIL_DEVICE with its attributes; -ENOENT as above. sources.c */
int source_tree(const struct jail_mount *mount, struct err *err) MUST_USE;
