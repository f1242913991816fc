/* SPDX-License-Identifier: Apache-2.0 */
#include "service/function/deployment.h"
#include "service/function/function.h"
#include "service/function/invocation.h"

static bool is_deployment(const struct exchange *exchange)
{
	return exchange->match.route->operation == SERVICE_FUNCTION_DEPLOY;
}

static void run(struct exchange *exchange)
{
	if (is_deployment(exchange))
		deployment_run(exchange);
	else
		invocation_run(exchange);
}

static void done(struct exchange *exchange)
{
	if (!exchange->data)
		return;
	if (is_deployment(exchange))
		deployment_done(exchange);
	else
		invocation_done(exchange);
}

const struct exchange_handler function_handler = { .run = run, .done = done };
