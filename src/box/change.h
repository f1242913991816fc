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
#include "policy/snapshot.h"

struct box;

/* How often: each policy stays in memory, since connections that are open may still speak of it. */
enum { CHANGES_MAX = 64 };

/* A policy that was handed in; bytes and snapshot are owned. */
struct change_policy {
	void *bytes;
	size_t size;
	struct snapshot *snapshot;
};

struct change {
	struct change_policy held[CHANGES_MAX];
	size_t count;                  /* that were tried; the last one may be pending */
	unsigned made;                 /* that came into force */
	const void *bytes;             /* of the policy in force, borrowed; NULL: the one of the start */
	size_t size;
	const void *asker;             /* who waits for the pending one, as change_begin() got it; NULL: nobody */
	bool is_pending;
	bool is_told;                  /* the gate knows the pending one */
	uint64_t until_ns;             /* when patience with the gate ends */
	struct hash hash;              /* of the policy in force, once one was made */
	uid_t uid;                     /* of who asked */
	pid_t pid;
};

struct change_asker {
	const void *client;            /* to be told by control_policy_changed() */
	uid_t uid;
	pid_t pid;
};

/*
 * snapshot_fd (borrowed): a sealed memfd. 0: gate_check() tells the gate, and control_policy_changed() will be called.
 * Negative with *err: it cannot be, and nothing has changed.
 */
int change_begin(struct box *box, int snapshot_fd, const struct change_asker *asker, struct err *err) MUST_USE;

/* The gate has it (errnum 0), and ended so many connections; or it has not. Negative: the log failed. */
int change_conclude(struct box *box, int errnum, uint32_t ended) MUST_USE;

/* Nobody waits any more. */
void change_forget_asker(struct box *box, const void *client);

void change_done(struct change *change);
