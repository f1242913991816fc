/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The steps of a sandbox's life, which box.c puts in order: how it comes to be (start*.c), what its log says of the
 * whole (events.c), and the loop (serve.c). Negative: *box->run.err says why, or the log failed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/describe/describe.h"
#include "session/review-log.h"

struct box;
struct command;
struct err;
struct jail_rlimit;
struct limit_group;

/* Guardian, jail begun, control socket and limits; signals as an fd; the jail, and while it is made the directory, the
 * log and the first command. */
int build_ground(struct box *box) MUST_USE;
int build_signals(struct box *box) MUST_USE;
int build_jail(struct box *box) MUST_USE;

/* Record, log and first command: the session begins. build_jail() does it where nothing has to be waited for. */
int build_session(struct box *box, struct err *err) MUST_USE;

/* Of a request that is not complete: before anything is looked up on the host that may be another later. */
int park_prepare(struct box *box) MUST_USE;

/*
 * Of a request that is not complete: waits for the rest of it when all walls stand, and makes what waited the session
 * that it is for. Once init and the loop serve; what is done behind it is done as of any other start.
 */
int park(struct box *box) MUST_USE;

/* The limits, of which none that the policy wants hard may be missing; and those of each process: how many. */
int build_limits(struct box *box) MUST_USE;
size_t build_rlimits(const struct policy *policy, struct jail_rlimit rlimits[4]);
/* How many files a process inside may have open: what the policy says, or the caller's own hard limit. */
uint64_t limits_open_files(const struct policy *policy);
/* Fills in how this group holds the limits that it was asked for; of the others nothing is touched. */
void limits_held(const struct limit_group *group, enum limit_hold holds[RESOURCE_COUNT]);

/* Records of the whole: its start, the end of a command, and its end with the exit status. */
int events_session_start(struct box *box) MUST_USE;
int events_command_end(struct box *box, const struct command *command) MUST_USE;
int events_session_end(struct box *box, int status) MUST_USE;

/* A phase of --discard; on the disk at once. */
int events_discard(struct box *box, enum review_phase phase) MUST_USE;

/* Puts the supervisor of calls with this listener into the loop, and takes it out again. */
int events_watch_new(struct box *box, int listener_fd) MUST_USE;
void events_watch_end(struct box *box);

/* What the loop waits for from the start; and the loop itself, until everything inside is dead and delivered. */
int serve_start(struct box *box) MUST_USE;
int serve(struct box *box) MUST_USE;

/* Whether init has said that it serves; nothing inside has run before. */
bool serve_is_ready(const struct box *box);

/* Tells whoever waits for it that the sandbox lives. */
int serve_announce(struct box *box) MUST_USE;
