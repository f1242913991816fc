/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a session still holds changes that could reach the host: neither applied nor dropped. Looked at in a child
 * that gives up everything but reading that session and its trees. Used by gc, before it confines itself.
 */

#include <stdbool.h>

/* What cannot be known counts as yes. state: the state directory; id: the session. */
bool unreviewed_has_changes(const char *state, const char *id);
