/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the limits of the network leave: one meter for the session, and one for each rule that has limits of its own.
 * What a connection does counts on every meter that covers it, and each of them can hold it back. Rates are token
 * buckets (RFC 2697 without its colours). Pure: the caller brings the clock. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/policy.h"

enum { QUOTA_WAIT_MS = 20 };

enum quota_way { QUOTA_OUT, QUOTA_IN, QUOTA_WAY_COUNT };  /* from the sandbox; to it */

struct quota;

/* The meters of one connection: the session's, and those of these rules (policy_limited_rules()). */
struct quota_share {
	struct quota *quota;
	uint64_t rules;
};

/* A limit that is in the way. */
struct quota_hit {
	const char *rule;            /* id of the rule, borrowed from the policy; NULL: the session */
	enum net_limit kind;
	uint64_t amount;
};

/*
 * policy is borrowed until the next quota_change(). on_hit is told once an episode: an episode of a rate or of
 * connections ends when the limit was in nobody's way for its period, and for a minute at least; totals and hosts have
 * one. -ENOMEM.
 */
int quota_new(struct quota **ret_quota, const struct policy *policy, uint64_t now_ns,
	      void (*on_hit)(void *context, const struct quota_hit *hit), void *context) MUST_USE;
void quota_free(struct quota *quota);

/*
 * Another policy holds from now on. What was used stays used: of the session, and of each rule that the new policy has
 * as well (the same host and ports). Shares are void; connections that go on get one with quota_hold(). -ENOMEM: all is
 * as before.
 */
int quota_change(struct quota *quota, const struct policy *policy, uint64_t now_ns) MUST_USE;
void quota_hold(const struct quota_share *share);

/* How many of wanted bytes may be moved now; 0: wait QUOTA_WAIT_MS, or they are used up (quota_is_used_up). */
size_t quota_ask(const struct quota_share *share, enum quota_way way, size_t wanted, uint64_t now_ns);

/* Whether there is a rate that such a connection is slowed down to. */
bool quota_has_rate(const struct quota_share *share);

/* These were moved. */
void quota_use(const struct quota_share *share, enum quota_way way, size_t bytes);

/* So many at once, beside what is moved: 0, and they are counted; 1: the limits have no room for them, *ret_hit. */
int quota_spend(const struct quota_share *share, enum quota_way way, size_t bytes, uint64_t now_ns,
		struct quota_hit *ret_hit) MUST_USE;

/* Whether no byte may go this way any more. */
bool quota_is_used_up(const struct quota_share *share, enum quota_way way, uint64_t now_ns);

/*
 * A connection to host begins: 0, and quota_disconnect() is owed. 1: refused, because of *ret_hit; nothing is counted.
 * -ENOMEM.
 */
int quota_connect(const struct quota_share *share, const char *host, uint64_t now_ns,
		  struct quota_hit *ret_hit) MUST_USE;
void quota_disconnect(const struct quota_share *share);

/* A request begins: 0. 1: refused, because of *ret_hit; there is room for one in *ret_wait_ms. */
int quota_request(const struct quota_share *share, uint64_t now_ns, struct quota_hit *ret_hit,
		  uint64_t *ret_wait_ms) MUST_USE;

/* Bytes that the session has moved this way so far. */
uint64_t quota_used(const struct quota *quota, enum quota_way way);
