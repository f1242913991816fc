/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a caller's sandboxes are, and who the caller is. Immutable, and counted: each handle holds one, so that it is
 * the last of them that frees it. Part of libatoll.
 */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "atoll.h"
#include "base/cleanup.h"

struct buf;

struct atoll_context {
	unsigned references;     /* atomic */
	pid_t pid;               /* who made it: a child behind fork(2) is another */
	uid_t uid;
	char *state, *runtime;   /* owned */
	char *program;           /* owned; NULL: it starts none */
	char **environment;      /* owned: what atoll finds these places by */
	int timeout_ms;
	uint64_t events;         /* bits 1 << enum link_event that handles hear */
	bool own_commands;       /* and of commands their own alone */
};

/* One more owner, on any thread; each calls atoll_context_free(), and the last one's frees it. Returns its argument. */
struct atoll_context *context_ref(struct atoll_context *context);

/* The same but for the user, for what is asked often and gives nothing that was not given before. */
int context_check_fork(const struct atoll_context *context, struct atoll_error *error) MUST_USE;

/* Whether this process may use it: 0, or ATOLL_E_FORKED, ATOLL_E_IDENTITY, ATOLL_E_INVALID for NULL. */
int context_check(const struct atoll_context *context, struct atoll_error *error) MUST_USE;

/* Before something is started: 0, or ATOLL_E_INVALID where the context was not told what. */
int context_need_programs(const struct atoll_context *context, struct atoll_error *error) MUST_USE;
