/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For a moment the rights of somebody else: file system calls that root makes on behalf of an unprivileged user are
 * then judged by the kernel as that user's. For programs of one thread.
 */

#include <sys/types.h>

#include "base/cleanup.h"

/*
 * Gives up root's supplementary groups for good: they would count for every file. Nothing happens for others; root
 * itself needs none.
 */
int identity_drop_groups(void) MUST_USE;

/*
 * For good, for the calling process and all that come from it: no capability in any set, and for root also no group
 * and the ids uid and gid of this number (not 0) in place of its own; others keep theirs. The bounding set of who
 * may not empty it stays: it is worth nothing behind caps_no_new_privs(). -errno: the caller ends, it may be half done.
 */
int identity_leave(uid_t uid) MUST_USE;

/*
 * Takes the effective ids uid and gid, other than root's (setresuid(2), raw), which also takes away every effective
 * capability but CAP_SYS_PTRACE; file descriptors that are opened now carry these rights for ever (file_ns_capable()).
 * Nothing happens where they are ours already. -errno: they are our own.
 */
int identity_take(uid_t uid, gid_t gid) MUST_USE;

/* Becomes itself again; a failure ends the process, because it would go on as somebody else. */
void identity_return(void);

/*
 * The same for what is made in file systems alone (setfsuid(2), setfsgid(2)): new entries of a mount of the sandbox's
 * must belong to an id that its user namespace has, and root's own is none of these (EOVERFLOW). The capabilities over
 * files are gone until identity_return_files(). For root; others call it for nothing.
 */
void identity_take_files(uid_t uid, gid_t gid);
void identity_return_files(void);
