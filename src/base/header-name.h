/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the name of an HTTP header may be that somebody has put into requests: by a secret of a policy, or by the owner
 * of a sandbox. Pure; used by atoll-policy, atoll-box and atoll-egress.
 */

#include <stdbool.h>

/* Letters, digits, - and _: what no server and no proxy reads in another way. */
bool header_name_is_valid(const char *name);

/* Whether it says how a request is framed and where it goes, which is for nobody to set. In any case of letters. */
bool header_name_is_framing(const char *name);
