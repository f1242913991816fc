/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * clone3(2) and user namespaces: new processes in new namespaces, and their id maps.
 * Knows nothing of jails; used by jail/ in atoll-box.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "os/pidref.h"

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

/*
 * A fork(2) with CLONE_* flags; cgroup_fd >= 0 starts the child in that v2 cgroup. 0 in the child, the pid in the
 * parent with *ret_pidfd (owned), or -errno. No atfork handlers run: the caller has one thread, and the child
 * makes async-signal-safe calls only.
 */
pid_t clone_process(uint64_t flags, int cgroup_fd, int *ret_pidfd) MUST_USE;

/*
 * Has the kernel end the calling process after so long, whatever its parent said about SIGALRM: a child that waits for
 * what somebody inside does must not stay.
 */
void clone_bound_life(unsigned ms);

/*
 * The files of others in a sandbox of root's: an id of the host's, as far as there are so many here, stands for itself
 * plus the first of these. No process ever has one of them, so all sandboxes share them. They lie behind the ids of
 * peer_uid_choose() and before those that systemd sets aside (systemd.io/UIDS-GIDS).
 */
enum { CLONE_OTHERS_FIRST = 0x7f000000, CLONE_OTHERS_COUNT = 0xfe0000 };

enum clone_others {
	CLONE_OTHERS_NONE,
	CLONE_OTHERS_OF_FILES, /* a mount's map: ids of its files, but for uid and gid, become those */
	CLONE_OTHERS_SHOWN,    /* a process's map: inside they look as on the host; the one that is taken as the last */
};

/* Whose file it is on the host that has this id in a layer; id itself where it is none of those. */
static inline uint32_t clone_other_owner(uint32_t id)
{
	return id - CLONE_OTHERS_FIRST < CLONE_OTHERS_COUNT ? id - CLONE_OTHERS_FIRST : id;
}

struct clone_ids {
	uid_t uid, host_uid;   /* inside, outside */
	gid_t gid, host_gid;
	enum clone_others others; /* for root alone */
	int deny_setgroups;    /* needed where the writer is not root */
};

/*
 * Moves the calling process into a new user namespace in which its ids are its own and it has all capabilities: those
 * over files work for files of its own uid and gid alone, so that modes do not keep it out of them. 0; 1 where
 * namespaces are refused (nothing has changed); -errno: the process has no proper ids any more and must end.
 */
int clone_enter_user_namespace(void) MUST_USE;

/* Writes setgroups, uid_map and gid_map of a process in a new user namespace. user_namespaces(7). */
int clone_write_ids(pid_t pid, const struct clone_ids *ids) MUST_USE;

/*
 * An fd of a new user namespace with this map, for idmapped mounts (mount_setattr(2)). Needs root. The namespace is
 * born with a process; *ret_holder (owned) is killed already, and the caller reaps it when it has time to wait, but
 * before it asks for the next.
 */
int clone_user_namespace(const struct clone_ids *ids, struct pidref *ret_holder) MUST_USE;
