/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Another policy for the network of a sandbox that lives. While the gate takes it over, what goes out must be allowed
 * by both; it is in force for the box, and written down, when the gate says that it is there. Whatever fails leaves the
 * old one. Run by atoll-box.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/snapshot/snapshot.h"

struct net_gate;

/* How often: each policy stays in memory, since connections that are open may still speak of it. */
enum { CHANGES_MAX = 64 };

/* A policy that was handed in; bytes and snapshot are owned. */
struct policy_change_snapshot {
	void *bytes;
	size_t size;
	struct snapshot *snapshot;
};

/* Who asks for another policy. */
struct policy_change_asker {
	/* It is in force (err NULL), and ended so many connections; or it is not. */
	void (*done)(void *client, const struct err *err, uint32_t ended);
	void *client;                  /* NULL: nobody waits */
	uid_t uid;
	pid_t pid;
};

struct policy_change {
	struct policy_change_snapshot held[CHANGES_MAX];
	size_t count;                  /* that were tried; the last one may be pending */
	unsigned made;                 /* that came into force */
	const void *bytes;             /* of the policy in force, borrowed; NULL: the one of the start */
	size_t size;
	struct policy_change_asker asker;     /* of the last one */
	bool is_pending;
	bool is_told;                  /* the gate knows the pending one */
	uint64_t until_ns;             /* when patience with the gate ends */
	struct hash hash;              /* of the policy in force, once one was made */
};

/*
 * snapshot_fd (borrowed): a sealed memfd. 0: gate_check() tells the gate, and asker->done() will be called.
 * Negative with *err: it cannot be, and nothing has changed.
 */
int policy_change_begin(struct net_gate *gate, int snapshot_fd, const struct policy_change_asker *asker,
			struct err *err) MUST_USE;

/* The gate has it (errnum 0), and ended so many connections; or it has not. Negative: the log failed. */
int policy_change_conclude(struct net_gate *gate, int errnum, uint32_t ended) MUST_USE;

/* Nobody waits any more. */
void policy_change_forget_asker(struct net_gate *gate, const void *client);

/* Frees every policy that was handed in: none of them may be in force any more. */
void policy_change_done(struct policy_change *change);
