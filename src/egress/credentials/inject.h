/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Credentials that the sandbox never has: put into a request on its way out, for exactly the server, method
 * and path that the rule names, over TLS only; and taken out of the head of the answer, should the server
 * repeat them. Pure. Runs in atoll-egress, which gets the values through a descriptor and keeps them nowhere
 * else.
 */

#include "egress/message/http1.h"
#include "http/target.h"

enum { INJECT_SECRET_MAX = 16 << 10 };

/* A rule of the policy that has inject.kind, and the value that its secret has. */
struct injection {
	const struct net_rule *rule;
	const char *secret;             /* NUL-terminated: visible bytes only */
};

enum inject_outcome { INJECT_DONE = 0, INJECT_NOT_HERE = 1 };

/* NULL, or why this secret cannot be put where the rule wants it (static): a line break in it, no password. */
const char *inject_problem(const struct injection *injection);

/*
 * Puts the secret into the request if the rule is for this server, method and every reading of the path; what the
 * sandbox sent in its place (a placeholder) goes. INJECT_DONE, INJECT_NOT_HERE, or -ENOMEM, -E2BIG, -EOPNOTSUPP (as
 * sigv4_sign()). What is allocated for a new target is *ret_owned, to be freed by inject_free() when the head has been
 * put out.
 */
int inject_request(const struct injection *injection, const struct target_server *server, const struct target *target,
		   struct http1_head *head, char **ret_owned) MUST_USE;

/* What stands where a secret was; where it was the name of a field. */
extern const char inject_redacted[], inject_redacted_name[];

/* Wipes and frees. NULL is fine. */
void inject_free(char *owned);

/*
 * Takes the secret, in every spelling that inject_request() gives it, out of the fields (names among them) and the
 * reason of an answer, or of its trailers: a redirect elsewhere would carry it on. The number of fields that had it, or
 * -ENOMEM (then nothing may be sent on).
 */
int inject_redact(const struct injection *injection, struct http1_head *head) MUST_USE;
