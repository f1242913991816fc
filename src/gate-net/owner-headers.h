/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Headers that the owner of a sandbox has put into its requests while it lives. They give access to nothing: only
 * requests that the policy has read anyway get them, so that whoever wrote the policy has said that it may be. Hosts
 * and names are written down, values are not. Run by atoll-box.
 */

#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

struct net_gate;

/* Who asks for it. */
struct owner_headers_asker {
	uid_t uid;
	pid_t pid;
};

/*
 * These (wire/headers.h) instead of those before. Negative with *err, and nothing has changed: -EINVAL; -EPERM: the
 * policy reads no requests to a host; -ENETDOWN: there is no network; the log's error.
 */
int owner_headers_change(struct net_gate *gate, const char *const *triples, const struct owner_headers_asker *by,
			 struct err *err) MUST_USE;
