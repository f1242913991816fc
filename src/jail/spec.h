/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a jail is to look like: a plain value, made by build/mount-plan.c from a policy, checked by
 * jail_spec_check(), built by jail_start(). It owns nothing.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

enum jail_mount_kind {
	JAIL_BIND,        /* host path -> target, recursive */
	JAIL_TMPFS,       /* empty private directory; size_bytes, inodes */
	JAIL_MASK,        /* target (inside a bind): an empty directory, or a file that cannot be opened */
	JAIL_FILE,        /* a small read-only file with this content (/etc/passwd, limits.md …) */
	JAIL_DIRECTORY,   /* an empty read-only directory in the root tmpfs */
	JAIL_SYMLINK,     /* target -> content */
	JAIL_SOCKET,      /* the name of a unix socket on which nobody listens yet */
	JAIL_PROC,        /* /proc of the own PID namespace, dangerous entries masked */
	JAIL_DEV,         /* the minimal /dev: null zero full random urandom tty ptmx pts shm mqueue fd stdin … */
	JAIL_DEVICE,      /* one more device node, bound from the host */
	JAIL_OVERLAY,     /* host directory -> target, copy-on-write: what is written goes into layers->live */
	JAIL_FUSE,        /* the same, made by a program outside: see jail_spec.serve */
	JAIL_MOUNT_KIND_COUNT,
};

enum {
	JAIL_RDONLY = 1 << 0,
	JAIL_NOEXEC = 1 << 1,     /* of JAIL_DEV: /dev/shm */
	JAIL_OPTIONAL = 1 << 2,   /* skipped when the source does not exist */
	JAIL_OWNED = 1 << 3,      /* as root: idmap so that the owner of the tree is the sandbox's user */
	JAIL_AGENT_APPEND = 1 << 4, /* JAIL_FILE that the box (not the agent) grows: denials.jsonl; bound from source */
	JAIL_PLANTED = 1 << 6,    /* JAIL_FILE that looks like somebody's own: no mount where that can be, mode 0600 */
	JAIL_LAYERED = 1 << 7,    /* JAIL_BIND, read-only: masks in it are absent where that can be had */
	JAIL_SPREAD = 1 << 8,     /* JAIL_BIND, read-only: files have a place in it, and what is mounted in it stays */
	JAIL_LATE = 1 << 5,       /* source or layers are there only when jail_spec.late has made them */
};

/* Sealed layers, and one of whiteouts. Their descriptors make one mount option of at most 256 bytes: fsconfig(2). */
enum { JAIL_LAYERS_MAX = 66, JAIL_FUSE_MAX = 64 };

/* What lies on the host directory of a staged tree; the sandbox must have no way to these but the overlay. */
struct jail_layers {
	const char *live;           /* absolute host path of the directory that holds upper and work (host_uid's) */
	const char *const *between; /* absolute host directories between the two, top first */
	size_t count;
	/* What of the source holds the layers themselves: a path relative to it, absent inside. NULL: nothing does. */
	const char *hidden;
};

struct jail_mount {
	enum jail_mount_kind kind;
	uint32_t flags;
	const char *target;       /* absolute, normalised, inside the new root */
	const char *source;       /* JAIL_BIND, JAIL_DEVICE, JAIL_OVERLAY, JAIL_FUSE: absolute host path */
	const struct jail_layers *layers; /* JAIL_OVERLAY, JAIL_FUSE */
	/*
	 * The first bytes of source, up to a component's end, in which links are followed; in what comes behind them
	 * the sandbox could have planted one, so there a link is an error. 0: links are followed everywhere.
	 */
	size_t source_trusted;
	const void *content;      /* JAIL_FILE bytes, JAIL_SYMLINK text */
	size_t content_size;
	uint64_t size_bytes;      /* JAIL_TMPFS */
	uint64_t inodes;
	const char *rule;         /* the policy rule that it comes from, for messages */
};

struct jail_rlimit {
	int resource;             /* RLIMIT_* */
	struct rlimit value;
};

enum jail_seccomp_profile {
	JAIL_SECCOMP_STRICT,
	JAIL_SECCOMP_NESTED,              /* own user namespaces allowed */
	JAIL_SECCOMP_STRICT_NOEXEC,       /* no memory files that could be executed */
	JAIL_SECCOMP_NESTED_NOEXEC,
	JAIL_SECCOMP_MOUNTS,              /* own user namespaces, with mounts of their own; no file rule of Landlock */
	JAIL_SECCOMP_BASES,
	/* Each of these again for each depth of mediation: jail_seccomp_profile(). */
	JAIL_SECCOMP_COUNT = 4 * JAIL_SECCOMP_BASES,
};

/* Which file calls the supervisor makes in the caller's place. */
enum jail_mediation {
	JAIL_MEDIATE_NOTHING,
	JAIL_MEDIATE_MOVES,               /* renames of directories, and hard links: watch/file/move.c */
	JAIL_MEDIATE_WRITES,              /* what changes files */
	JAIL_MEDIATE_ALL,                 /* and what reads them */
};

/* The sockets of the network gate, made in the sandbox's network namespace and used outside. */
enum jail_gate_socket {
	JAIL_GATE_DOOR4,          /* TCP: where the supervisor connects callers to */
	JAIL_GATE_DNS_UDP,
	JAIL_GATE_DNS_TCP,
	JAIL_GATE_DOOR6,          /* not there where the kernel runs without IPv6 */
	JAIL_GATE_SOCKETS,
};

/*
 * Called in the parent, so that its own work and the child's go on side by side; a failure ends the start. NULL: the
 * mounts are there already, and nothing is to be done.
 */
struct jail_calls {
	/* While the child makes its namespaces, once: gives the mounts (borrowed until jail_start() ends). */
	int (*plan)(void *context, const struct jail_mount **ret_mounts, size_t *ret_count, struct err *err);
	/* While the child mounts, once: makes what the JAIL_LATE among them take from the host. */
	int (*late)(void *context, struct err *err);
	/* Then, once: gives more of JAIL_MASK, to be mounted behind all others (borrowed as well). */
	int (*masks)(void *context, const struct jail_mount **ret_masks, size_t *ret_count, struct err *err);
	/* Meanwhile, once: all that must be there before anything runs inside. */
	int (*meanwhile)(void *context, struct err *err);
	/*
	 * With the device (fuse(4), borrowed) of each JAIL_FUSE in order, before anything is mounted: starts the
	 * program that serves it. Until then, and when that has ended, the tree cannot be used. NULL: there is no such
	 * mount.
	 */
	int (*serve)(void *context, const struct jail_mount *mount, int device_fd, struct err *err);
	void *context;
};

struct jail_spec {
	/* Ordered: parents before what lies inside them. Where plan is set, it says what they are. */
	const struct jail_mount *mounts;
	size_t mount_count;
	const char *hostname;
	bool share_network;                /* network.host */
	/* Files may come into the view later, with the right to be read that the root directory has then. */
	bool takes_grants;
	/* Where the JAIL_GATE_SOCKETS go, owned by the caller, FD_NONE for one that is not there; NULL: no gate. */
	int *gate_sockets;
	bool run_as_root;                  /* the caller has uid 0: an unprivileged host range of its own */
	uid_t uid;                         /* inside; as a user also outside */
	gid_t gid;
	uid_t host_uid;                    /* run_as_root: what uid and gid are on the host */
	gid_t host_gid;
	enum jail_seccomp_profile seccomp;
	const struct jail_rlimit *rlimits;
	size_t rlimit_count;
	int cgroup_fd;                     /* for CLONE_INTO_CGROUP; -1: none */
	struct jail_calls calls;           /* into the caller */
	/* Called in the child, async-signal-safe: limit_group_apply_rlimits. */
	int (*child_limits)(const void *context);
	void *limits;                      /* its context */
	int init_fd;                       /* O_PATH or O_RDONLY fd of atoll-init; borrowed */
	int wire_fd;                       /* the child's end of the SEQPACKET pair; becomes fd 3 of init; borrowed */
	uint32_t degrade;                  /* bits 1u << enum wall (policy/policy.h) that may be missing */
	const char *broken_wall;           /* test hook (ATOLL_TEST_BREAK): this wall fails; NULL: none */
};

enum { JAIL_OWN_DEVICES_MAX = 64 }; /* of more, those that come last are left out: their sockets are refused */

/* What was built, for the report. */
struct jail_enforcement {
	bool user, mount, pid, net, ipc, uts, cgroup;
	int landlock_abi;                  /* 0: none */
	const char *seccomp;               /* of jail_seccomp_names */
	bool speculation, core_sched;
	uint32_t missing;                  /* bits of walls that degrade allowed to be missing */
	uint64_t stage_ns[8];              /* where the time went: see jail_stage_names */
	/* File systems that were made for it, so that a unix socket on them can only be its own. */
	dev_t own_devices[JAIL_OWN_DEVICES_MAX];
	size_t own_device_count;
};

enum jail_stage {
	JAIL_STAGE_CLONE,
	JAIL_STAGE_NAMESPACES,
	JAIL_STAGE_IDS,
	JAIL_STAGE_MOUNTS,
	JAIL_STAGE_PIVOT,
	JAIL_STAGE_LANDLOCK,
	JAIL_STAGE_EXEC,
	JAIL_STAGE_COUNT,
};
extern const char *const jail_stage_names[JAIL_STAGE_COUNT];
