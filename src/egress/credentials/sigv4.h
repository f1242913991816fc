/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Signs a request for AWS anew (Signature Version 4), in the place of what a client signed with a placeholder. Pure;
 * the body is not read: its hash is the client's own, or left out of the signature where the service allows that. Runs
 * in atoll-egress.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */

#include "egress/message/http1.h"
#include "policy/policy.h"

enum { SIGV4_CANONICAL_MAX = 256 << 10 };

/* NULL, or why this text is no key of AWS ("id:key" or "id:key:token"; static). */
const char *sigv4_problem(const char *secret);

/*
 * Replaces the signature of the head: host (as it goes out), content-type and every x-amz- field are signed. 0;
 * -EOPNOTSUPP: what the client sent can only be signed with its body (each chunk is signed, the signature is in the
 * URL, or a body comes without its hash to another service than s3); -ENOMEM, -E2BIG, -EINVAL.
 */
int sigv4_sign(struct http1_head *head, const struct inject *inject, const char *secret, const char *host,
	       uint64_t now_s) MUST_USE;
