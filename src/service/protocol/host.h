/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which sandbox and port a request is for, by its Host and the two headers of the E2B clients; and which Hosts and
 * Origins are answered at all, so that no page of a browser reaches the service by a name of its own (DNS rebinding).
 * Pure. Run by atoll-front.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* envd's port, by which files and processes are reached; all others lead to servers inside. */
enum { HOST_ENVD_PORT = 49983, HOST_ID_SIZE = 65 };

enum host_kind {
	HOST_API,                /* the control plane */
	HOST_SANDBOX,            /* a port of a sandbox */
};

struct host_target {
	enum host_kind kind;
	bool is_by_name;         /* the Host itself named the sandbox */
	char sandbox[HOST_ID_SIZE];
	uint16_t port;
};

/* What a request says of it: each may be NULL. */
struct host_said {
	const char *host, *sandbox, *port;
};

/*
 * The target. names: domains, without a port, that are ours beside localhost and addresses; a sandbox is
 * PORT-ID.DOMAIN. 0. -EINVAL: it names none that can be, one header without the other, or no Host. -EPERM: the Host is
 * not ours. *ret_why is a static sentence then.
 */
int host_route(const struct host_said *said, const char *const *names, struct host_target *ret_target,
	       const char **ret_why) MUST_USE;

/* Whether an id can be one: [a-z0-9]+ and shorter than HOST_ID_SIZE. */
bool host_id_is_valid(const char *id);

/*
 * Whether pages of this origin ("http://localhost:3000") may use the service: its host is localhost, an address or
 * one of names. What a sandbox serves has a host below these, and is none; nor is "null".
 */
bool host_origin_is_ours(const char *origin, const char *const *names);
