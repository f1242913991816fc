/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a session ever made a hard link in what it stages. The kernel's overlay keeps the names of a file together in
 * the live upper, and parts them in sealed layers, where the first write to one copies it up. So who begins on layers
 * has such files put into its own upper first (stage/snapshot/relink.h), and this note says where none has to be looked
 * for: the box sees each call that makes a link. Nobody looks into a layer here.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "stage/layer/chain.h"

/* Notes it of the session whose stage directory this is. 0, also where it is noted already; -errno. */
int stage_linked_note(int stage_fd) MUST_USE;

/* Whether a session whose layers the chain names has such a note. sessions_fd: STATE/sessions. */
bool stage_linked_is_noted(int sessions_fd, const struct stage_chain *chain);

enum { STAGE_LINKED_BYTES_MAX = 256 << 20 }; /* of files that are kept together; what is beyond parts as ever */

/* What `atoll-stage relink` tells the box. */
struct stage_linked {
	uint64_t kept, parted;       /* files of several names */
	uint64_t done_ns;            /* CLOCK_REALTIME: what has an earlier ctime in the uppers was put there by it */
};

/*
 * Whether the sandbox changed anything in its live uppers beside what was put there until done_ns (0: nothing was put
 * there, and any entry counts). 1, 0, or -errno: nobody can tell.
 */
int stage_linked_is_used(int stage_fd, const struct stage_record *record, uint64_t done_ns) MUST_USE;
