/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happens to the requests of one connection that is read, beside being judged (exchange.h): the one place where
 * the hooks of an interception are filled. What must not leave is looked for, requests count against the limits,
 * credentials are put in and taken out of answers, and each request is told to the box when it is over. Runs in
 * atoll-egress.
 */

#include "egress/http/exchange.h"
#include "wire/gate.h"

struct gate;
struct intercept;

/* Of one connection. */
struct requests {
	struct gate *gate;             /* borrowed */
	struct gate_open connection;   /* host borrowed */
	struct target_server server;   /* where it leads */
	uint32_t placeholders;         /* words that may come: they stand for secrets that this server gets */
	struct intercept *intercept;   /* borrowed: that has the hooks; set by whoever made it */
	uint32_t secrets;              /* words: what rules put in, here or elsewhere: no answer brings it in */
};

/*
 * Of a connection that is read from now on; gate and connection->host are borrowed. is_tls: of both sides, so that
 * credentials may be put in.
 */
void requests_init(struct requests *requests, struct gate *gate, const struct gate_open *connection, bool is_tls);

/* What the box says of a request that waits for a person. */
void requests_answered(struct gate *gate, const struct gate_answer *answer);

/* The hooks; requests is borrowed by them, and must live as long as the interception. */
struct exchange_hooks requests_hooks(struct requests *requests);
