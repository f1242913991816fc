/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Closes the network of a sandbox that lives, by a policy of its own making that denies all that the one in force names
 * (policy-change.h): open connections end, and a person can open it again with `atoll policy set`. Run by atoll-box.
 */

#include "base/cleanup.h"

struct net_gate;

/* 0: under way, or there is nothing to close; -EBUSY: not now, try again; another negative: it cannot be. */
int lockdown_begin(struct net_gate *gate) MUST_USE;
