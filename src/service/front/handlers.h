/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who handles which route: one row each. Nothing else knows them all, and no handler calls another.
 * Run by atoll-front.
 */

#include "service/front/exchange.h"

extern const struct exchange_handler control_handler, health_handler, unserved_handler;
extern const struct exchange_handler download_handler, upload_handler;
extern const struct exchange_handler port_handler; /* of what no route is for: a server inside */
extern const struct exchange_handler filesystem_handler, watch_handler, watcher_handler;
extern const struct exchange_handler start_handler, attach_handler, process_handler, input_handler;

/* The handler of a route's row, static; one that answers 501 where a row has none of its own. */
const struct exchange_handler *handlers_find(enum route_handler handler);
