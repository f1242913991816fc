/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the gates of a sandbox decided: how much was let happen and refused, the refusals as people and agents read them
 * (denials.h), and how many are made a second (rate.h). Run by atoll-box.
 */

#include <stdint.h>

#include "supervise/denials.h"
#include "supervise/rate.h"

struct refusals {
	struct denials denials;
	struct rates rates;
	uint64_t allowed, denied; /* decisions that were made */
};
