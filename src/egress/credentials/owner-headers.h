/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Headers that the owner of the sandbox has put into its requests to a host, over TLS, where requests are read anyway.
 * They come and go while it lives (GATE_HEADERS). What the sandbox sent under such a name is replaced, and a secret of
 * the policy replaces them. Runs in atoll-egress.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "egress/message/http1.h"
#include "http/target.h"

/* All zero: there are none. */
struct owner_headers {
	char **triples;          /* owned: host, name, value … */
};

/* Takes a copy of these, checked (wire/headers.h), instead of those that are there. -EINVAL, -ENOMEM: those stay. */
int owner_headers_set(struct owner_headers *headers, const char *const *triples) MUST_USE;

/* Wipes and frees; there are none then. */
void owner_headers_done(struct owner_headers *headers);

/* Puts in those of this server. 0, or as http1_set(): then the request must not go out. */
int owner_headers_put(const struct owner_headers *headers, const struct target_server *server,
		      struct http1_head *head) MUST_USE;

/*
 * Takes values out of the head of an answer that repeats them, but for short ones, which are met by accident. 0 or
 * -ENOMEM: then nothing may be sent on.
 */
int owner_headers_redact(const struct owner_headers *headers, struct http1_head *head) MUST_USE;
