/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What atoll-egress gives up before the first byte of the sandbox: files, programs, new privileges, and every system
 * call that moving bytes between sockets does not need.
 */

#include "base/cleanup.h"
#include "base/err.h"

/* For good. Negative with *err where one of the walls cannot be put up. */
int confine_self(struct err *err) MUST_USE;
