/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Capability tokens on their way into a sandbox: atoll-token reads and counts what the user presents, and what comes
 * here is what it lets happen. Used by `atoll run` and `atoll exec`; nothing of a token is parsed here.
 */

#include <limits.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "policy/policy.h"
#include "wire/token.h"

struct token_presented {
	const char *file;            /* --token: FILE, or "-" */
	const char *project;         /* real path */
	const char *policy, *session, *agent; /* names that the agent goes by; the last two may be NULL */
};

/* Where keys and memory of tokens are. */
struct token_directories {
	char keys[PATH_MAX], store[PATH_MAX];
};
/* Finds both, whether they are there or not; makes the state directory. -ENOENT with *err: there is no home. */
int token_directories(struct token_directories *ret_dirs, struct err *err) MUST_USE;

/*
 * Presents a token: it is counted as used. In *ret_frame (caller's, TOKEN_HELD_MAX) a TOKEN_HOLDS frame, checked.
 * 1 when atoll-token has told the user why it is refused.
 */
int token_present(const struct token_presented *presented, struct buf *ret_frame, struct err *err) MUST_USE;

/* The trust level that the token of this frame lends a run, TRUST_NONE: none; and "token ID", for the log. */
int token_lends(const struct buf *held, enum trust_level *ret_level, char *by, size_t size) MUST_USE;

/* The policy with no more than what the token of this frame leaves of its limits. */
int token_narrow_limits(const struct buf *held, struct policy *policy) MUST_USE;
