/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The texts of limits as policies write them, shared by policy_describe() and what prints policies.
 * Pure; parsing is base/num.h's.
 */

#include <stdint.h>

#include "policy/policy.h"

enum { NET_LIMIT_TEXT_SIZE = 48, NET_LIMIT_KEY_SIZE = 96, COOLDOWN_TEXT_SIZE = 96 };

/* "10MiB/s", "600/min", "1GiB", "64" as policies write it; "unlimited" where there is none. */
void net_limit_to_text(enum net_limit kind, const struct net_amount *amount, char out[NET_LIMIT_TEXT_SIZE]);
void rate_to_text(const struct net_amount *rate, char out[NET_LIMIT_TEXT_SIZE]);

/* "network.limits.total", "network.allow[3].limits.total"; rule is the id of the limit's rule, NULL: the session's. */
void net_limit_key(const char *rule, enum net_limit kind, char out[NET_LIMIT_KEY_SIZE]);

/* "20 in 10s: 1m": refusals, within, pause; "none" where there is no cool-down. */
void cooldown_to_text(const struct cooldown_rule *rule, char out[COOLDOWN_TEXT_SIZE]);
