/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Compiled policies: that of a key, and that narrowed by what a client says of the network. The narrowing is written as
 * a project's own file (.atoll.yaml), of which the compiler takes nothing that would widen the policy: a client's field
 * cannot. What is compiled is kept for the next who asks for the same. Who can wait has it done beside the loop. Runs
 * in atolld.
 */

#include <atoll.h>
#include <limits.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "supervise/loop.h"
#include "wire/service.h"

enum { POLICIES_MAX = 256 };

struct policy_entry;
struct policy_load;

struct policies {
	atoll_context *context;      /* borrowed */
	const char *project;         /* STATE/service/project, borrowed: empty, but while something is compiled */
	struct loop *loop;           /* borrowed */
	struct policy_entry *first;  /* owned: the last used first */
	size_t count;
	struct policy_load *loads;   /* owned: what is waited for; the first one is being compiled */
	const struct policy_load *failed; /* while those who waited for it are told; NULL: none */
};

/* Who waits for a policy. is_lost: nothing is compiled any more, since the service ends. */
typedef void policies_then(void *context, bool is_lost);

/*
 * A policy, the directory that stands for the project of every sandbox, and what the policy and its narrowing are known
 * by. Borrowed until the next call.
 */
struct policy_found {
	const atoll_policy *policy;
	const char *project, *id;
};

/* Frees every policy that is kept; sandboxes that run under one go on. */
void policies_forget(struct policies *policies);

/* The same, and whoever waits is told so. */
void policies_done(struct policies *policies);

/* Whether policies_find() with the same words would not have to compile; also where it would only fail. */
bool policies_has(struct policies *policies, const char *name, const struct service_message *network);

/* The one that is known by this id (struct policy_found). -ENOENT: it is not kept any more. */
int policies_by_id(const struct policies *policies, const char *id, struct policy_found *ret_found) MUST_USE;

/*
 * Has the policy compiled by a process of its own, one at a time; then is called from the loop when policies_find()
 * has it, or its error. 0; negative: nobody is called, and policies_find() has to do.
 */
int policies_load(struct policies *policies, const char *name, const struct service_message *network,
		  policies_then *then, void *context) MUST_USE;

/*
 * The policy of this name, narrowed by the values of the network of a request (NULL: as it is). Compiles it where it is
 * not kept, which blocks for some milliseconds. -EINVAL with *err: the client asks for more than the policy has, or for
 * what cannot be read; -EIO: the policy itself is wrong.
 */
int policies_find(struct policies *policies, const char *name, const struct service_message *network,
		  struct policy_found *ret_found, struct err *err) MUST_USE;
