/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What all answers have in common: headers for browsers, and how errors look. exchange.h has the functions that
 * handlers use. Run by atoll-front.
 */

#include <microhttpd.h>
#include <stdbool.h>

#include "base/cleanup.h"

struct exchange;

/* A header of a response; one that cannot be added is left out. */
void respond_header(struct MHD_Response *response, const char *name, const char *value);

/* Whether the request comes from a page that may use the service, or from none. */
bool respond_is_page_ours(const struct exchange *exchange);

/* Answers a preflight request (fetch.spec.whatwg.org, CORS). */
void respond_preflight(struct exchange *exchange);
