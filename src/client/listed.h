/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A session as `atoll ps` and `atoll top` list it, from what its directory holds; the box is not asked.
 * Used by `atoll`.
 */

#include "base/json.h"
#include "session/record.h"

/* "running", "ended", or "lost": its box died without a word; the record was closed by its guardian, or by nobody. */
const char *listed_state(const struct session_record *record);

/*
 * The session that a fork went out from: whose layer its chain has on top, under those it sealed itself; where they
 * were joined since, the one whose start counts. "": none.
 */
void listed_find_origin(const char *state, const struct session_record *record, char out[SESSION_ID_SIZE]);

typedef void (*listed_port)(void *context, unsigned port, const char *host);

/* Calls visit for each port that the session publishes while it lives: the one inside, and the host's side of it. */
void listed_visit_published(const char *state, const struct session_record *record, listed_port visit,
			    void *context);

/* One object, as in `atoll ps --json`. state: the state directory. */
void listed_to_json(struct json *json, const char *state, const struct session_record *record);
