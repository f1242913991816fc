/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What sandboxes leave behind: a session with its log each. Those that ended last are kept, up to a number and a size;
 * atoll-stage removes the others (gc), beside this process and one at a time. What a template or a stored sandbox
 * begins with again is named in STATE/held, so that no gc takes it, also nobody else's. Where the disk has less free
 * than the service was told to leave, all that ended longer ago than it was told to retain goes, with its log, and the
 * log of the service says so; nothing of what runs. Runs in atolld.
 */

#include "service/launcher/call/daemon.h"

/* A session has ended, or something that was held is no longer. */
void tidy_note_end(struct daemon *daemon);

/* The same, and it is not waited for long. */
void tidy_soon(struct daemon *daemon);

/* Forgets a snapshot of a session, and has what only that needed removed soon. */
void tidy_forget(struct daemon *daemon, const char *session, const char *snapshot);

/* Starts what is due. When to be called again: CLOCK_MONOTONIC in ns; UINT64_MAX: nothing is to be done. */
uint64_t tidy_turn(struct daemon *daemon);

/*
 * Writes which sessions are needed, as the database and the registry have them; before the first thing that rests on
 * it. 0, or -errno, which the log of the service says.
 */
int tidy_hold(struct daemon *daemon) MUST_USE;
