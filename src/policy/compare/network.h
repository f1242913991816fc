/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two policies' networks compared by what they decide about connections and what they count, not by their text: for
 * `atoll policy diff`, and for the record of a change while a sandbox runs. Pure.
 */

#include "policy/decide.h"

struct net_difference {
	const char *dimension;       /* "net.connect", "network.limits", …; static */
	const char *subject;         /* "a.org:443", "total", "a.org total"; valid during the call */
	const char *from, *to;       /* verdicts or limits; valid during the call */
	bool allows;                 /* b lets more through than a */
};

/* Tells each difference once. Patterns (*.a.org) and blocks of addresses are compared by a sample of each. */
void policy_compare_network(const struct policy *a, const struct policy *b,
			    void (*tell)(void *context, const struct net_difference *difference), void *context);
