/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A session as the verbs work on it: its directories as fds, its record, its chain, its policy, and the stacks of its
 * trees. Everything is opened before the program confines itself.
 */

#include <limits.h>

#include "base/err.h"
#include "confine/confine.h"
#include "policy/snapshot/snapshot.h"
#include "prog/atoll-stage/verb/verb.h"
#include "stage/apply/applied-state.h"
#include "stage/change/change.h"
#include "stage/change/seen.h"

struct opened {
	const struct verb_session *session;  /* borrowed */
	int sessions_fd, session_fd, stage_fd; /* owned */
	struct stage_record record;
	uint64_t start_ns;                   /* stage_record_start_ns(), which reads /proc, as it was at the opening */
	char root[PATH_MAX];                 /* session_root_of(); "": the session has the machine's system */
	struct stage_chain chain;            /* as stands in `chain`, or in a snapshot */
	bool is_snapshot;
	struct stage_stack *stacks;          /* owned; one a tree, with live and host; NULL until opened_stacks() */
	struct seen *seen;                   /* owned; seen_load(), by opened_stacks() */
	struct applied_state *restored;               /* owned; applied_load_restored(), by opened_stacks() */
	char *policy_bytes;                  /* owned */
	struct snapshot *snapshot;           /* owned; NULL where the session has none */
};

#define OPENED_NONE ((struct opened){ .sessions_fd = FD_NONE, .session_fd = FD_NONE, .stage_fd = FD_NONE })

/* Opens the session's directories and reads its record, chain and policy. -ENOENT with *err: it stages nothing. */
int opened_open(struct opened *ret_opened, const struct verb_session *session, struct err *err) MUST_USE;

/*
 * Refuses a session whose trees are directories of `atoll serve` (below STATE/service): all its sandboxes begin with
 * them, and what is written there is in each one from then on. Before opened_confine(). -EPERM with *err.
 */
int opened_need_host(const struct opened *opened, const char *verb, struct err *err) MUST_USE;

/* Where a tree is inside, which is how a person names it; of all but the sandbox's own system as on the host. */
const char *opened_tree(const struct opened *opened, size_t tree);

/* Whether it is one of the sandbox's own system, to which nothing is applied. */
bool opened_is_system(const struct opened *opened, size_t tree);

/* The first tree that is not, by that name. */
const char *opened_first_tree(const struct opened *opened);

/* Takes the state that this snapshot holds instead of the newest one. Before opened_stacks(). -ENOENT with *err. */
int opened_at_snapshot(struct opened *opened, const char *name, struct err *err) MUST_USE;

/*
 * Opens the stack of every tree, with the live upper (not of a snapshot) and the host's side, and reads what other
 * sessions gave back to them.
 */
int opened_stacks(struct opened *opened, struct err *err) MUST_USE;

/*
 * Gives up everything but this session's stage directory, the layers of its chain and its trees: program is
 * CONFINE_STAGE_READING, or CONFINE_STAGE_WRITING, with which stage directory and trees may be written.
 */
int opened_confine(const struct opened *opened, enum confine_program program, struct err *err) MUST_USE;

/* The same for two sessions; b may be NULL. */
int opened_confine_both(const struct opened *a, const struct opened *b, enum confine_program program,
			struct err *err) MUST_USE;

/* Closes and frees all, and gives modes back that were lent (stage/layer/closed.h). */
void opened_done(struct opened *opened);
#define cleanup_opened __attribute__((cleanup(opened_done)))
