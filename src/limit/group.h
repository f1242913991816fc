/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of limit/ share: the group and its directories, one for each hierarchy in use.
 * Not for anyone else.
 */

#include "limit/limit.h"
#include "os/cgroup.h"

enum {
	GROUP_NAME_SIZE = 48,      /* "atoll-" and the session */
	GROUP_PATHS_MAX = CGROUP_KIND_COUNT + 2,
};

#define GROUP_PREFIX "atoll-"
#define GROUP_SESSION_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789"

struct limit_dir {
	char *path;   /* owned, absolute; NULL: no group in this hierarchy */
	int fd;       /* owned, O_PATH */
	int tasks_fd; /* owned; v1, once prepared: where a child enters */
	bool is_made; /* ours to remove (the freezer's is made when it is needed) */
};

/* What wakes the caller when a limit is hit; all owned, FD_NONE until limit_group_event_fd(). */
struct limit_events {
	int epoll_fd, memory_fd, pids_fd, oom_fd;
	bool is_tried;
};

struct limit_group {
	char name[GROUP_NAME_SIZE];
	struct limit_request request; /* as asked for; its strings are borrowed */
	enum limit_backend backend;
	enum limit_holder memory, tasks, cpus;
	struct limit_dir dirs[CGROUP_KIND_COUNT];
	unsigned v2_controllers;    /* bits 1u << CGROUP_MEMORY, _PIDS, _CPU: what our v2 group has */
	unsigned v2_set;            /* those of them whose limits we have set */
	bool is_scoped;             /* we are in a scope that was made for it */
	char detail[256];           /* why nothing better was had, for doctor */
	const char *paths[GROUP_PATHS_MAX]; /* for limit_group_directories() */
	struct limit_events events;
	uint64_t memory_peak, processes_peak; /* where the kernel keeps none */
	uint64_t cpu_last_ns, cpu_lost_ns;    /* of the walk over /proc */
	uint64_t refusals;
	struct limit_usage before; /* what was used when counting began: limit_group_begin() */
};

static inline unsigned kind_bit(enum cgroup_kind kind)
{
	return 1u << kind;
}

/* Whether no better can be had (the hierarchy is foreign, read-only or full) rather than something being broken. */
bool group_is_refusal(int error);

/* Makes parent/name and opens it as group->dirs[kind]. */
int group_make_dir(struct limit_group *group, enum cgroup_kind kind, const char *parent) MUST_USE;

/* Removes group->dirs[kind] again if it was made; waits until deadline_ns (CLOCK_MONOTONIC) while it is busy. */
bool group_remove_dir(struct limit_group *group, enum cgroup_kind kind, uint64_t deadline_ns);

/* rmdir with short waits until the deadline. 0, or the last -errno. */
int group_rmdir(const char *path, uint64_t deadline_ns) MUST_USE;

/* SIGKILL to all in the group: cgroup.kill, or rounds of kill(2) until it is empty (-ETIMEDOUT after 2 s). */
int group_kill_dir(int dir_fd) MUST_USE;

/* Remembers the first reason why a better way was not open. */
void group_note(struct limit_group *group, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The v2 tree: makes the group in the nearest place that can have the most of the wanted controllers (bits),
 * and sets its limits. 0 (with group->v2_controllers saying what it got) also when there is no place at all.
 */
int v2_make(struct limit_group *group, struct cgroup_layout *layout, unsigned wanted) MUST_USE;

/* Sets the limits of these controllers; the ones that succeeded are in group->v2_set. */
int v2_set_limits(struct limit_group *group, unsigned controllers) MUST_USE;

/* Gives back a controller that someone took from the parent, and the limits with it. -EIO. */
int v2_restore(struct limit_group *group) MUST_USE;

/* The v1 hierarchies for the limits that the v2 tree does not hold. */
int v1_make(struct limit_group *group, struct cgroup_layout *layout) MUST_USE;
int v1_freeze(struct limit_group *group, bool frozen) MUST_USE;
int v1_wait_frozen(const struct limit_group *group) MUST_USE;

/* Quota and period in µs (cpu.max) of thousandths of a processor. The period is 0.1 s, 1 s for less than ten. */
void cpu_quota(uint64_t millicpus, uint64_t *ret_quota_us, uint64_t *ret_period_us);

/*
 * Limits what a group may swap, also where there is nothing to swap to yet: swapon(8) may come while it lives, and then
 * the limit of memory would leak. 0 too where the kernel cannot and no swap space exists.
 */
int cgroup_limit_swap(int fd, const char *name, uint64_t bytes) MUST_USE;

/* Sets the rlimits that stand in for cgroups; async-signal-safe, in the child. */
int rlimits_apply(const struct limit_group *group) MUST_USE;

/* What the processes limit is held by without a cgroup. */
enum limit_holder rlimit_tasks_holder(void);

/*
 * systemd's user instance makes a delegated scope and moves us into it. 0, 1: it could not (noted in
 * group->detail). Costs tens of ms: a program is run, and the bus, the manager and the kernel take their turns.
 */
int scope_enter(struct limit_group *group) MUST_USE;

/* Whether this user has a service manager to ask. */
bool scope_is_possible(const struct limit_group *group);

/* What no cgroup counts: bits CGROUP_MEMORY, _PIDS, _CPUACCT say what to fill in. */
int walk_usage(struct limit_group *group, pid_t init_pid, unsigned missing, struct limit_usage *usage) MUST_USE;
