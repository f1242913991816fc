/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs with mounts of their own (exec.namespaces: mounts): new file systems are mounted for them, of a few types
 * and with bounded options, in their own mount namespace and with no more rights than they have there. Binds, unmounts
 * and pivots they make themselves. Runs in atoll-box.
 */

#include <linux/seccomp.h>
#include <stdbool.h>

#include "watch/call/events.h"
#include "watch/call/remote.h"
#include "watch/call/reply.h"

struct own_mounts {
	const struct watch_options *options; /* borrowed */
	dev_t device;                        /* of the sandbox's mount namespace; 0: not known yet */
	ino_t inode;
	bool is_ended;                       /* a mount was held up: nothing more is mounted */
};

/* Nothing is asked of the kernel. options is borrowed for as long as own is used. */
void own_mounts_init(struct own_mounts *own, const struct watch_options *options);

/*
 * Whether the calling thread is in another mount namespace than the sandbox's first process. It cannot change that
 * while it waits for an answer. True also where nobody can tell.
 */
bool own_mounts_is_elsewhere(struct own_mounts *own, pid_t pid);

/*
 * Serves a mount(2) of a new file system. 1: it is refused like any other call, nothing was answered; else as
 * reply_error().
 */
int own_mounts_serve(struct own_mounts *own, const struct reply *reply, struct remote *remote,
		     const struct seccomp_notif *request) MUST_USE;

/*
 * Whether fd lies on a tmpfs that own_mounts_serve() mounted, in the mount namespace of the thread pid. Neither
 * allocates nor changes anything of this process.
 */
bool own_mounts_has(const struct watch_options *options, pid_t pid, int fd);
