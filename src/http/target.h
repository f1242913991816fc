/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The target of an HTTP request (RFC 9112 3.2) as rules see it. Servers read one target in different ways
 * (dot segments, %2f, //, \, ;parameters), so that a path has several readings (http/readings.h): all of them must be
 * allowed, and one that is denied is enough. What is sent on is what came. One function for whoever judges requests:
 * the gate, the box that writes them down, `atoll policy explain`, and what reads logs. Pure, bounded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "http/readings.h"
#include "policy/decide.h"

enum { TARGET_PATH_SIZE = 8192 };

struct target {
	const char *origin;         /* borrowed: what an origin server is sent, "/path?query" or "*" */
	char *path;                 /* owned: that without its query, for logs: free escapes undone, but for dots */
	uint32_t climbs;            /* readings_climbs_of() the query */
	struct readings readings;
};

/* The server that a connection leads to: host in lower case without a trailing dot, and its port. */
struct target_server {
	const char *host;
	uint16_t port;
	bool is_tls;
	const char *alias;           /* another name of it inside (network.host_ports); NULL */
};

/*
 * Reads a target (NUL-terminated, borrowed as long as ret_target). -EBADMSG with *ret_problem (static): it is none, or
 * is for another server than this one. -ENAMETOOLONG with *ret_problem too. -ENOMEM.
 */
int target_parse(const char *method, const char *text, const struct target_server *server, struct target *ret_target,
		 const char **ret_problem) MUST_USE;

/* The same from the path and the climbs of a target that was parsed elsewhere. -EBADMSG: it was not. -ENOMEM. */
int target_read(const char *path, uint32_t climbs, struct target *ret_target) MUST_USE;

/* Frees the path and the readings. May be called again, and after a parse that failed. */
void target_done(struct target *target);

/* Whether the text of a Host field (or of an authority) means this server: any case, its port or the
 * scheme's own. Loopback has more names than one. */
bool target_host_is(const char *authority, const struct target_server *server);

/* What a policy is asked about: the request by one of the readings of its path. The texts are the target's. */
size_t target_reading_count(const struct target *target);
void target_set_reading(const struct target *target, size_t i, struct action *request);

/*
 * The strictest of what the policy says to each reading; request (ACTION_HTTP_REQUEST: host, port and method) gets the
 * reading to which it says so. Nobody is asked about readings that cannot be told: they are refused.
 */
struct decision target_judge(const struct target *target, const struct policy *policy, struct action *request);
