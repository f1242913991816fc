/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happens to the requests of one connection that is read, beside being judged (exchange.h): the one place where
 * the hooks of an interception are filled. Here each request counts against the limits before it
 * goes out, and is told to the box when it is over. Runs in atoll-egress.
 */

#include "egress/exchange.h"
#include "wire/gate.h"

struct gate;

/* Of one connection. */
struct requests {
	struct gate *gate;             /* borrowed */
	struct gate_open connection;   /* host borrowed */
};

/* The hooks; requests is borrowed by them, and must live as long as the interception. */
struct exchange_hooks requests_hooks(struct requests *requests);
