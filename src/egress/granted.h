/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests that a policy asks about and people have allowed, as the box tells them (GATE_GRANTS). The box has the
 * grants and writes down each use; here is only what must be known before a request goes out. Pure. Runs in
 * atoll-egress.
 */

#include "policy/policy.h"
#include "egress/target.h"
#include "wire/frame.h"

struct granted_request;

/* Owned; zeroed memory holds none. */
struct granted {
	struct granted_request *list;
	size_t count;
};

void granted_done(struct granted *granted);

/*
 * Takes over what the frame has, as all that there is; one that was known keeps how often it was used. -EBADMSG,
 * -ENOMEM.
 */
int granted_take(struct granted *granted, struct frame *frame) MUST_USE;

/* Whether a request that is asked about is allowed, by every form that its path can be read in; that is a use. */
bool granted_use(struct granted *granted, const struct policy *policy, const struct target *target,
		 const struct target_server *server, const char *method);
