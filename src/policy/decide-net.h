/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The network half of policy_decide(): hosts, addresses, ports, HTTP requests. Pure, resolves nothing;
 * decide.c calls it, and the compiler uses its checks of texts.
 */

#include "policy/decide.h"

/* For ACTION_NET_* and ACTION_HTTP_REQUEST; the subject is not empty. */
struct decision policy_decide_net(const struct policy *policy, const struct action *action);

/* Whether text is "ADDRESS/BITS" with a whole address and no bits beyond the prefix set. */
bool net_cidr_is_valid(const char *text);

/* Whether all its addresses are of the public internet,
	which an open default lets in; false also for what is invalid. */
bool net_cidr_is_public(const char *text);

/* Whether text is a lower-case host name of a rule: labels of a-z 0-9 - _, with an optional leading "*.". */
bool net_host_is_valid(const char *text);
