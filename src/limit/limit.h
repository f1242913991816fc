/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * RESOURCE MONITOR: one group of processes with limits, however this machine can hold one: cgroup v2
 * (own delegation or a systemd user scope), cgroup v1 controllers (also beside a v2 tree without
 * controllers: hybrid hosts), or rlimits with supervision. Used by atoll-box; knows no policy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

enum limit_backend { LIMIT_RLIMIT, LIMIT_CGROUP_V1, LIMIT_CGROUP_V2, LIMIT_BACKEND_COUNT };

extern const char *const limit_backend_names[LIMIT_BACKEND_COUNT]; /* "rlimit", "v1", "v2" */

/*
 * What holds each limit, for the report, weakest first: "none" (not asked for), "nothing" (asked for, but it cannot
 * be held here), "supervised" (looked at from time to time), "rlimit", "cgroup", "machine" (it has no more CPUs
 * than the limit allows).
 */
enum limit_holder {
	LIMIT_NONE,
	LIMIT_BY_NOTHING,
	LIMIT_SUPERVISED,
	LIMIT_BY_RLIMIT,
	LIMIT_BY_CGROUP,
	LIMIT_BY_MACHINE,
	LIMIT_HOLDER_COUNT,
};
extern const char *const limit_holder_names[LIMIT_HOLDER_COUNT];

struct limit_request {
	const char *session;        /* names the cgroup: atoll-<session>; [a-z0-9], 1 to 32 characters */
	uint64_t memory_bytes;      /* NUM_UNLIMITED: none (all fields) */
	uint64_t millicpus;
	uint64_t processes;         /* tasks; one more is allowed for the sandbox's own PID 1 */
	const char *runtime_dir;    /* XDG_RUNTIME_DIR, where the service manager is asked; NULL: /run/user/UID */
	pid_t companion;            /* a child that stands where the caller does and moves along; 0: none */
	const char *forced_backend; /* test hook: "v1", "v2", "rlimit"; NULL: the best */
	const char *cgroup_root;    /* test hook: a fake /sys/fs/cgroup (os/cgroup.h); NULL: the real one */
	const char *scope_program;  /* test hook: stands in for busctl(1); NULL: the system's */
};

struct limit_usage {
	uint64_t cpu_ns;
	uint64_t memory_bytes;       /* now */
	uint64_t memory_peak_bytes;
	uint64_t processes;          /* tasks now, PID 1 not counted (both) */
	uint64_t processes_peak;
	uint64_t oom_kills;          /* kills by the memory limit so far */
	uint64_t fork_refusals;      /* forks refused by the process limit so far (rlimit: times seen at the limit) */
};

struct limit_group;  /* opaque */

/*
 * Makes the group. On success *ret_group is owned by the caller. Where a limit cannot be held by a
 * cgroup the holder table says so; the caller decides whether the policy allows that.
 * Nothing is left behind on failure.
 */
int limit_group_new(struct limit_group **ret_group, const struct limit_request *request, struct err *err) MUST_USE;

/* What holds the limits, as a whole and each: cgroup v2, v1, or rlimits; for the report, and for what may degrade. */
enum limit_backend limit_group_backend(const struct limit_group *group);
enum limit_holder limit_group_holder_memory(const struct limit_group *group);
enum limit_holder limit_group_holder_processes(const struct limit_group *group);
enum limit_holder limit_group_holder_cpus(const struct limit_group *group);

/* A directory fd for CLONE_INTO_CGROUP (borrowed), or -1: there is none. */
int limit_group_clone_fd(const struct limit_group *group);

/* In the parent, before the clone: opens what limit_group_enter() writes to. */
int limit_group_prepare(struct limit_group *group, struct err *err) MUST_USE;

/*
 * In the child, while it has one thread; async-signal-safe: moves the caller into the v1 groups (clone did it for v2)
 * and sets the rlimits that stand in for missing cgroup limits. Needs the user namespace, no capability.
 */
int limit_group_enter(const struct limit_group *group) MUST_USE;

/*
 * Reads usage and re-arms the event fd; what no cgroup counts is summed over the processes of init_pid's PID
 * namespace (then cpu_ns lacks what children ignored by their parents used between two calls, so compare it
 * with the rusage of init at the end). init_pid 0: all have ended, the two figures of now are 0 and not read.
 * -EIO: a limit was taken away behind our back (a service manager may do so) and could not be set again.
 */
int limit_group_usage(struct limit_group *group, pid_t init_pid, struct limit_usage *ret_usage) MUST_USE;

/*
 * From here on usage counts what is used from now on, as if the group were new; init_pid as below. The kernel keeps the
 * highest memory for good: what was used before is left out unless more is used at once.
 */
int limit_group_begin(struct limit_group *group, pid_t init_pid) MUST_USE;

/*
 * For epoll: an fd that is readable from a hit of a memory or process limit until limit_group_usage(), or -1
 * where the caller must poll that (rlimit backend). Made at the first call, which may come when the child runs;
 * earlier hits are not lost. v1 tells of memory only. Borrowed.
 */
int limit_group_event_fd(struct limit_group *group);

/*
 * Tells all processes to freeze, or thaws them (for snapshots). Freezing takes until each comes to a point where it
 * can: limit_group_wait_frozen(). -EOPNOTSUPP on the rlimit backend, and where this user has no freezer.
 */
int limit_group_freeze(struct limit_group *group, bool frozen) MUST_USE;

/* Back when all are frozen, or -ETIMEDOUT after 2 s. */
int limit_group_wait_frozen(const struct limit_group *group) MUST_USE;

/*
 * Ends every process: cgroup.kill, or SIGKILL to all that any of the groups lists until none is left.
 * -EOPNOTSUPP on the rlimit backend: there the end of PID 1 ends its namespace.
 */
int limit_group_kill(struct limit_group *group) MUST_USE;

/*
 * What a guardian process needs to remove the group when the box was killed: absolute directories,
 * deepest first. Borrowed.
 */
size_t limit_group_directories(const struct limit_group *group, const char *const **ret_paths);

/*
 * Removes the cgroups (waits up to 2 s for the last process to be gone) and frees. NULL is fine. False: one of them
 * stands there still, and somebody else has to remove it (limit_sweep()).
 */
bool limit_group_free(struct limit_group *group);

/*
 * Removes cgroups atoll-<session> (and what still runs in them) beside and above our own group whose session
 * is dead; is_alive(session, context) tells, and must say yes from before limit_group_new(). The number removed;
 * -EBUSY where one of them would not go.
 */
int limit_sweep(const char *cgroup_root, bool (*is_alive)(const char *session, const void *context),
		const void *context);

/*
 * The same wherever in the visible tree they stand (16 levels and 16,384 groups of each hierarchy are looked at): a
 * session that was started from another login has its groups beside ours. For who has time.
 */
int limit_sweep_everywhere(const char *cgroup_root, bool (*is_alive)(const char *session, const void *context),
			   const void *context);

/* For doctor: which backend is used and why a better one is not. */
struct limit_capability {
	enum limit_backend backend;
	enum limit_holder memory, processes, cpus;
	bool systemd_user_scope;     /* the service manager gave a delegated cgroup (tens of ms for each run) */
	char detail[256];            /* "cgroup v2 at /sys/fs/cgroup/… is not writable by uid 1000" */
	char fix[256];               /* the command that improves it, or "" */
};

/*
 * May leave the calling process in a scope of the service manager, as limit_group_new() does: for a child that ends
 * then. The first two are test hooks, as in struct limit_request, which has runtime_dir too.
 */
void limit_probe(const char *cgroup_root, const char *scope_program, const char *runtime_dir,
		 struct limit_capability *ret_capability);
