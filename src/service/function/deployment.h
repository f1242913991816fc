/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * POST /functions: a JSON object whose "archive" is a tar archive in base64. It is moved as bytes and never opened
 * here. Run by atoll-front.
 */

#include "service/front/exchange.h"

/* The body is there: answers, or suspends. */
void deployment_run(struct exchange *exchange);
/* Frees what it has. */
void deployment_done(struct exchange *exchange);
