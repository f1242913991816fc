/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a verifier is told before a run whose task it shall narrow the policy for (doc/format/verify-external.md): the
 * task, the command, what the policy gives, and the names at the top of the project. Used by `atoll run --narrow`.
 */

#include "base/buf.h"
#include "client/narrow.h"
#include "policy/policy.h"

/* One JSON object; buf_error() where it does not fit. Reads the project's directory. */
void narrow_case_put(struct buf *out, const struct narrow_request *request, const struct policy *policy);
