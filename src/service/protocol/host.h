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

/* envd's port, by which files and processes are reached, and the code interpreter's; others lead to servers inside. */
enum { HOST_ENVD_PORT = 49983, HOST_INTERPRETER_PORT = 49999, HOST_ID_SIZE = 65 };

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

/* What a browser says of the page that a request is of: headers, each may be NULL. */
struct host_page {
	const char *origin;          /* Origin */
	const char *site, *mode;     /* Sec-Fetch-Site, Sec-Fetch-Mode */
	const char *referer;         /* Referer */
};

/*
 * Whether pages of this origin ("http://localhost:3000") may use the service: its host is localhost or an address of
 * the loopback, one of names, or an address that is the request's own Host. A page on any other address is somebody
 * else's. What a sandbox serves has a host below these, and is none; nor is "null".
 */
bool host_origin_is_ours(const char *origin, const char *host, const char *const *names);

/*
 * Whether a request may be answered as far as its page goes: that has such an origin. A browser names none with a GET
 * for an image or a script, and says then whether it is of another site: that is refused, but where a person follows
 * a link, or the referring page has such an origin. Programs say nothing of it.
 */
bool host_page_is_ours(const struct host_page *page, const char *host, const char *const *names);
