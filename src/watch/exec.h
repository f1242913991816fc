/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies what an execve or execveat asks for out of the caller's memory, bounded, for the record. It judges
 * nothing. Runs in atoll-box.
 */

#include <linux/seccomp.h>

#include "watch/call/events.h"
#include "watch/call/remote.h"

struct exec_text {
	char bytes[WATCH_TEXT_MAX];
	const char *argv[WATCH_ARGV_MAX + 1];
};

/*
 * Fills *ret_event, which borrows text. Whatever cannot be read is left out: an exe of "" says that nothing
 * could be. The caller checks afterwards that the notification is still alive, so that the pid was.
 */
void exec_read(struct remote *remote, const struct seccomp_notif *request, struct exec_text *text,
	       struct watch_exec *ret_event);
