/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll run --narrow` came to, for who asks later: in the first record of the log and in the report. The narrowed
 * policy itself is the session's policy like any other. Run by atoll-box.
 */

#include "base/json.h"
#include "session/run-request.h"

/* For a run that came to nothing: the line that says that it had less than its policy gives. */
extern const char narrowing_hint[];

/* Whether the run has less than its policy gives, for a proposal was taken; false where nobody was asked (NULL). */
bool narrowing_holds(const struct run_narrowing *narrowing);

/* The member "narrowing": an object, or nothing where nobody was asked. */
void narrowing_to_json(const struct run_narrowing *narrowing, struct json *json);
