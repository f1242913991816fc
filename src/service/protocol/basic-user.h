/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The user inside that a request names by "Authorization: Basic" (RFC 7617), as the E2B clients do. It is a wish and no
 * credential: the password is not looked at. Pure. Run by atoll-front.
 */

#include <stddef.h>

#include "base/cleanup.h"

enum { BASIC_USER_SIZE = 65 };

/*
 * The name before the colon. 1; 0: header is NULL, of another scheme, or has no name; -EINVAL: malformed, or no name
 * that a user of Linux can have.
 */
int basic_user_read(const char *header, char out[BASIC_USER_SIZE]) MUST_USE;
