/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/handlers.h"

/* 501 and a sentence: never a silent yes. */
static void run_unserved(struct exchange *exchange)
{
	exchange_fail(exchange, 501, CONNECT_UNIMPLEMENTED, "this service does not serve this call");
}

const struct exchange_handler unserved_handler = { .run = run_unserved };

const struct exchange_handler *handlers_find(enum route_handler handler)
{
	static const struct exchange_handler *const handlers[ROUTE_HANDLER_COUNT] = {
		[ROUTE_CONTROL] = &control_handler, [ROUTE_UNSERVED] = &unserved_handler,
		[ROUTE_HEALTH] = &health_handler, [ROUTE_START] = &start_handler, [ROUTE_ATTACH] = &attach_handler,
		[ROUTE_PROCESS] = &process_handler, [ROUTE_INPUT] = &input_handler,
		[ROUTE_DOWNLOAD] = &download_handler, [ROUTE_UPLOAD] = &upload_handler,
		[ROUTE_FILESYSTEM] = &filesystem_handler, [ROUTE_WATCH] = &watch_handler,
		[ROUTE_WATCHER] = &watcher_handler,
	};

	return handlers[handler] ? handlers[handler] : &unserved_handler;
}
