/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll-stage compare` tells the atoll that started it, in numbers: how two staged states differ. The paths are
 * hostile and go to people only.
 */

#include <stdint.h>

enum {
	STAGE_DIFFERENCE_FD = 3,     /* where struct stage_difference is written to, whole */
	STAGE_DIFFERS = 1,           /* exit status: they do */
};

struct stage_difference {
	uint64_t added, modified, deleted;
	uint64_t flagged;            /* of all these, in protected paths */
	uint64_t hidden;             /* changes that neither state can show: refused ones (stage/change/change.h) */
};
