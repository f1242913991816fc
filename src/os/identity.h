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
 * Takes the effective ids uid and gid, other than root's (setresuid(2), raw), which also takes away every effective
 * capability but CAP_SYS_PTRACE; file descriptors that are opened now carry these rights for ever (file_ns_capable()).
 * Nothing happens where they are ours already. -errno: they are our own.
 */
int identity_take(uid_t uid, gid_t gid) MUST_USE;

/* Becomes itself again; a failure ends the process, because it would go on as somebody else. */
void identity_return(void);
