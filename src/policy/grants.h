/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a person's answer, or a token, lets happen beyond the policy: the terms of one grant, and whether an
 * action is within them. Pure. How often and how long a grant holds is the box's business (approve/queue.h);
 * that a policy asks at all, and does not deny, is policy_decide()'s.
 */

#include "base/hash.h"
#include "policy/decide.h"

/* Who acts, and where: a part of what a person is shown. NULL: not known, and then no part of it. */
struct grant_actor {
	const char *program;         /* path, as the exec log has it */
	const char *cwd;             /* of a command, whose arguments mean something else elsewhere */
};

enum {
	GRANT_BELOW = 1 << 0,        /* the path and all below it */
	GRANT_PATTERNS = 1 << 1,     /* subject, argv, method and path are globs, as in a policy; else plain text */
	GRANT_REFUSES = 1 << 2,      /* the answer was no: other ways to the same thing are refused with it */
	GRANT_OUTSIDE = 1 << 3,      /* of what is asked for: the sandbox's view lacks it, and a yes brings it in */
	GRANT_VIEW = 1 << 4,         /* of a grant: it says that the path is in the view, and covers nothing itself */
};

/* What is asked for, or what is granted: there NULL and 0 stand for any. Borrowed throughout. */
struct grant_terms {
	enum action_kind kind;       /* also covers what is less: see grant_covers() */
	uint32_t flags;
	const char *subject;         /* never NULL */
	const char *const *argv;     /* whole, from argv[0] on */
	const char *method, *path;
	uint16_t port;
	struct grant_actor actor;
};

/*
 * Whether what is asked for, in plain text, is within the terms. To write a path is to read it too; to connect to a
 * host, to look it up. A refusal covers its thing by whatever way it is tried again: by another program, argv[0], port,
 * method or for writing.
 */
bool grant_covers(const struct grant_terms *terms, const struct grant_terms *asked);

/* The hash of exactly what a question shows: equal ones are one question, and an answer holds for no other. */
void grant_identity(const struct grant_terms *shown, struct hash *ret_hash);
