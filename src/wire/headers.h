/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Headers that the owner of a sandbox has put into its requests, on their way from libatoll to the network gate: a
 * vector host, name, value, host, name, value … One check, for each program that they pass. Pure.
 */

#include <stddef.h>

#include "base/cleanup.h"

enum {
	HEADERS_MAX = 64,
	HEADERS_BYTES_MAX = 64 << 10,  /* of all together */
};

/*
 * How many headers there are; or -EINVAL with a static sentence in *ret_why, which is about *ret_entry ("": about all):
 * too many, no exact host (a name in small letters, without a wildcard), no name of a header or one of those that frame
 * a request, a value that is empty or has a control character.
 */
int headers_check(const char *const *triples, const char **ret_why, const char **ret_entry) MUST_USE;
