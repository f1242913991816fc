/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What speaks against removing a session: changes that could still reach the host (neither applied nor dropped), and an
 * apply that a crash cut off, whose old files lie in the session. Looked at in a child that gives up everything
 * but reading that session and its trees. Used by gc, before it confines itself.
 */

#include <stdbool.h>

#include "base/cleanup.h"

struct unreviewed {
	bool has_changes;     /* of the host as it is now */
	bool is_unfinished;   /* an apply or undo has to be finished or taken back first */
	bool is_unreadable;   /* another version of atoll staged it, or it is damaged: neither can be known */
};

/* What cannot be known counts as yes. state: the state directory; id: the session. */
struct unreviewed unreviewed_look(const char *state, const char *id);
