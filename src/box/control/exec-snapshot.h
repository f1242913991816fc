/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `stage: {auto: exec}`: what is staged gets a name before a command that a client asks for can change it. Without that
 * the command does not run: whoever asks for snapshots means to go back. Meanwhile the request waits in the client's
 * socket. Run by atoll-box.
 */

#include <stdbool.h>

#include "base/cleanup.h"

struct box;
struct client;
struct err;

/* Whether the policy wants it, and something can be staged. */
bool exec_snapshot_is_wanted(const struct box *box);

/*
 * For a client whose request for a command (LINK_RUN) was not read yet: begins to take one where there is none for it.
 * True: it has to wait, until control_resume().
 */
bool exec_snapshot_must_wait(struct client *client);

/* Before its command runs: 0: none is wanted, or it was taken, for this one command. Negative with *err. */
int exec_snapshot_use(struct client *client, struct err *err) MUST_USE;

/* Ends what is being taken, and frees what there is. */
void exec_snapshot_done(struct box *box);
