/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One template that is being built: a sandbox of the service that no client sees, in which one step after the other is
 * a command, with a snapshot behind each. It begins with the last state that an earlier build left of the same steps.
 * The archive of a COPY is the input of a tar inside: nothing outside of the sandbox reads it. Runs in atolld.
 */

#include "service/launcher/build/build.h"

/* Its sandbox lives: it goes on by itself. */
void build_begin(struct build *build, struct sandbox *sandbox);

/* An event of its sandbox: output, or the end of a command. */
void build_event(struct sandbox *sandbox, const atoll_record *event);

/* Its sandbox has ended. Where that was not meant, the build has failed. */
void build_gone(struct sandbox *sandbox, const char *ended);

/* Goes through steps that were done before: what they say of commands is in force. -errno with *err. */
int build_skip(struct build *build, size_t count, struct err *err) MUST_USE;

/* It is ready, with this state: its tags lead to it from now on. */
void build_publish(struct build *build, const struct build_cached *state);

/* It has failed. step: "base", a number or "finalize". */
void build_fail(struct build *build, const char *step, const char *message);
