/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandboxes that `atoll doctor` starts to look at the boundary itself: one that runs nothing, and one that runs
 * atoll-probe, which tries to get out. Each in a project of its own below /tmp that is removed afterwards.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct self_test_request {
	const char *policy, *trust;   /* as for `atoll run`; NULL: the default */
};

/* Builds every wall of this policy and runs nothing. 0; else why[size] has the line that says why not. */
int self_test_check(const struct self_test_request *request, char *why, size_t size) MUST_USE;

/* Runs atoll-probe inside and prints its table. The exit status: 0 when everything held, 1 when something broke. */
int self_test_probe(const struct self_test_request *request, bool json, struct err *err) MUST_USE;
