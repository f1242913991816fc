/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Makes file calls on their callers' behalf: reads the call, finds what it is about, has it judged, does it and
 * answers. Why no such call may go on by itself stands in files.c. Runs in atoll-box.
 */

#include <linux/seccomp.h>

#include "watch/call/events.h"
#include "watch/call/remote.h"
#include "watch/call/reply.h"

struct files;

/* epoll_fd (borrowed) gets what this waits for. reply and options and handlers are borrowed. */
int files_new(struct files **ret_files, int epoll_fd, const struct reply *reply, const struct watch_options *options,
	      const struct watch_handlers *handlers) MUST_USE;

/*
 * For sandboxes whose file calls are not mediated: what comes here all the same, since a filter cannot judge it
 * (directories with set-ID bits), is made with the sandbox's rights, and neither judged nor recorded.
 */
int files_new_unjudged(struct files **ret_files, int epoll_fd, const struct reply *reply,
		       const struct watch_options *options) MUST_USE;

/* Also ends the processes in which calls wait; their callers are answered by nobody. NULL is fine. */
void files_free(struct files *files);

/* Whether a call with this number is one of a file; with options->moves_directories alone: one that moves or links. */
bool files_cover(const struct watch_options *options, int number);

/* Whether the call of this number makes a hard link. */
bool files_makes_link(int number);

/* Whether the call of this number moves or removes a name. */
bool files_removes_name(int number);

/* Whether the call of this number sets permission bits: chmod(2) and its like. */
bool files_changes_mode(int number);

/*
 * Does what the request asks for and answers. Afterwards the sandbox's ids may be in force (os/identity.h), for the
 * next call. 0; 1: it is one that the filter of every sandbox refuses, and is not answered yet; negative: what a
 * handler returned (the call was refused), or -errno of the listener.
 */
int files_serve(struct files *files, struct remote *remote, const struct seccomp_notif *request) MUST_USE;

/* Looks after the callers that wait. As files_serve(). */
int files_look(struct files *files) MUST_USE;

/*
 * The call that waits under this notification is made anew, from its registers on (0 where nobody waits); all that
 * wait are sent back to their callers, which are about to be frozen. Results as files_serve(); -errno of the listener.
 */
int files_retry(struct files *files, struct remote *remote, uint64_t id) MUST_USE;
int files_release_waiting(struct files *files) MUST_USE;
