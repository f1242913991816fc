/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * POST /functions/{function}/invoke: the body is the event, the answer's body the result. What the function says is
 * bounded, and read by nobody here. Run by atoll-front.
 */

#include "service/front/exchange.h"

/* The event is there: answers, or suspends. */
void invocation_run(struct exchange *exchange);
/* Frees what it has; an invocation that goes on is ended. */
void invocation_done(struct exchange *exchange);
