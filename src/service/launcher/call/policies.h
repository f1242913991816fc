/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Compiled policies: that of a key, and that narrowed by what a client says of the network. The narrowing is written as
 * a project's own file (.atoll.yaml), of which the compiler takes nothing that would widen the policy: a client's field
 * cannot. What is compiled is kept for the next who asks for the same. Runs in atolld.
 */

#include <atoll.h>
#include <limits.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/service.h"

enum { POLICIES_MAX = 256 };

struct policy_entry;

struct policies {
	atoll_context *context;      /* borrowed */
	const char *project;         /* STATE/service/project, borrowed: empty, but while something is compiled */
	struct policy_entry *first;  /* owned: the last used first */
	size_t count;
};

/*
 * A policy, the directory that stands for the project of every sandbox, and what the policy and its narrowing are known
 * by. Borrowed until the next call.
 */
struct policy_found {
	const atoll_policy *policy;
	const char *project, *id;
};

/* Frees every policy that is kept; sandboxes that run under one go on. */
void policies_done(struct policies *policies);

/*
 * The policy of this name, narrowed by the values of the network of a request (NULL: as it is). Compiles it where it is
 * not kept. -EINVAL with *err: the client asks for more than the policy has, or for what cannot be read; -EIO: the
 * policy itself is wrong.
 */
int policies_find(struct policies *policies, const char *name, const struct service_message *network,
		  struct policy_found *ret_found, struct err *err) MUST_USE;
