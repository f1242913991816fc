/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * atoll-policy reads a file that the agent of an earlier run may have written. Before that it gives up
 * whatever a parser does not need: writing, executing, the network, new processes, much memory and time.
 */

#include "base/cleanup.h"
#include "base/err.h"

/* No way back. The open descriptors stay usable. ERR_WALL when the kernel refuses a part that must hold. */
int confine_self(struct err *err) MUST_USE;
