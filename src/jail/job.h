/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside jail/ only: what the parent prepares before clone and what the child does with it afterwards.
 * The others run beside the parent (os/vmfork.h), each with a job of its own: prepared data and async-signal-safe
 * calls, no allocation, and nothing is written that another of them has.
 */

#include <stdbool.h>
#include <stdint.h>

#include "jail/jail.h"
#include "policy/policy.h"

/* What the process of preparer.c has done: it writes, the parent reads when it has ended. */
struct jail_prepared {
	uint32_t missing;
	uint64_t namespaces;                       /* CLONE_NEW*: the network's */
	int gate[JAIL_GATE_SOCKETS];               /* descriptors of the parent's, FD_NONE */
	struct err failure;
	bool has_failed;
	pid_t first_pid;                           /* the sandbox's first process; 0: not made, below it: -errno */
	int first_fd;
	uint64_t cloned_ns;                        /* CLOCK_MONOTONIC: when that was */
};

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
	const struct jail_mount *masks;            /* those that come behind them, likewise */
	size_t mask_count;
	struct jail_prepared prepared;
};

struct jail_job {
	const struct jail_spec *spec;
	struct jail_spec planned; /* spec with the mounts of its plan; in the child with those of the report */
	struct jail_report *report;
	int child_socket;    /* the child's end: receives "ids" and the trees (run_as_root), sends a struct err */
	int parent_socket;   /* the other end, to be closed in the child */
	int parent_pidfd;    /* readable when the parent has died */
	/* In the child: the detached mounts of the JAIL_FUSE that are still to be attached, in order. */
	int served[JAIL_FUSE_MAX];
	size_t served_count, served_next;
	bool is_late_made;   /* in the parent: spec->calls.late has been called */
};

/* A jail on its way. In the parent's memory; the three processes that build it have a job each. */
struct jail {
	struct jail_job job;      /* the parent's */
	struct jail_job own;      /* of the process of preparer.c */
	struct jail_job first;    /* the child's: written before it is made */
	struct pidref process;    /* of preparer.c; pid 0: not started, or reaped */
	pid_t parent;
};

/*
 * Copies mounts, and all that they point to, into memory that lies at the same address in another process. -E2BIG where
 * size_bytes do not hold them. pack.c
 */
int mounts_pack(const struct jail_mount *mounts, size_t count, void *memory, size_t size_bytes,
		const struct jail_mount **ret_mounts) MUST_USE;

/* In the parent, before the first JAIL_LATE is mounted: spec->calls.late, but once however often. sources.c */
int sources_make_late(struct jail_job *job, struct err *err) MUST_USE;

/* In the child: one byte from the parent, or -EPIPE when that has died or given up. exchange.c */
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
 * The preparer, a process that makes the user and the network namespace early: start, and when what the first process
 * needs stands in jail->first and tell_child() was called once, join, which waits for it and gives the first process
 * (owned). preparer_stop() is for failures before that; afterwards it does nothing. preparer.c
 */
int preparer_start(struct jail *jail, struct err *err) MUST_USE;
int preparer_join(struct jail *jail, struct pidref *ret_first, struct err *err) MUST_USE;
void preparer_stop(struct jail *jail);

/* When it has ended: the error that it has told, or 0. preparer.c */
int preparer_failure(struct jail *jail, struct err *err) MUST_USE;

/*
 * The child's namespaces beside those of clone, with the host name; the network namespace, with loopback and the gate,
 * is made ahead. namespaces.c
 */
int child_namespaces(struct jail_job *job, struct err *err) MUST_USE;
int child_network(struct jail_job *job, struct err *err) MUST_USE;

/*
 * The child's second process, started in the new root, which detaches the old one. It ends by itself, with status 0 if
 * all went well; atoll-init must see that. detacher.c
 */
int detacher_start(const struct jail_job *job, struct err *err) MUST_USE;

/*
 * The network gate, in the network namespace that netlink_fd asks: its addresses, and its sockets, which go into the
 * report. gate.c
 */
int child_gate(const struct jail_job *job, int netlink_fd, struct err *err) MUST_USE;

/*
 * The mounts of all JAIL_FUSE, in the child, whose devices are sent to the parent; and there: spec->calls.serve finds
 * somebody who serves each, or it takes the error that the child tells instead (1). fuse.c
 */
int child_fuse(struct jail_job *job, struct err *err) MUST_USE;
int fuse_receive(struct jail_job *job, struct err *err) MUST_USE;

/* What a child sent as its error, its texts ended, in *err: returns its -errno, -EINVAL for none. exchange.c */
int child_error(struct err *told, struct err *err) MUST_USE;

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
