/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What options of a run say of its policy: ports (`--publish`, `--host-port`), which the box opens (gate-net/), and
 * walls that may be missing (`--degrade`). Read and checked; pure. Run by atoll.
 */

#include "base/err.h"
#include "base/options.h"
#include "policy/policy.h"

/* rules has room for NET_PUBLISH_MAX. -E2BIG, -EINVAL: *err says what is wrong. */
int run_ports_published(const struct option_list *given, struct publish_rule *rules, struct err *err) MUST_USE;

/*
 * Puts the ports of this machine that are given beside the policy's own; of a port that it has, the name that is given
 * counts. policy borrows ports from then on, which borrows the texts. -EINVAL with *err: one is none, or the policy
 * shares the network of the machine. -E2BIG.
 */
int run_ports_add(const struct option_list *given, struct policy *policy, struct host_port ports[NET_HOST_PORTS_MAX],
		  struct err *err) MUST_USE;

/*
 * The walls that these names say may be missing, with commas between them, beside the policy's own (`degrade:`). NULL:
 * none. -EINVAL with *err: there is no such wall.
 */
int run_walls_accept(const char *names, struct policy *policy, struct err *err) MUST_USE;
