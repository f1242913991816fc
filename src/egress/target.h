/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The target of an HTTP request (RFC 9112 3.2) as rules see it. Servers read one target in different ways
 * (dot segments, %2f, //, \, ;parameters), so a path has several forms here, and a rule must allow every one
 * of them; what is sent on is what came. Pure, bounded. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/decide.h"

enum { TARGET_PATH_SIZE = 8192, TARGET_FORMS_MAX = 3 };

struct target {
	/*
	 * The path as it is sent, with only those escapes undone that change nothing (RFC 3986 6.2.2); that without dot
	 * segments and double slashes; and the same once more with every escape undone, \ as / and no parameters.
	 * Forms that are the same stand there once. "*" for OPTIONS *.
	 */
	char *forms[TARGET_FORMS_MAX];   /* owned */
	size_t form_count;
	const char *origin;              /* borrowed: what an origin server is sent, "/path?query" or "*" */
};

/* The server that a connection leads to: host in lower case without a trailing dot, and its port. */
struct target_server {
	const char *host;
	uint16_t port;
	bool is_tls;
};

/*
 * Reads a target (NUL-terminated, borrowed as long as ret_target). -EBADMSG with *ret_problem (static): it is none, is
 * for another server than this one, or cannot be told apart from something else. -ENAMETOOLONG with *ret_problem too.
 * -ENOMEM.
 */
int target_parse(const char *method, const char *text, const struct target_server *server, struct target *ret_target,
		 const char **ret_problem) MUST_USE;
void target_done(struct target *target);

/* Whether the text of a Host field (or of an authority) means this server: any case, its port or the scheme's own. */
bool target_host_is(const char *authority, const struct target_server *server);

/* The strictest of what the policy says to each form, and to which it says so (borrowed from target). */
struct decision target_judge(const struct target *target, const struct policy *policy, const char *method,
			     const struct target_server *server, const char **ret_form);
