/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much of the last ten seconds some process of this machine waited for memory: what comes before it swaps or kills.
 * Documentation/accounting/psi.rst of the kernel.
 */

#include <stdint.h>

#include "base/cleanup.h"

/* The figure in hundredths of a percent, 0 to 10,000. -ENOENT, -EOPNOTSUPP: the kernel does not keep it; -errno. */
int pressure_memory(uint32_t *ret_share) MUST_USE;

/* The same from the text of the file. -EBADMSG: it is none. */
int pressure_parse(const char *text, uint32_t *ret_share) MUST_USE;
