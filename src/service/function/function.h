/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions of the service, the front's side: deployments and invocations as HTTP has them. An archive is moved as
 * bytes and opened by nobody here. An event goes into the one sandbox that was leased for it, and whatever comes out of
 * that one's streams is its result and its log: bounded, and no more believed than the function itself. Run by
 * atoll-front.
 */

#include "service/front/exchange.h"

/* Of ROUTE_FUNCTION. */
extern const struct exchange_handler function_handler;
